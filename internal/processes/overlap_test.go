//go:build unix

package processes

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/internal/proctest"
	"github.com/soloist-go/soloist/store"
)

var overlapRuns = flag.Int("overlap", 4, "how many runs TestOverlapOutlivesKills waits for before each kill, and after the last one")

const (
	often   = time.Second            // between two ticks of a job whose runs take longer
	longRun = 3 * often / 2          // of such a run
	lets    = 300 * time.Millisecond // that a run takes to return when it is told to end
)

// noteRun is run whose effects are lines of a log, also while it winds up.
func (o order) noteRun(ctx context.Context, run *soloist.Run) error {
	tell := func(what string) error {
		return appendLine(o.Log, fmt.Sprintln(run.Token, o.Name, time.Now().UnixNano(), what))
	}
	if err := tell(begins); err != nil {
		return err
	}
	proctest.Tell(proctest.Of("start", run))
	for until, told := time.Now().Add(o.Takes), false; time.Now().Before(until); time.Sleep(20 * time.Millisecond) {
		if err := tell(works); err != nil {
			return err
		}
		if ctx.Err() != nil && !told {
			until, told = time.Now().Add(lets), true
		}
	}
	cause := context.Cause(ctx)
	if errors.Is(cause, soloist.ErrReplaced) {
		cause = soloist.ErrReplaced
	}
	proctest.TellEnd(run, cause)
	return ctx.Err()
}

// A job whose runs take longer than from one tick to the next, while its runner is killed. No two runs are
// at once, and each tick has the one outcome that the policy of the job says.
func TestOverlapOutlivesKills(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		order order
		check func(f *overlapFleet, old, next event)
	}{
		"queue one": {order{Overlap: soloist.QueueOne, Takes: longRun}, (*overlapFleet).checkQueued},
		"replace":   {order{Overlap: soloist.Replace, Takes: time.Minute}, (*overlapFleet).checkReplaced},
		"queue all": {order{Missed: soloist.RunAll, Takes: longRun}, (*overlapFleet).checkInTurn},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if name == "queue all" {
				furtherCase(t)
			}
			o := test.order
			o.Schedule, o.Log = "@every "+often.String(), filepath.Join(t.TempDir(), "log")
			f := &overlapFleet{fleet: newFleet(t, o), settled: map[int64]store.Outcome{}, cut: map[int64]bool{}, returned: map[int64]bool{}}
			for i := range 3 {
				f.start(fmt.Sprint("replica-", i), 0)
			}
			f.awaitRuns(*overlapRuns)
			for range *kills {
				f.killRunner()
				f.awaitRuns(len(f.starts()) + *overlapRuns)
			}
			f.check(test.check)
		})
	}
}

// An overlapFleet has a job with longer runs than pauses.
type overlapFleet struct {
	*fleet
	settled map[int64]store.Outcome // of each tick, as far as the record was read in time

	// Runs whose replica was killed, by token: under the run, or when it had returned.
	cut, returned map[int64]bool
}

// runs returns the starts, in the order of their tokens.
func (f *overlapFleet) runs() []event {
	all := f.starts()
	slices.SortFunc(all, func(a, b event) int { return int(a.Token - b.Token) })
	return all
}

// awaitRuns waits until so many runs have begun, and notes the outcomes meanwhile: the record keeps the last ones.
func (f *overlapFleet) awaitRuns(n int) {
	f.t.Helper()
	proctest.Poll(f.t, fmt.Sprint(n, " runs"), patience, func() bool {
		if len(f.starts()) > 0 {
			f.settle()
			time.Sleep(200 * time.Millisecond) // the storage is that of the replicas
		}
		return len(f.starts()) >= n
	})
}

// settle notes the outcomes in the record. None may change later.
func (f *overlapFleet) settle() {
	f.t.Helper()
	for _, o := range f.record().History {
		from := o.From
		if from.IsZero() {
			from = o.Tick.Add(-often)
		}
		for at := from.Add(often); !at.After(o.Tick); at = at.Add(often) {
			old, known := f.settled[at.UnixNano()]
			if known && (old.Status != o.Status || old.Reason != o.Reason) {
				f.t.Errorf("the tick %s is %s %s, and was %s %s", at, o.Status, o.Reason, old.Status, old.Reason)
			}
			f.settled[at.UnixNano()] = o
		}
	}
}

