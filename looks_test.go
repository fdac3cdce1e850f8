package soloist_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/store"
)

// A dated store tells the time as HTTP does: in whole seconds.
type dated struct{ store.Store }

func (d dated) Read(ctx context.Context, name string) (store.Entry, error) {
	e, err := d.Store.Read(ctx, name)
	e.Date = e.Date.Truncate(time.Second)
	return e, err
}

func (d dated) Lease(name, id string) store.Lease { return datedLease{d.Store.Lease(name, id)} }

type datedLease struct{ store.Lease }

func (l datedLease) Acquire(ctx context.Context, d time.Duration, etag string) (store.Revision, error) {
	s, err := l.Lease.Acquire(ctx, d, etag)
	s.Date = s.Date.Truncate(time.Second)
	return s, err
}

func (l datedLease) Renew(ctx context.Context) (store.Revision, error) {
	s, err := l.Lease.Renew(ctx)
	s.Date = s.Date.Truncate(time.Second)
	return s, err
}

func (l datedLease) Write(ctx context.Context, etag string, record []byte) (store.Revision, error) {
	s, err := l.Lease.Write(ctx, etag, record)
	s.Date = s.Date.Truncate(time.Second)
	return s, err
}

// Whoever waits for the end of a lease looks once in each third of it, as the
// page on costs has it, also where the store's dates have whole seconds and
// clocks run at rates of their own.
func TestOneLookInAThird(t *testing.T) {
	for _, lease := range []time.Duration{15 * time.Second, 30 * time.Second, time.Minute} {
		for _, drift := range []time.Duration{0, 200, -200} { // millionths
			t.Run(fmt.Sprintf("%s, drift %d", lease, drift), func(t *testing.T) {
				inCluster(t, func(c *cluster) {
					var all []*replica
					for i, name := range []string{"leader", "other"} {
						r := c.replica(name, soloist.Singleton{Name: "work", Lease: lease, Do: func(ctx context.Context, _ *soloist.Run) error {
							<-ctx.Done()
							return nil
						}})
						r.tap.Store = dated{c.store}
						r.tap.meet(faraway(uint64(i)))
						begin := time.Now()
						if name == "other" {
							r.Elapsed = func() time.Duration { gone := time.Since(begin); return gone + gone/1_000_000*drift }
						}
						all = append(all, c.launch(r))
						time.Sleep(time.Minute + 300*time.Millisecond)
					}
					all[1].tap.counts()
					const thirds = 180
					time.Sleep(thirds * lease / 3)
					if n := all[1].tap.counts()["read"]; n < thirds*19/20 || n > thirds*21/20 {
						t.Errorf("%d looks in %d thirds", n, thirds)
					}
				})
			})
		}
	}
}

// A replica that loses the race for each tick takes part in the next one all the
// same: its looks become rarer only while it loses for one and the same tick.
func TestALoserTakesPartInTheNextRace(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := work("@every 5s", D)
		job.Do = nil
		c.start("a", job)
		b := c.replica("b", job)
		b.tap.meet(func(op string, apply func() error) error {
			if op == "acquire" {
				time.Sleep(50 * time.Millisecond)
			}
			return apply()
		})
		c.launch(b)
		time.Sleep(time.Minute + 2*time.Second)
		b.tap.counts()
		const ticks = 100
		time.Sleep(ticks * 5 * time.Second)
		if n := b.tap.counts()["acquire"]; n != ticks {
			t.Errorf("it took part in %d races of %d", n, ticks)
		}
	})
}
