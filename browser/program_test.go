package browser

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host"
	"github.com/soloist-go/soloist/internal/proctest"
)

// markup is what a job says of itself: text that a careless page would take for markup.
const markup = `<img src=x onerror="document.title='owned'"><script>document.title='owned'</script>`

// TestMain makes this binary the program that the page is of.
func TestMain(m *testing.M) {
	if order, ok := proctest.Order(); ok {
		host.Main(programs[order]...)
	}
	os.Exit(m.Run())
}

// The orders of a process: which program it is.
const (
	asUsual  = "usual"
	asIngest = "ingest"
	asShow   = "show"
)

// programs are the jobs of each.
var programs = map[string][]soloist.Work{
	// One runs now and then, one always fails, and some rest.
	asUsual: {
		soloist.Job{Name: "pulse", Schedule: "@every 4s", Do: pulse},
		soloist.Job{Name: "broken", Schedule: "@every 3s", Do: func(context.Context, *soloist.Run) error { return errors.New("no paper " + markup) }},
		soloist.Job{Name: "night", Schedule: "30 2 * * *", TimeZone: "Europe/Berlin", Do: func(ctx context.Context, _ *soloist.Run) error { return proctest.Pause(ctx, time.Minute) }},
		soloist.Job{Name: "rested", Schedule: "@every 5s", Paused: true, Do: func(context.Context, *soloist.Run) error { return nil }},
		soloist.Singleton{Name: "leader", Do: func(ctx context.Context, _ *soloist.Run) error { <-ctx.Done(); return nil }},
	},

	// One run goes on until its process is killed. The next attempt ends.
	asIngest: {
		soloist.Job{Name: "pulse", Schedule: "@every 4s", Do: pulse},
		soloist.Job{Name: "ingest", Schedule: "@every 5s", Interrupted: soloist.Rerun, Do: func(ctx context.Context, run *soloist.Run) error {
			proctest.Tell(proctest.Of("start", run))
			defer func() { proctest.Tell(proctest.Of("end", run)) }()
			if run.Attempt > 1 {
				return proctest.Pause(ctx, 4*time.Second)
			}
			<-ctx.Done()
			return context.Cause(ctx)
		}},
	},
}

// pulse tells its start and its end.
func pulse(ctx context.Context, run *soloist.Run) error {
	proctest.Tell(proctest.Of("start", run))
	run.Heartbeat(markup)
	if err := run.Save(ctx, 1); err != nil { // which brings the note into the record at once
		return err
	}
	defer func() { proctest.Tell(proctest.Of("end", run)) }()
	return proctest.Pause(ctx, 1500*time.Millisecond)
}