// killRunner kills the replica that runs the job, in the middle of the run, and starts it again.
func (f *overlapFleet) killRunner() {
	f.t.Helper()
	killed, returned := f.killRun()
	f.cut[killed.Token] = true
	for _, run := range returned {
		f.returned[run.Token] = true
	}
	f.start(killed.Replica, 0)
}

// check checks each run with the one after it.
func (f *overlapFleet) check(follows func(f *overlapFleet, old, next event)) {
	f.t.Helper()
	f.settle()
	effects := (&notebook{file: f.order.Log}).check(f.t)
	runs, queued := f.runs(), 0
	for i, old := range runs[:len(runs)-1] {
		next := runs[i+1]
		switch {
		case f.cut[old.Token]:
			f.checkOutcome(old.Tick, store.Abandoned, "its runner died")
			continue
		case f.returned[old.Token]: // its outcome may not have been written, and the next tick may have been claimed
			continue
		}
		end, ok := f.endOf(old)
		if !ok || next.At.Before(end.At) || next.At.Sub(end.At) > limit(2*time.Second) {
			f.t.Errorf("the run of %s ended at %s, and the next one began at %s", old.Tick, end.At, next.At)
		}
		if next.Tick.Before(end.At) {
			queued++
		}
		follows(f, old, next)
	}
	if queued == 0 {
		f.t.Error("no tick came due while another one ran")
	}
	skipped := slices.ContainsFunc(slices.Collect(maps.Values(f.settled)), func(o store.Outcome) bool { return o.Status == store.Skipped })
	if !skipped && f.order.Overlap == soloist.QueueOne {
		f.t.Error("no tick was skipped")
	}
	last := runs[len(runs)-1].Tick
	for at := runs[0].Tick; at.Before(last); at = at.Add(often) {
		if _, ok := f.settled[at.UnixNano()]; !ok {
			f.t.Errorf("the tick %s has no outcome", at)
		}
	}
	f.t.Logf("%d runs through %d kills, %d of which waited for the end of another one: %v", effects.runs, len(f.cut), queued, f.record().Counts)
}

func (f *overlapFleet) checkOutcome(at time.Time, want store.Status, reason string) {
	f.t.Helper()
	if o := f.settled[at.UnixNano()]; o.Status != want || !strings.HasPrefix(o.Reason, reason) {
		f.t.Errorf("the tick %s is %q %q, want %q %q", at, o.Status, o.Reason, want, reason)
	}
}

// checkBetween checks the outcomes of the ticks between two runs. Those up to the end of the first one are skipped, but for the newest,
// which waits. If another one comes due before that is claimed, the one that waited is missed, and so are all between.
func (f *overlapFleet) checkBetween(old, next event) {
	f.t.Helper()
	end, _ := f.endOf(old)
	waited := false
	for at := old.Tick.Add(often); at.Before(next.Tick); at = at.Add(often) {
		newest := at.After(end.At.Add(-5 * often)) // the clock of the storage shows seconds, and a busy machine has late answers
		if waited = waited || newest && f.settled[at.UnixNano()].Status == store.Missed; waited {
			f.checkOutcome(at, store.Missed, "a newer one was due")
			continue
		}
		f.checkOutcome(at, store.Skipped, "overlap")
	}
}

// checkQueued checks that of the ticks that came due under a run the newest one is run, and no other one.
func (f *overlapFleet) checkQueued(old, next event) {
	f.t.Helper()
	f.checkOutcome(old.Tick, store.Succeeded, "")
	f.checkBetween(old, next)
	end, _ := f.endOf(old)
	if !next.Tick.After(end.At.Add(-5 * often)) {
		f.t.Errorf("the tick %s is run at %s, and newer ones were due", next.Tick, next.At)
	}
}

// checkReplaced checks that a newer tick ended the run, which says so.
func (f *overlapFleet) checkReplaced(old, next event) {
	f.t.Helper()
	f.checkBetween(old, next)
	if end, _ := f.endOf(old); end.Cause != soloist.ErrReplaced.Error() {
		f.t.Errorf("the run of %s ended for %q", old.Tick, end.Cause)
	}
	f.checkOutcome(old.Tick, store.Cancelled, "replaced by the tick of ")
}

// checkInTurn checks that no tick is left out but those that the queue has no room for.
func (f *overlapFleet) checkInTurn(old, next event) {
	f.t.Helper()
	f.checkOutcome(old.Tick, store.Succeeded, "")
	for at := old.Tick.Add(often); at.Before(next.Tick); at = at.Add(often) {
		f.checkOutcome(at, store.Missed, "too many were due")
	}
}
