package postgres_test

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host"
	"github.com/soloist-go/soloist/host/postgres"
)

// A schema of its own in a database that the program has anyway. It does not connect yet.
func ExampleOpen() {
	s, err := postgres.Open(postgres.Config{URL: "postgres://jobs@db.example.com/shop", Schema: "jobs"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()
	fmt.Println(s)
	// Output: PostgreSQL at db.example.com:5432, database shop, schema jobs
}

// A program whose SOLOIST_STORAGE may be the URL of a database. This is what the command "validate" prints.
func ExampleOpenURL() {
	_ = os.Setenv("SOLOIST_STORAGE", "postgres://jobs@db.example.com/shop")
	defer os.Unsetenv("SOLOIST_STORAGE")
	report := soloist.Job{Name: "report", Schedule: "@daily", Do: func(context.Context, *soloist.Run) error { return nil }}
	p := host.Program{
		Work:      []soloist.Work{report},
		OpenStore: postgres.OpenURL,
		Name:      "shop",
		Args:      []string{"validate"},
	}
	fmt.Println("exit code", p.Run(context.Background()))
	// Output:
	// ok: 1 job, app shop on PostgreSQL at db.example.com:5432, database shop, schema soloist
	// exit code 0
}

// Where the role of the program may not create a schema, its owner runs the statements once.
func ExampleStore_SQL() {
	s, err := postgres.Open(postgres.Config{URL: "postgres://jobs@db.example.com/shop"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()
	for line := range strings.Lines(s.SQL("jobs")) {
		if strings.HasPrefix(line, "GRANT USAGE") {
			fmt.Print(line)
		}
	}
	// Output: GRANT USAGE ON SCHEMA "soloist" TO "jobs";
}
