package postgres_test

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host"
	"github.com/soloist-go/soloist/host/postgres"
)

// A job books interest once a day: the amounts and the outcome of the tick are kept together, or neither is.
func ExampleInTx() {
	book := func(ctx context.Context, run *soloist.Run) error {
		return postgres.InTx(ctx, run, func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, "UPDATE account SET balance = balance * 1.0001")
			return err
		})
	}
	fmt.Println(book(context.Background(), new(soloist.Run)) != nil) // a run that no program has started has no outcome
	// Output: true
}

// A job copies rows in pages: each page and the place to go on from are kept together, or neither is.
func ExampleSaveInTx() {
	copies := func(ctx context.Context, run *soloist.Run) error {
		var last int64
		if err := run.Load(ctx, &last); err != nil {
			return err
		}
		return postgres.SaveInTx(ctx, run, last+100, func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, "INSERT INTO copy SELECT * FROM original WHERE id > $1 AND id <= $1 + 100", last)
			return err
		})
	}
	fmt.Println(copies(context.Background(), new(soloist.Run)) != nil)
	// Output: true
}

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
