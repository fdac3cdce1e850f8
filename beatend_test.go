package soloist_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/store"
)

// A request for the outcome that is lost loses no run that has succeeded: it is sent again before others replace the holder.
func TestLostOutcomeOfShortLease(t *testing.T) {
	for _, length := range []time.Duration{2 * time.Second, 3 * time.Second, 10 * time.Second} {
		for took := length; took < 2*length; took += length / 7 {
			inCase(t, length.String()+" "+took.String(), func(t *testing.T, c *cluster) {
				var over atomic.Bool
				job := leased(length, rerun(doing("@every 1h", func(ctx context.Context, _ *soloist.Run) error {
					err := pause(ctx, took)
					over.Store(true)
					return err
				})))
				all := c.coarsely(job, "a", "b")
				for _, r := range all {
					lost := false
					r.meets(func(op string, apply func() error) error {
						if op == "write" && over.Load() && !lost {
							lost = true
							time.Sleep(length / 6) // until the caller gives up
							return context.DeadlineExceeded
						}
						return apply()
					})
				}
				time.Sleep(time.Hour + time.Minute)
				if runs := c.all(); len(runs) != 1 {
					t.Errorf("%d runs", len(runs))
				}
				if r := c.record("work"); r.Run.Status != store.Succeeded {
					t.Errorf("%s: %s", r.Run.Status, r.Run.Error)
				}
			})
		}
	}
}

// A holder that dies between two ticks that are near to each other has not kept the lease from one to the other.
func TestFrequentTicksOfShortLease(t *testing.T) {
	inCluster(t, func(c *cluster) {
		all := c.coarsely(leased(3*time.Second, work("@every 10s", 20*time.Millisecond)), "a", "b")
		time.Sleep(time.Minute + time.Second)
		runs := c.all()
		all[runs[len(runs)-1].replica].kill()
		time.Sleep(10 * time.Second)
		if now := c.all(); len(now) <= len(runs) || now[len(now)-1].start.Sub(runs[len(runs)-1].start) > 11*time.Second {
			t.Errorf("%d runs, %d before the death", len(now), len(runs))
		}
	})
}

// A replica whose store cannot break leases waits for the lease of the store, also if a holder beats.
func TestBeatsSeenWithoutBreak(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.coarsely(brief(3*time.Second), "a")["a"]
		time.Sleep(time.Minute)
		b := c.replica("b", brief(30*time.Second))
		b.Store = struct{ store.Store }{coarse{c.store}}
		c.launch(b)
		time.Sleep(time.Minute)
		a.kill()
		killed := time.Now()
		time.Sleep(time.Minute)
		if runs := c.all(); len(runs) != 2 || runs[1].replica != "b" || runs[1].start.Sub(killed) < 9*time.Second || runs[1].start.Sub(killed) > 22*time.Second {
			t.Errorf("%d runs; the last began %s after the death", len(runs), runs[len(runs)-1].start.Sub(killed))
		}
	})
}

// A break that is refused though the entry shows no change is not sent again and again.
func TestRefusedBreakIsRare(t *testing.T) {
	inCluster(t, func(c *cluster) {
		all := c.coarsely(brief(3*time.Second), "a", "b")
		time.Sleep(time.Minute)
		first := c.all()[0].replica
		other := map[string]string{"a": "b", "b": "a"}[first]
		all[other].meets(func(op string, apply func() error) error {
			if op == "break unchanged" {
				return store.ErrChanged
			}
			return apply()
		})
		all[other].tap.counts()
		all[first].kill()
		time.Sleep(20 * time.Second)
		if n := all[other].tap.counts()["break unchanged"]; n < 1 || n > 6 {
			t.Errorf("%d breaks", n)
		}
		if runs := c.all(); len(runs) != 2 {
			t.Errorf("%d runs", len(runs))
		}
	})
}

// What is done once with a short lease begins again soon after a death.
func TestOnceOfShortLeaseBeginsAgain(t *testing.T) {
	inCluster(t, func(c *cluster) {
		dying := &tap{Store: coarse{c.store}, t: t}
		once := func(s store.Store, replica string, do func(context.Context, *soloist.Run) error) *soloist.Once {
			return &soloist.Once{Store: s, Replica: replica, Name: "migrate", Key: "v2", Lease: 3 * time.Second, Do: do,
				Retry: soloist.Retry{Backoff: 100 * time.Millisecond}}
		}
		ctx, cancel := context.WithCancel(c.t.Context())
		begun, ended := make(chan struct{}), make(chan struct{})
		defer func() { cancel(); <-ended }()
		go func() {
			defer close(ended)
			_ = once(dying, "a", func(ctx context.Context, _ *soloist.Run) error {
				close(begun)
				<-ctx.Done()
				return ctx.Err()
			}).Run(ctx)
		}()
		<-begun
		time.Sleep(time.Second)
		dying.cut.Store(true)
		killed, again := time.Now(), time.Time{}
		if err := once(coarse{c.store}, "b", func(context.Context, *soloist.Run) error { again = time.Now(); return nil }).Run(c.within(time.Minute)); err != nil {
			t.Fatal(err)
		}
		if gap := again.Sub(killed); gap < 2*time.Second || gap > 6*time.Second {
			t.Errorf("begun again after %s", gap)
		}
	})
}

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

// The outcome of a run whose runner died names no unlock, also if another replica has broken its lease and then died.
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
