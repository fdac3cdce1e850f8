//go:build unix

package main

import (
	"context"
	"encoding/json"
	"os"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/chaos/again"
	"github.com/soloist-go/soloist/host"
)

// replicaEnv carries the name of a process that is to be a replica.
const replicaEnv = "SOLOIST_ROUNDS_REPLICA"

// eventsFile is the descriptor of the pipe for events: the first that is not
// standard.
const eventsFile = 3

// An event is what a replica tells. Its time is that of the wall clock, which
// all processes of a machine share.
type event struct {
	Replica string
	What    string // "start" or "end" of Do
	Token   int64
	At      time.Time
}

// replica is the whole life of a process that was started as one: the program
// that a user would write, but for the events.
func replica(name string) {
	again.EndWithStarter()
	events := json.NewEncoder(os.NewFile(eventsFile, "events"))
	tell := func(what string, run *soloist.Run) {
		events.Encode(event{name, what, run.Token, time.Now()})
	}
	host.Main(soloist.Singleton{Name: "leader", Do: func(ctx context.Context, run *soloist.Run) error {
		tell("start", run)
		defer tell("end", run)
		return lead(ctx, run)
	}})
}

// lead beats until it has to end.
func lead(ctx context.Context, run *soloist.Run) error {
	beat := time.NewTicker(500 * time.Millisecond)
	defer beat.Stop()
	for {
		if err := run.Heartbeat("leading"); err != nil {
			return err
		}
		select {
		case <-beat.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
