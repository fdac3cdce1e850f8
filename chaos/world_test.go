// Package chaos_test lets replicas meet the faults of a real network: each of
// them, a Scheduler of this process, has a line of its own to one Azurite,
// through Toxiproxy and through a service that throttles. It is a module of its
// own, so that users of the library do not get what only this needs.
package chaos_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/chaos/line"
	"github.com/soloist-go/soloist/host/azure"
	"github.com/soloist-go/soloist/internal/azurite"
	"github.com/soloist-go/soloist/internal/proctest"
)

// D is the lease of all work here, the shortest that the service takes.
const D = 15 * time.Second

// soon is how long after a fault all that is due has been begun: a lease that
// is still taken, the longest pause between two looks, and a busy machine.
const soon = D + 10*time.Second + 5*time.Second

// What each replica has: a singleton, and a job whose runs are short.
const (
	lead  = "lead"
	work  = "work"
	every = 2 * time.Second
	takes = 200 * time.Millisecond
)

func TestMain(m *testing.M) { proctest.Main(m, 20) }

// worlds numbers the containers.
var worlds atomic.Int64

// A world is three replicas of one program.
type world struct {
	t        *testing.T
	replicas []*replica

	mu   sync.Mutex
	runs []*run // in the order of their starts
}

// A replica is a scheduler and its line to the service.
type replica struct {
	*soloist.Scheduler
	*line.Line
}

// A run is one call of a Do.
type run struct {
	*soloist.Run
	replica *replica
	start   time.Time
	end     time.Time // when its context had ended, or Do returned
	cause   error     // of the end of its context
}

// newWorld starts the replicas. Those of a test that is over are stopped, and
// what they did is checked.
func newWorld(t *testing.T) *world {
	t.Helper()
	server := azurite.Shared(t)
	w := &world{t: t}
	container := fmt.Sprintf("world-%d", worlds.Add(1))
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	t.Cleanup(func() {
		cancel()
		all.Wait()
		w.check()
	})
	for _, name := range []string{"a", "b", "c"} {
		service, err := line.To(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		r := new(replica)
		if r.Line, err = line.New(t.Name(), service); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(r.Close)
		store, err := azure.Open(azure.Config{ConnectionString: r.ConnectionString(), Container: container})
		if err != nil {
			t.Fatal(err)
		}
		r.Scheduler = &soloist.Scheduler{
			Store: store, Replica: name, Logger: slog.New(slog.DiscardHandler),
			Singletons: []soloist.Singleton{{Name: lead, Lease: D, Do: w.do(r, time.Hour)}},
			Jobs:       []soloist.Job{{Name: work, Schedule: "@every " + every.String(), Lease: D, Do: w.do(r, takes)}},
		}
		w.replicas = append(w.replicas, r)
		all.Go(func() {
			if err := r.Run(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	return w
}

// do takes its time and obeys its context.
func (w *world) do(by *replica, takes time.Duration) func(context.Context, *soloist.Run) error {
	return func(ctx context.Context, r *soloist.Run) error {
		one := &run{Run: r, replica: by}
		w.mu.Lock()
		one.start = time.Now()
		w.runs = append(w.runs, one)
		w.mu.Unlock()
		proctest.Pause(ctx, takes)
		w.mu.Lock()
		defer w.mu.Unlock()
		one.end, one.cause = time.Now(), context.Cause(ctx)
		return ctx.Err()
	}
}

// all returns what was run so far.
func (w *world) all(name string) (out []run) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range w.runs {
		if r.Job == name {
			out = append(out, *r)
		}
	}
	return out
}

// await waits for a run that began since then.
func (w *world) await(name string, since time.Time, patience time.Duration) (found run) {
	w.t.Helper()
	proctest.Poll(w.t, fmt.Sprintf("a run of %s since %s", name, since.Format(time.TimeOnly)), patience, func() bool {
		all := w.all(name)
		i := slices.IndexFunc(all, func(r run) bool { return r.start.After(since) })
		if i >= 0 {
			found = all[i]
		}
		return i >= 0
	})
	return found
}

// leader waits for a singleton's run that goes on.
func (w *world) leader(patience time.Duration) (last run) {
	w.t.Helper()
	proctest.Poll(w.t, "a leader", patience, func() bool {
		runs := w.all(lead)
		if len(runs) > 0 {
			last = runs[len(runs)-1]
		}
		return len(runs) > 0 && last.end.IsZero()
	})
	return last
}

// now returns what has become of a run.
func (w *world) now(of run) run {
	all := w.all(of.Job)
	return all[slices.IndexFunc(all, func(r run) bool { return r.Token == of.Token })]
}

// check looks at all that was run.
func (w *world) check() {
	w.checkOneAtATime(lead)
	w.checkOneAtATime(work)
	ticks := map[time.Time]int{}
	for _, r := range w.all(work) {
		if ticks[r.Tick]++; ticks[r.Tick] == 2 {
			w.t.Errorf("tick %s ran twice", r.Tick.Format(time.TimeOnly))
		}
	}
	w.t.Logf("%d ticks ran, and %d leaders", len(ticks), len(w.all(lead)))
}

// checkOneAtATime checks that each run began after the one before it had been
// told to end, and with a larger token.
func (w *world) checkOneAtATime(name string) {
	all := w.all(name)
	for i, next := range all {
		if i == 0 {
			continue
		}
		last := all[i-1]
		if last.end.After(next.start) {
			w.t.Errorf("%s: token %d on %s began %s before the context of token %d on %s had ended",
				name, next.Token, next.replica.Replica, last.end.Sub(next.start), last.Token, last.replica.Replica)
		}
		if next.Token <= last.Token {
			w.t.Errorf("%s: token %d came after %d", name, next.Token, last.Token)
		}
	}
}
