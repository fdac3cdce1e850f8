package cluster_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/store"
)

// A hub carries hints between the stores of some replicas.
type hub struct {
	carry func(name string) []string // what becomes of a hint

	mu   sync.Mutex
	ears map[*watched]func(name string)
}

// replica makes a replica whose store is a Watcher.
func (h *hub) replica(c *cluster, name string, work ...soloist.Work) *replica {
	r := c.replica(name, work...)
	r.Store = &watched{r.tap, h}
	return r
}

// changed gives a hint to all but the store that has made the change; nil: to all.
func (h *hub) changed(by *watched, name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for s, changed := range h.ears {
		for _, hint := range h.carry(name) {
			if s != by {
				changed(hint)
			}
		}
	}
}

// A watched is a tap that is a Watcher, too.
type watched struct {
	*tap
	hub *hub
}

func (s *watched) Watch(ctx context.Context, _ string, changed func(string)) error {
	set := func(changed func(string)) {
		s.hub.mu.Lock()
		defer s.hub.mu.Unlock()
		if s.hub.ears == nil {
			s.hub.ears = map[*watched]func(string){}
		}
		if s.hub.ears[s] = changed; changed == nil {
			delete(s.hub.ears, s)
		}
	}
	set(changed)
	<-ctx.Done()
	set(nil)
	return nil
}

func (s *watched) WriteDocument(ctx context.Context, name, etag string, body []byte) (store.Revision, error) {
	defer s.hub.changed(s, name)
	return s.tap.WriteDocument(ctx, name, etag, body)
}

func (s *watched) Lease(name, id string) store.Lease {
	return &watchedLease{s.tap.Lease(name, id).(*tapLease), func() { s.hub.changed(s, name) }}
}

type watchedLease struct {
	*tapLease
	changed func()
}

func (l *watchedLease) Release(ctx context.Context) error {
	defer l.changed()
	return l.tapLease.Release(ctx)
}

// What becomes of a hint.
func arrives(name string) []string { return []string{name} }
func isLost(string) []string       { return nil }

// A lease that is freed, an order, and the outcome that a follower waits for are seen at once where hints say so, and
// by the reads that come anyway where they do not.
func TestHintsBringReadsForward(t *testing.T) {
	for name, row := range map[string]struct {
		carry  func(name string) []string
		within bool // hints bring reads forward
	}{
		"as they are":   {arrives, true},
		"lost":          {isLost, false},
		"twice":         {func(name string) []string { return []string{name, name} }, true},
		"after a gap":   {func(string) []string { return []string{""} }, true},
		"of other jobs": {func(string) []string { return []string{"soloist/unknown", "other/lead", "soloist/.other"} }, false},
	} {
		seen := func(c *cluster, what string, took, polled time.Duration) {
			t.Helper()
			most, least := 100*time.Millisecond, time.Duration(0)
			if !row.within {
				most, least = polled, time.Second
			}
			c.wrong(took < least || took > most, "%s is seen after %s, want %s to %s", what, took, least, most)
		}
		inCase(t, name+": a lease and an order", func(_ *testing.T, c *cluster) {
			h := &hub{carry: row.carry}
			a := c.launch(h.replica(c, "a", leader()))
			time.Sleep(time.Second)
			c.launch(h.replica(c, "b", leader()))
			until(23 * time.Second)
			a.stop()
			stopped := time.Now()
			time.Sleep(D)
			led := c.last()
			c.wrong(led.replica != "b", "%s leads", led.replica)
			seen(c, "the lease", led.start.Sub(stopped), D/3+time.Second)

			until(71500 * time.Millisecond)
			ordered := time.Now()
			order := soloist.Order{Kind: soloist.OrderStepDown, Job: "lead"}
			if _, err := h.replica(c, "desk", leader()).Order(c.t.Context(), order); err != nil {
				c.t.Error(err)
			}
			time.Sleep(10 * time.Second)
			for _, r := range c.all() {
				if r.start.Equal(led.start) {
					seen(c, "the order", r.end.Add(-200*time.Millisecond).Sub(ordered), 5*time.Second)
				}
			}
		})
		inCase(t, name+": an outcome", func(_ *testing.T, c *cluster) {
			h := &hub{carry: row.carry}
			all := []soloist.Work{importing("0 * * * *", 10*time.Minute), following("report", "import", time.Second)}
			a := h.replica(c, "a", all...)
			a.Grace = time.Hour
			c.launch(a)
			until(time.Hour + time.Minute)
			c.launch(h.replica(c, "b", all...))
			time.Sleep(time.Minute)
			a.stop() // it runs to its end, and takes nothing new
			ended := time.Now()
			time.Sleep(2 * time.Minute)
			c.wrong(c.last().Job != "report", "no report in two minutes")
			seen(c, "the outcome", c.last().start.Sub(ended), time.Minute)
		})
	}
}

// However many hints come, an entry and the orders are read four times a second at most, and what is not waited for is not
// read at all.
func TestStormOfHintsIsBounded(t *testing.T) {
	inCluster(t, func(c *cluster) {
		h := &hub{carry: arrives}
		c.launch(h.replica(c, "a", leader()))
		time.Sleep(time.Second)
		b := c.launch(h.replica(c, "b", leader()))
		idle := c.launch(h.replica(c, "idle", work("0 * * * *", 0)))
		time.Sleep(2 * time.Second)
		b.tap.counts()
		idle.tap.counts()
		const d = time.Minute
		for begin := time.Now(); time.Since(begin) < d; time.Sleep(time.Millisecond) {
			h.changed(nil, "")
		}
		calls, orders := b.tap.countsAndOrders()
		for what, n := range map[string]int{"the entry": calls["read"], "the orders": orders} {
			c.wrong(n < 60 || n > 4*60+2, "a storm of a minute has %s read %d times", what, n)
		}
		c.wrong(len(calls) != 1, "calls beside reads: %v", calls)
		if n := idle.tap.counts()["read"]; n > 2 {
			c.t.Errorf("an idle job is read %d times", n)
		}
		c.wantRuns(1)
	})
}
