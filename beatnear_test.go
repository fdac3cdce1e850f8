package soloist_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/soloist-go/soloist/store"
)

// halves has each call take d: half of it on the way there, half on the way back.
func halves(d time.Duration) fault {
	return func(_ string, apply func() error) error {
		time.Sleep(d / 2)
		err := apply()
		time.Sleep(d / 2)
		return err
	}
}

// A replica that reads between the outcome of a run that is handed over and the release of its lease reads again soon,
// whatever the lease.
func TestHandOverIsNear(t *testing.T) {
	for _, length := range []time.Duration{time.Second, 3 * time.Second, 30 * time.Second} {
		for _, took := range []time.Duration{20 * time.Millisecond, 60 * time.Millisecond, 100 * time.Millisecond} {
			inCase(t, fmt.Sprint(length, " ", took), func(t *testing.T, c *cluster) {
				all := map[string]*replica{}
				for _, name := range []string{"a", "b", "c", "d"} {
					r := c.replica(name, brief(length))
					r.Grace = 10 * time.Second
					r.tap.Store = coarse{c.store}
					all[name] = c.launch(r.meets(halves(took)))
				}
				time.Sleep(time.Minute)
				for n := range 3 {
					all[c.all()[n].replica].stop()
					time.Sleep(30 * time.Second)
					runs := c.all()
					if len(runs) != n+2 {
						t.Fatalf("%d runs after %d stops", len(runs), n+1)
					}
					// The outcome and the release, a read after the pause, the acquisition and the claim.
					if gap := runs[n+1].start.Sub(runs[n].end); gap > 300*time.Millisecond+6*took {
						t.Errorf("%s from one run to the next", gap)
					}
				}
			})
		}
	}
}

// After an unlock at once a status says until about when others wait: for the last beat, and not for the lease of the store.
func TestUnlockedShortLeaseIsToldInTime(t *testing.T) {
	for _, length := range []time.Duration{time.Second, 3 * time.Second, 9 * time.Second} {
		inCase(t, length.String(), func(t *testing.T, c *cluster) {
			all := c.coarsely(brief(length), "a", "b")
			time.Sleep(time.Minute)
			if err := all["a"].Unlock(t.Context(), "lead", true); err != nil {
				t.Fatal(err)
			}
			st, err := all["a"].StatusOf(t.Context(), "lead")
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
			if began := c.all()[1].start; began.After(st.Waits) || st.Waits.Sub(began) > length/3+2*time.Second {
				t.Errorf("others wait until %s, and the next run began at %s", st.Waits, began)
			}
		})
	}
}

// A far store is a coarse one behind a network: before is called with each call before it is applied, after with each that
// was. An error of theirs is the answer.
type far struct {
	coarse
	before, after func(ctx context.Context, op string) error
}

func (s *far) through(ctx context.Context, op string, apply func() error) error {
	if err := s.before(ctx, op); err != nil {
		return err
	}
	err := apply()
	if lost := s.after(ctx, op); lost != nil {
		return lost
	}
	return err
}

func (s *far) Read(ctx context.Context, name string) (e store.Entry, err error) {
	err = s.through(ctx, "read", func() (err error) { e, err = s.coarse.Read(ctx, name); return err })
	return e, err
}

func (s *far) BreakUnchanged(ctx context.Context, name, etag string) error {
	return s.through(ctx, "break unchanged", func() error { return s.coarse.BreakUnchanged(ctx, name, etag) })
}

func (s *far) Lease(name, id string) store.Lease { return &farLease{s.coarse.Lease(name, id), s} }

type farLease struct {
	store.Lease
	far *far
}

func (l *farLease) Acquire(ctx context.Context, d time.Duration, etag string) (r store.Revision, err error) {
	err = l.far.through(ctx, "acquire", func() (err error) { r, err = l.Lease.Acquire(ctx, d, etag); return err })
	return r, err
}

// hangsOnce returns what has the first call of op after the start wait until its caller gives up.
func hangsOnce(op string, start *atomic.Bool) func(context.Context, string) error {
	var done atomic.Bool
	return func(ctx context.Context, got string) error {
		if got != op || !start.Load() || done.Swap(true) {
			return nil
		}
		<-ctx.Done()
		return ctx.Err()
	}
}

func passes(context.Context, string) error { return nil }

