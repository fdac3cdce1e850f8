package browser

import (
	"context"
	"errors"
	"fmt"
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
		p := host.Program{Work: programs[order]}
		if order == asLocks {
			p.Before = []*soloist.Once{{Name: "migrate", Key: "v2 " + markup, Do: func(context.Context, *soloist.Run) error { return nil }}}
		}
		p.Main()
	}
	proctest.Main(m, 4)
}

// The orders of a process: which program it is.
const (
	asUsual = "usual"
	asShow  = "show"
	asLocks = "locks"
	asPlay  = "play"
	asMany  = "many"
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

	// One holds a lock, whose name is text.
	asLocks: {
		soloist.Singleton{Name: "leader", Do: func(ctx context.Context, run *soloist.Run) error {
			return run.Lock("<b>42</b>").Do(ctx, func(ctx context.Context, _ *soloist.Run) error { <-ctx.Done(); return nil })
		}},
	},

	// One of each kind of trouble.
	asPlay: {
		soloist.Job{Name: "bills", Schedule: "@every 3s", Retry: soloist.Retry{MaxTries: 2, Backoff: time.Millisecond}, Do: func(context.Context, *soloist.Run) error {
			return errors.New("the printer of the second floor has no paper " + markup)
		}},
		soloist.Job{Name: "carry", Schedule: "@every 5s", Do: func(ctx context.Context, run *soloist.Run) error { // what is ordered takes long
			if run.Request == "" {
				return nil
			}
			return noted("box 3 of 9")(ctx, run)
		}},
		soloist.Job{Name: "deaf", Schedule: "@every 1h", Timeout: time.Second, Do: func(context.Context, *soloist.Run) error { // it hangs, whatever its context says
			return proctest.Pause(context.Background(), time.Hour)
		}},
		soloist.Job{Name: "rested", Schedule: "@every 2s", Do: lasts(0)},
		soloist.Job{Name: "slow", Schedule: "@every 4s", Late: soloist.Late{Finish: time.Second}, Do: noted("row 7")},
		soloist.Job{Name: "split", Schedule: "@every 3s", Shards: 4, Do: func(_ context.Context, run *soloist.Run) error {
			if run.Shard == 2 {
				return errors.New("this part is bad")
			}
			return nil
		}},
	},

	// As many as a strip has at most, at rest.
	asMany: many(500),

	// A program like many, for pictures.
	asShow: {
		soloist.Job{Name: "catalogue-import", Schedule: "15 3 * * *", Do: noted("page 312 of 900")},
		soloist.Job{Name: "exchange-rates", Schedule: "@every 5s", Do: func(context.Context, *soloist.Run) error {
			return errors.New("GET https://rates.example/latest: 503 Service Unavailable")
		}},
		soloist.Job{Name: "invoices", Schedule: "@every 3s", Do: lasts(900 * time.Millisecond)},
		soloist.Job{Name: "newsletter", Schedule: "0 8 * * 1", TimeZone: "Europe/Berlin", Do: lasts(0)},
		soloist.Job{Name: "nightly-report", Schedule: "30 2 * * *", TimeZone: "Europe/Berlin", Do: lasts(0)},
		soloist.Singleton{Name: "order-feed", Do: noted("1204 orders")},
		soloist.Job{Name: "thumbnails", Schedule: "@every 2s", Do: lasts(300 * time.Millisecond)},
	},
}

// many are so many jobs.
func many(n int) (all []soloist.Work) {
	for i := range n {
		all = append(all, soloist.Job{Name: fmt.Sprintf("job-%03d", i), Schedule: "7 3 1 1 *", Do: lasts(0)})
	}
	return all
}

// noted is work that tells how far it is, and goes on.
func noted(note string) func(context.Context, *soloist.Run) error {
	return func(ctx context.Context, run *soloist.Run) error {
		run.Heartbeat(note)
		if err := run.Save(ctx, note); err != nil { // which brings the note into the record at once
			return err
		}
		<-ctx.Done()
		return context.Cause(ctx)
	}
}

// lasts is work that takes about so long, more or less by its tick.
func lasts(d time.Duration) func(context.Context, *soloist.Run) error {
	return func(ctx context.Context, run *soloist.Run) error {
		return proctest.Pause(ctx, d/2+d*time.Duration(run.Tick.Unix()%7)/6)
	}
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
