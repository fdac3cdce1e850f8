package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/soloist-go/soloist"
)

// heartbeat logs one line every ten seconds: which run it is, on which host,
// and how long that host's replica has been up. Start a second replica and the
// log still has one line per tick; stop the replica that logs and another continues.
func heartbeat() soloist.Job {
	started := time.Now()
	return soloist.Job{
		Name:     "heartbeat",
		Schedule: "@every 10s",
		Do: func(_ context.Context, run *soloist.Run) error {
			name, err := os.Hostname()
			if err != nil {
				return fmt.Errorf("host name: %w", err)
			}
			// As text, since a JSON log would show a Duration in nanoseconds.
			uptime := time.Since(started).Round(time.Second).String()
			run.Log.Info("heartbeat", "run", run.ID(), "host", name, "uptime", uptime)
			return nil
		},
	}
}
