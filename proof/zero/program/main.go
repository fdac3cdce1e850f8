// Program is what the platform of zero starts: jobs that report their starts.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
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
		Command   string            // of the program
	}
	if err := json.Unmarshal([]byte(order), &o); err != nil {
		fmt.Fprintln(os.Stderr, "program: want an order with its schedules:", err)
		os.Exit(2)
	}
	os.Args = []string{os.Args[0], o.Command}
	var all []soloist.Work
	for _, name := range slices.Sorted(maps.Keys(o.Schedules)) {
		all = append(all, soloist.Job{Name: name, Schedule: o.Schedules[name], Do: do})
	}
	host.Main(all...)
}

// do takes its time.
func do(ctx context.Context, run *soloist.Run) error {
	proctest.Tell(proctest.Of("start", run))
	err := proctest.Pause(ctx, 100*time.Millisecond)
	proctest.TellEnd(run, err)
	return err
}
