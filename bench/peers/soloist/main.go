// Soloist is a replica of the bench: its jobs in a scheduler over Azure blobs.
package main

import (
	"context"

	"github.com/soloist-go/soloist/bench/internal/replica"
	"github.com/soloist-go/soloist/bench/internal/soloist"
	"github.com/soloist-go/soloist/host/azure"
)

func main() { replica.Main(serve) }

func serve(ctx context.Context, w replica.Settings) error {
	store, err := azure.Open(azure.Config{ConnectionString: w.Service, Container: w.Space})
	if err != nil {
		return err
	}
	return soloist.Run(ctx, w, store)
}
