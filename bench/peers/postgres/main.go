// Postgres is a replica of the bench: Soloist over PostgreSQL.
package main

import (
	"context"

	"github.com/soloist-go/soloist/bench/internal/database"
	"github.com/soloist-go/soloist/bench/internal/replica"
	"github.com/soloist-go/soloist/bench/internal/soloist"
	"github.com/soloist-go/soloist/host/postgres"
)

func main() { replica.Main(serve) }

func serve(ctx context.Context, w replica.Settings) error {
	store, err := postgres.OpenURL(database.URL(w))
	if err != nil {
		return err
	}
	defer store.(*postgres.Store).Close()
	return soloist.Run(ctx, w, store)
}
