package sqlstore_test

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"

	_ "modernc.org/sqlite"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/examples/sqlstore"
)

// Two replicas are asked for the same report. One makes it; the other tells what
// became of it.
func Example() {
	db, err := sql.Open("sqlite", ":memory:") // of a program: a file
	if err != nil {
		fmt.Println(err)
		return
	}
	defer db.Close()
	db.SetMaxOpenConns(1) // each connection has a database of its own
	if _, err := db.Exec(sqlstore.Table); err != nil {
		fmt.Println(err)
		return
	}
	for _, replica := range []string{"one", "two"} {
		s := &soloist.Scheduler{
			Store:   &sqlstore.Store{DB: db}, // or in a host.Program
			Replica: replica,
			Logger:  slog.New(slog.DiscardHandler),
			Jobs: []soloist.Job{{Name: "report", Schedule: "@daily", Do: func(context.Context, *soloist.Run) error {
				fmt.Println("reporting on", replica)
				return nil
			}}},
		}
		outcome, err := s.RunNow(context.Background(), "report", "for-the-board")
		fmt.Println(outcome.Status, err)
	}
	// Output:
	// reporting on one
	// succeeded <nil>
	// succeeded <nil>
}
