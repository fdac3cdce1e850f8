// Hosted is whose cold start is measured: a program of one job, with all that host.Main brings.
package main

import (
	"context"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host"
)

func main() {
	host.Main(soloist.Job{Name: "nightly", Schedule: "30 2 * * *", Do: func(context.Context, *soloist.Run) error { return nil }})
}
