// Program is what the platform of zero starts: jobs that tell when they start.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host"
	"github.com/soloist-go/soloist/internal/proctest"
)

func main() {
	order, _ := proctest.Order()
	proctest.Tell(proctest.Event{What: "up"})
	var o struct {
		Schedules map[string]string // by job
		Takes     time.Duration     // of each run
	}
	if err := json.Unmarshal([]byte(order), &o); err != nil {
		fmt.Fprintln(os.Stderr, "program: want an order with its schedules:", err)
		os.Exit(2)
	}
	var all []soloist.Work
	for name, schedule := range o.Schedules {
		all = append(all, soloist.Job{Name: name, Schedule: schedule, Do: do(o.Takes)})
	}
	slices.SortFunc(all, func(a, b soloist.Work) int { return strings.Compare(a.(soloist.Job).Name, b.(soloist.Job).Name) })
	host.Main(all...)
}

// do takes its time.
func do(takes time.Duration) func(context.Context, *soloist.Run) error {
	return func(ctx context.Context, run *soloist.Run) error {
		proctest.Tell(proctest.Of("start", run))
		err := proctest.Pause(ctx, takes)
		proctest.TellEnd(run, err)
		return err
	}
}
