package soloist_test

import (
	"context"
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
