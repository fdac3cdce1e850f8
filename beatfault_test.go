package soloist_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/store"
)

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

// One call of the replica that takes over whose request or answer is lost costs it a third of the lease, or half a second
// if that is longer.
func TestLostAnswerDelaysTakeOverLittle(t *testing.T) {
	for _, length := range []time.Duration{time.Second, 2 * time.Second, 3 * time.Second} {
		for _, op := range []string{"read", "break unchanged", "acquire"} {
			for _, applied := range []bool{false, true} {
				inCase(t, fmt.Sprint(length, " ", op, " ", applied), func(_ *testing.T, c *cluster) {
					a, _ := c.leads(length)
					var start atomic.Bool
					b := c.replica("b", brief(length))
					b.tap.Store = coarse{c.store}
					if applied {
						b.tap.after = hangsOnce(op, &start)
					} else {
						b.tap.before = hangsOnce(op, &start)
					}
					c.launch(b)
					time.Sleep(30*time.Second + 123*time.Millisecond)
					a.kill()
					killed := time.Now()
					if op == "read" {
						time.Sleep(length / 2)
					}
					start.Store(true)
					time.Sleep(time.Minute)
					look := length/3 + length/30
					c.successor(killed, 0, length+length/99+look+max(length/3, 500*time.Millisecond)+100*time.Millisecond)
				})
			}
		}
	}
}

// Without beats the lease of the store does not keep a run, though its renewals succeed. Without renewals beats do not either: the
// lease of the store expires, and a replica that sees it expired acts at once.
func TestShortLeaseNeedsBeatsAndRenewals(t *testing.T) {
	for op, most := range map[string]time.Duration{"write": 3 * time.Second, "renew": 13 * time.Second} {
		inCase(t, op, func(t *testing.T, c *cluster) {
			a, _ := c.leads(3 * time.Second)
			a.meets(fail(errors.New("503"), op))
			failed := time.Now()
			time.Sleep(15 * time.Second)
			if run := c.all()[0]; !errors.Is(run.cause, store.ErrLost) || run.end.Sub(failed) > most {
				t.Errorf("ended %s after the last success with %v", run.end.Sub(failed), run.cause)
			}
		})
	}
}

// A write that is late makes no trust that is over good again.
func TestLateBeat(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a, _ := c.leads(3*time.Second, "b")
		a.meets(func(_ string, apply func() error) error {
			err := apply() // the answers take too long
			time.Sleep(4 * time.Second)
			return err
		})
		time.Sleep(time.Minute)
		disjoint(t, c.all())
		if len(c.all()) < 2 {
			t.Error("nobody took over")
		}
	})
}

// After an outage a replica acts within the short lease and two seconds, whether the lease of the store has outlasted it or not.
func TestShortLeaseAfterOutage(t *testing.T) {
	for _, length := range []time.Duration{time.Second, 3 * time.Second} {
		for _, outage := range []time.Duration{12 * time.Second, time.Minute, time.Hour} {
			inCase(t, length.String()+" after "+outage.String(), func(_ *testing.T, c *cluster) {
				c.leads(length, "b", "c")
				for _, r := range c.started {
					r.meets(fail(errors.New("429")))
				}
				time.Sleep(outage)
				for _, r := range c.started {
					r.meets(nil)
				}
				over := time.Now()
				time.Sleep(time.Minute)
				c.successor(over, 0, length+2*time.Second)
			})
		}
	}
}

// The trust ends in time after the first sending of the last beat that was applied, also if answers are lost,
// beats are sent again, and the reads that find out what became of them are slow.
func TestBeatsOfUnclearOutcome(t *testing.T) {
	const length = 3 * time.Second
	for cut := time.Duration(0); cut < 6*time.Second; cut += 150 * time.Millisecond {
		inCase(t, cut.String(), func(t *testing.T, c *cluster) {
			a, n := c.replica("a", brief(length)), &network{first: map[string]time.Time{}}
			a.tap.Store, a.tap.write = coarse{c.store}, n.write
			a.meets(n.read)
			c.launch(a)
			time.Sleep(time.Minute + cut)
			a.kill()
			time.Sleep(length)
			n.mu.Lock()
			defer n.mu.Unlock()
			run := c.all()[0]
			if most := n.last.Add(length - length/100 - length/6); run.end.IsZero() || run.end.After(most.Add(201*time.Millisecond)) {
				t.Errorf("the run ended at %s, and could be trusted until %s", run.end, most)
			}
			if n.beats < 30 || len(c.all()) != 1 {
				t.Errorf("%d beats, %d runs", n.beats, len(c.all()))
			}
		})
	}
}

// A network loses, after the first two beats, the answer to one of three and the first sending of another; the reads after these
// are slow.
type network struct {
	mu      sync.Mutex
	first   map[string]time.Time // when a write was sent first
	last    time.Time            // when the last write that was applied was
	beats   int
	unclear bool // what became of the last write
}

func (n *network) write(record []byte, apply func() error) error {
	var r store.Record
	if err := json.Unmarshal(record, &r); err != nil {
		return err
	}
	n.mu.Lock()
	_, again := n.first[r.Writer]
	if !again {
		n.first[r.Writer] = time.Now()
		n.beats++
	}
	kind, sent := n.beats%3, n.first[r.Writer]
	n.unclear = n.beats > 2 && kind != 0
	lost, unanswered := n.unclear && kind == 2 && !again, n.unclear
	n.mu.Unlock()
	if lost {
		time.Sleep(450 * time.Millisecond)
		return errNetwork
	}
	err := apply()
	n.mu.Lock()
	defer n.mu.Unlock()
	if err == nil {
		n.last = sent
	}
	if unanswered {
		return errors.Join(err, errNetwork)
	}
	return err
}