// One call of the replica that takes over whose request or answer is lost costs it a third of the lease, or half a second
// if that is longer.
func TestLostAnswerDelaysTakeOverLittle(t *testing.T) {
	for _, length := range []time.Duration{time.Second, 2 * time.Second, 3 * time.Second} {
		for _, op := range []string{"read", "break unchanged", "acquire"} {
			for _, applied := range []bool{false, true} {
				inCase(t, fmt.Sprint(length, " ", op, " ", applied), func(t *testing.T, c *cluster) {
					a := c.coarsely(brief(length), "a")["a"]
					time.Sleep(30 * time.Second)
					var start atomic.Bool
					b, s := c.replica("b", brief(length)), &far{coarse{c.store}, passes, passes}
					if applied {
						s.after = hangsOnce(op, &start)
					} else {
						s.before = hangsOnce(op, &start)
					}
					b.tap.Store = s
					c.launch(b)
					time.Sleep(30*time.Second + 123*time.Millisecond)
					a.kill()
					killed := time.Now()
					if op == "read" {
						time.Sleep(length / 2)
					}
					start.Store(true)
					time.Sleep(time.Minute)
					runs := c.all()
					if len(runs) != 2 || runs[0].end.After(runs[1].start) {
						t.Fatalf("%d runs; the first one ended at %s", len(runs), runs[0].end)
					}
					look := length/3 + length/30
					if most := length + length/99 + look + max(length/3, 500*time.Millisecond) + 100*time.Millisecond; runs[1].start.Sub(killed) > most {
						t.Errorf("back after %s, want at most %s", runs[1].start.Sub(killed), most)
					}
				})
			}
		}
	}
}

// A replica whose calls take longer than the short time of a first one replaces a dead holder too.
func TestSlowFollowerOfShortLease(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.coarsely(brief(time.Second), "a")["a"]
		time.Sleep(30 * time.Second)
		wait := func(ctx context.Context, _ string) error { return pause(ctx, 350*time.Millisecond) }
		b := c.replica("b", brief(30*time.Second))
		b.tap.Store = &far{coarse{c.store}, wait, wait}
		c.launch(b)
		time.Sleep(30 * time.Second)
		a.kill()
		killed := time.Now()
		time.Sleep(time.Minute)
		if runs := c.all(); len(runs) != 2 || runs[0].end.After(runs[1].start) || runs[1].start.Sub(killed) > 8*time.Second {
			t.Errorf("%d runs; the last began %s after the death", len(runs), runs[len(runs)-1].start.Sub(killed))
		}
	})
}

// The outcome of a run whose lease another tool has ended says so, also where the run beats and a replica may have ended it:
// if the replica that settles the run has seen that no beat was missing.
func TestBrokenShortLeaseIsTold(t *testing.T) {
	for _, length := range []time.Duration{time.Second, 3 * time.Second, 9 * time.Second} {
		for after := range 4 {
			inCase(t, fmt.Sprint(length, " ", after), func(t *testing.T, c *cluster) {
				a := c.coarsely(brief(length), "a")["a"]
				time.Sleep(30 * time.Second)
				c.coarsely(brief(length), "b")
				time.Sleep(30*time.Second + time.Duration(after)*length/12)
				a.kill()
				if err := c.store.Break(t.Context(), "soloist/lead", 0); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Minute)
				if f := c.record("lead").History[0]; f.Reason != "unlocked" {
					t.Errorf("%s: %s", f.Status, f.Reason)
				}
			})
		}
	}
}

// The outcome of a run whose runner died tells no unlock, also if another replica has broken its lease and died then.
func TestDeadHolderOfShortLeaseIsNotToldAsUnlocked(t *testing.T) {
	for _, length := range []time.Duration{time.Second, 3 * time.Second} {
		for after := range 8 {
			inCase(t, fmt.Sprint(length, " ", after), func(t *testing.T, c *cluster) {
				a := c.coarsely(brief(length), "a")["a"]
				time.Sleep(30 * time.Second)
				others := c.coarsely(brief(length), "b", "c")
				time.Sleep(30*time.Second + time.Duration(after)*length/24)
				a.kill()
				others["b"].meets(onNth("acquire", 1, func(func() error) error { others["b"].kill(); return errNetwork }))
				others["c"].meets(fail(errNetwork))
				time.Sleep(3 * length)
				if e, err := c.store.Read(t.Context(), "soloist/lead"); err != nil || e.State != store.Broken {
					t.Fatalf("the lease is %s, %v", e.State, err)
				}
				others["c"].meets(nil)
				time.Sleep(time.Minute)
				if f := c.record("lead").History[0]; f.Reason != "its runner died" {
					t.Errorf("token %d: %s", f.Token, f.Reason)
				}
			})
		}
	}
}
