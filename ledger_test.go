package soloist_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/store"
)

// A ledger is every outcome that was ever written for a job, as the store saw it.
type ledger struct {
	t        *testing.T
	outcomes []store.Outcome
	seen     map[string]bool
}

// spy wraps a replica's way to the store so that the ledger learns of each
// record that was accepted.
func (l *ledger) spy(r *replica) {
	r.Store = &spyStore{r.tap, l}
}

type spyStore struct {
	*tap
	l *ledger
}

func (s *spyStore) Lease(name, id string) store.Lease {
	return &spyLease{s.tap.Lease(name, id), s.l}
}

type spyLease struct {
	store.Lease
	l *ledger
}

func (s *spyLease) Write(ctx context.Context, etag string, b []byte) (store.Revision, error) {
	st, err := s.Lease.Write(ctx, etag, b)
	if err == nil {
		s.l.add(b)
	}
	return st, err
}

func (l *ledger) add(b []byte) {
	var r store.Record
	if err := json.Unmarshal(b, &r); err != nil {
		l.t.Error(err)
		return
	}
	for _, f := range slices.Backward(r.History) {
		key := fmt.Sprint(f.From, f.Tick, f.Status, f.Token)
		if !l.seen[key] {
			l.seen[key] = true
			l.outcomes = append(l.outcomes, f)
		}
	}
}

// check returns how many ticks have each outcome, after checking that each tick
// of the period up to the watermark has exactly one.
func (l *ledger) check(every time.Duration, r store.Record) map[store.Status]int {
	l.t.Helper()
	counts := map[store.Status]int{}
	slices.SortFunc(l.outcomes, func(a, b store.Outcome) int { return a.Tick.Compare(b.Tick) })
	through := r.Created
	for _, f := range l.outcomes {
		first := f.Tick
		if !f.From.IsZero() {
			first = f.From.Truncate(every).Add(every)
		}
		if want := through.Truncate(every).Add(every); !first.Equal(want) {
			l.t.Errorf("%s begins at %s, want %s", f.Status, first, want)
		}
		n := int(f.Tick.Sub(first)/every) + 1
		if f.Count > 0 && f.Count != n {
			l.t.Errorf("%s up to %s counts %d ticks, want %d", f.Status, f.Tick, f.Count, n)
		}
		counts[f.Status] += n
		through = f.Tick
	}
	if !through.Equal(r.Watermark) {
		l.t.Errorf("the last outcome is of %s, the watermark is %s", through, r.Watermark)
	}
	for status, n := range counts {
		if r.Counts[status] != int64(n) {
			l.t.Errorf("%d ticks %s, but the record counts %d", n, status, r.Counts[status])
		}
	}
	return counts
}

// A month with restarts, kills and outages, and three days under each other pair of
// policies: every tick has one outcome, and nothing is silent.
func TestAMonthOfTrouble(t *testing.T) {
	const every = 5 * time.Minute
	for _, missed := range []soloist.MissedPolicy{soloist.RunLatest, soloist.RunAll, soloist.SkipMissed} {
		for _, interrupted := range []soloist.InterruptedPolicy{soloist.Abandon, soloist.Rerun} {
			days, long := 3, 30
			if testing.Short() { // less, for the race detector too, which has seen all after these
				days, long = 1, 4
			}
			if missed == soloist.RunLatest && interrupted == soloist.Abandon {
				days = long
			}
			t.Run(fmt.Sprintf("missed %q interrupted %q", missed, interrupted), func(t *testing.T) {
				inCluster(t, func(c *cluster) {
					rnd := rand.New(rand.NewPCG(1, 2))
					l := &ledger{t: t, seen: map[string]bool{}}
					job := soloist.Job{Name: "work", Schedule: "@every 5m", Lease: time.Minute, Missed: missed, Interrupted: interrupted,
						Do: func(ctx context.Context, run *soloist.Run) error {
							d := time.Minute
							if run.Tick.Unix()/300%13 == 0 {
								d = 9 * time.Minute
							}
							select {
							case <-time.After(d):
								return nil
							case <-ctx.Done():
								return ctx.Err()
							}
						}}
					trouble(c, rnd, days, func(name string) *replica {
						r := c.replica(name, job)
						l.spy(r)
						return c.launch(r)
					})
					c.stopAll()
					r := c.record("work")
					counts := l.check(every, r)
					if behind := time.Since(r.Watermark); behind > 15*time.Minute {
						t.Errorf("the watermark is %s behind", behind)
					}
					starts := map[time.Time]int{}
					for _, run := range c.all() {
						if starts[run.Tick]++; starts[run.Tick] > 1 && interrupted == soloist.Abandon {
							t.Errorf("tick %s was started %d times", run.Tick, starts[run.Tick])
						}
					}
					t.Log(counts)
					if counts[store.Succeeded] < days*150 || counts[store.Missed] == 0 && missed != soloist.RunAll || len(starts) < days*150 {
						t.Errorf("not much of a month: %v", counts)
					}
					if (counts[store.Skipped] == 0) != (missed == soloist.RunAll) {
						t.Errorf("skipped for overlap under %q: %v", missed, counts)
					}
				})
			})
		}
	}
}

// trouble passes days of kills, stops, starts and outages, and then half
// a day in which all is well.
func trouble(c *cluster, rnd *rand.Rand, days int, launch func(name string) *replica) {
	var up []*replica
	n := 0
	begin := func() { n++; up = append(up, launch(fmt.Sprint("r", n))) }
	for end := time.Now().Add(time.Duration(days) * 24 * time.Hour); time.Now().Before(end); {
		time.Sleep(time.Duration(rnd.ExpFloat64() * float64(2*time.Hour)))
		switch i := rnd.IntN(10); {
		case len(up) < 3 && i < 6:
			begin()
		case len(up) == 0:
		case i < 7: // never heard of again
			k := rnd.IntN(len(up))
			up[k].kill()
			up[k].stop() // what is left of it reaches nobody
			up = slices.Delete(up, k, k+1)
		case i < 9:
			k := rnd.IntN(len(up))
			up[k].stop()
			up = slices.Delete(up, k, k+1)
		default: // the store is out of reach for all
			for _, r := range up {
				r.tap.cut.Store(true)
			}
			time.Sleep(time.Duration(rnd.ExpFloat64() * float64(20*time.Minute)))
			for _, r := range up {
				r.tap.cut.Store(false)
			}
		}
	}
	begin()
	time.Sleep(12 * time.Hour)
}