func (n *network) read(op string, apply func() error) error {
	n.mu.Lock()
	slow := n.unclear && op == "read"
	n.mu.Unlock()
	if slow {
		time.Sleep(450 * time.Millisecond)
	}
	return apply()
}

// A forgetful store is a coarse one behind a proxy that drops the condition from some calls: they name the ETag that
// the entry has.
type forgetful struct {
	coarse
	drops []string      // "break", "acquire", "write"
	broke *atomic.Int32 // leases of an entry that had changed since the caller has read it
}

// current returns what a call of op names instead of etag.
func (s *forgetful) current(ctx context.Context, op, name, etag string) string {
	if e, err := s.Read(ctx, name); err == nil && slices.Contains(s.drops, op) {
		return e.ETag
	}
	return etag
}

func (s *forgetful) BreakUnchanged(ctx context.Context, name, etag string) error {
	now := s.current(ctx, "break", name, etag)
	if now != etag {
		s.broke.Add(1)
	}
	return s.coarse.BreakUnchanged(ctx, name, now)
}

func (s *forgetful) Lease(name, id string) store.Lease {
	return &forgetfulLease{s.coarse.Lease(name, id), s, name}
}

type forgetfulLease struct {
	store.Lease
	s    *forgetful
	name string
}

func (l *forgetfulLease) Acquire(ctx context.Context, d time.Duration, etag string) (store.Revision, error) {
	return l.Lease.Acquire(ctx, d, l.s.current(ctx, "acquire", l.name, etag))
}

func (l *forgetfulLease) Write(ctx context.Context, etag string, record []byte) (store.Revision, error) {
	return l.Lease.Write(ctx, l.s.current(ctx, "write", l.name, etag), record)
}

// The beats of a holder fail for a while, and its last one arrives just before another replica breaks its lease. Of the
// break, the acquisition and the claim one condition is enough to keep two runs apart.
func TestBreakWithoutCondition(t *testing.T) {
	for _, drops := range [][]string{{"break"}, {"break", "acquire"}, {"break", "write"}, {"break", "acquire", "write"}} {
		t.Run(strings.Join(drops, " "), func(t *testing.T) {
			var broke atomic.Int32
			overlaps := 0
			for cut := time.Duration(0); cut < 40*time.Second; cut += 1050 * time.Millisecond {
				inCase(t, cut.String(), func(t *testing.T, c *cluster) {
					if holderSeemsDead(c, &forgetful{coarse{c.store}, drops, &broke}, cut) {
						overlaps++
					}
				})
			}
			if broke.Load() == 0 {
				t.Error("no lease of a changed entry was broken")
			}
			if kept := len(drops) < 3; kept != (overlaps == 0) {
				t.Errorf("%d times two runs were under way at once", overlaps)
			}
		})
	}
}

// holderSeemsDead has a holder send a beat only after two that fail, and reports whether another run begins before its own has ended.
func holderSeemsDead(c *cluster, s *forgetful, cut time.Duration) (overlaps bool) {
	a, b := c.replica("a", brief(3*time.Second)), c.replica("b", brief(3*time.Second))
	a.tap.Store, b.tap.Store = coarse{c.store}, s
	c.launch(a)
	time.Sleep(time.Minute)
	c.launch(b)
	time.Sleep(time.Minute + cut)
	a.meets(fail(errors.New("503"), "write"))
	time.Sleep(2200 * time.Millisecond)
	a.meets(nil)
	time.Sleep(time.Minute)
	for i, run := range c.all()[1:] {
		before := c.all()[i]
		overlaps = overlaps || before.end.IsZero() || before.end.After(run.start)
	}
	return overlaps
}

// A break that is refused though the entry shows no change is not sent again and again.
func TestRefusedBreakIsRare(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a, rest := c.leads(3*time.Second, "b")
		b := rest["b"].meets(fail(store.ErrChanged, "break unchanged"))
		b.tap.counts()
		a.kill()
		time.Sleep(20 * time.Second)
		if n := b.tap.counts()["break unchanged"]; n < 1 || n > 6 {
			t.Errorf("%d breaks", n)
		}
		c.succession(2)
	})
}

// A request for the outcome that is lost loses no run that has succeeded: it is sent again before others replace the holder.
func TestLostOutcomeOfShortLease(t *testing.T) {
	for _, length := range []time.Duration{2 * time.Second, 3 * time.Second, 10 * time.Second} {
		for took := length; took < 2*length; took += length / 7 {
			inCase(t, length.String()+" "+took.String(), func(t *testing.T, c *cluster) {
				var over atomic.Bool
				job := leased(length, rerun(doing("@every 1h", func(ctx context.Context, _ *soloist.Run) error {
					defer over.Store(true)
					return pause(ctx, took)
				})))
				for _, r := range c.coarsely(job, "a", "b") {
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
				c.wantRuns(1)
				c.wantOutcomes("work", "succeeded 01:00:00")
			})
		}
	}
}
