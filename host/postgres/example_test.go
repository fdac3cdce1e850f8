package postgres_test

import (
	"context"
	"fmt"

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
	program := host.Program{Work: []soloist.Work{soloist.Job{Name: "interest", Schedule: "@daily", Do: book}}, OpenStore: postgres.OpenURL}
	fmt.Println(program.Work[0].(soloist.Job).Name)
	// Output: interest
}
