package soloist_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/store"
)

// The events of a job come in the order of its record, and each outcome in the record is told
// once: over a mixture of retries, stalls, panics, overruns, runs by hand, stops, replicas that
// are cut off, and lost calls and answers.
func TestEventsFollowTheRecord(t *testing.T) {
	for seed := range uint64(6) {
		inCase(t, fmt.Sprint(seed), func(t *testing.T, c *cluster) {
			m := &mixture{c: c, t: t, roll: rand.New(rand.NewPCG(seed, 1)), books: map[*replica]*eventBook{}, seen: map[string]store.Outcome{}}
			m.play(12 * time.Minute)
			m.judge()
		})
	}
}

// A mixture is a cluster whose replicas come and go, with all kinds of runs.
type mixture struct {
	c *cluster
	t *testing.T

	mu   sync.Mutex
	roll *rand.Rand

	up     []*replica
	books  map[*replica]*eventBook
	seen   map[string]store.Outcome // all that the record of the job has had in its history, by outcomeName
	byHand sync.WaitGroup
}

func (m *mixture) below(n int) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.roll.IntN(n)
}

// play lets things happen for d, and looks at the record each second.
func (m *mixture) play(d time.Duration) {
	for range 3 {
		m.join()
	}
	for range int(d / time.Second) {
		time.Sleep(time.Second)
		m.happen()
		m.look()
	}
	for _, r := range m.up {
		r.meets(nil)
	}
	time.Sleep(5 * time.Minute)
	m.byHand.Wait()
	m.c.stopAll()
	m.look()
}

// happen has something happen, now and then.
func (m *mixture) happen() {
	i := m.below(len(m.up))
	switch r := m.up[i]; m.below(60) {
	case 0:
		go r.stop()
		m.up = slices.Delete(m.up, i, i+1)
		m.join()
	case 1:
		r.kill()
		m.up = slices.Delete(m.up, i, i+1)
		m.join()
		time.AfterFunc(2*time.Minute, func() { r.tap.cut.Store(false) })
		time.AfterFunc(4*time.Minute, r.stop)
	case 2, 3:
		request := fmt.Sprint("by-hand-", len(m.seen), "-", m.below(1000))
		m.byHand.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
			defer cancel()
			_, _ = r.RunNow(ctx, "work", request)
		})
	}
}

// join has a new replica join, whose calls to the store get lost now and then, and answers too.
func (m *mixture) join() {
	job := rerun(doing("*/20 * * * * *", m.do))
	job.Retry, job.HeartbeatTimeout = soloist.Retry{MaxTries: 2, Backoff: time.Second}, 10*time.Second
	r := m.c.replica(fmt.Sprint("r", len(m.books)), job)
	r.Grace = 5 * time.Second
	m.books[r] = r.tells()
	m.c.launch(r.meets(func(_ string, apply func() error) error {
		switch m.below(30) {
		case 0:
			return errNetwork
		case 1:
			_ = apply()
			return errNetwork
		}
		return apply()
	}))
	m.up = append(m.up, r)
}

// do is a run of one kind or another.
func (m *mixture) do(ctx context.Context, r *soloist.Run) error {
	switch m.below(12) {
	case 0:
		panic("boom")
	case 1, 2:
		return errors.New("not yet")
	case 3:
		<-ctx.Done() // it stalls
		return ctx.Err()
	case 4:
		<-ctx.Done()
		time.Sleep(20 * time.Second) // and does not return in time
		return nil
	case 5:
		for range 30 { // ticks come due under it
			if err := errors.Join(pause(ctx, time.Second), r.Heartbeat("on the way")); err != nil {
				return err
			}
		}
	case 6:
		return r.Save(ctx, "a line")
	}
	return pause(ctx, time.Second)
}

// outcomeName names what an outcome is of: a run, or a tick or range of ticks that did not run.
func outcomeName(o store.Outcome) string {
	return fmt.Sprint(o.Status, " ", o.Token, " ", o.Tick.Format(time.TimeOnly), " ", o.Request)
}

// look adds what the history of the job shows.
func (m *mixture) look() {
	for _, o := range m.c.record("work").History {
		m.seen[outcomeName(o)] = o
	}
}

// judge checks the order of each replica's events, and compares all of them with the record.
func (m *mixture) judge() {
	told := map[string]int{}
	var doubts []event.Event
	for r, book := range m.books {
		all := book.of("work")
		if text := outOfOrder(all); text != "" {
			m.t.Errorf("%s: %s", r.Replica, text)
		}
		for _, e := range all {
			switch e.Kind {
			case event.Ended, event.Settled:
				told[outcomeName(e.Outcome)]++
			case event.Unrecorded, event.NotClaimed:
				doubts = append(doubts, e)
			}
		}
	}
	if len(m.seen) < 20 {
		m.t.Errorf("only %d outcomes", len(m.seen))
	}
	for name, o := range m.seen {
		if n := told[name]; n > 1 || n == 0 && !slices.ContainsFunc(doubts, func(e event.Event) bool { return doubtful(o, e) }) {
			m.t.Errorf("%q is told %d times", name, n)
		}
	}
	for name := range told {
		_, written := m.seen[name]
		open := slices.ContainsFunc([]store.Status{store.Abandoned, store.Stalled}, func(s store.Status) bool { return name[:len(s)] == string(s) })
		if !written && !open { // an open tick has no outcome yet
			m.t.Errorf("%q is told and not in the record", name)
		}
	}
}

// doubtful reports whether an outcome may be in the write that an event says to be in doubt: that
// of the run, or that of a tick which came due before the event and was settled by the same write.
func doubtful(o store.Outcome, e event.Event) bool {
	if o.Token != 0 {
		return o.Token == e.Run.Token || e.Kind == event.NotClaimed && (e.Run.Token == 0 || o.Token < e.Run.Token)
	}
	return !o.Tick.After(e.Time) && (!o.Tick.Before(e.Run.Tick) || e.Kind == event.NotClaimed)
}

// outOfOrder returns what is wrong with the order of one replica's events of one job, empty if
// nothing is.
func outOfOrder(all []event.Event) string {
	var run event.Run  // the last that was claimed
	var tick time.Time // the last that was claimed or settled
	open, tries := false, 0
	leaseLost := false       // that of run
	rest := map[int64]bool{} // tokens of runs that have lost their lease, or were Unrecorded: their outcome may come after the next claim
	for i, e := range all {
		if rest[e.Run.Token] && (e.Kind == event.Ended || e.Kind == event.Unrecorded) {
			rest[e.Run.Token] = e.Kind == event.Unrecorded // Ended follows if a read shows the outcome
			continue
		}
		wrong := false
		switch e.Kind {
		case event.Claimed:
			if open && leaseLost && e.Run.Request != "" {
				rest[run.Token], open = true, false
			}
			wrong = open || e.Run.Token <= run.Token || e.Run.Request == "" && e.Run.Tick.Before(tick)
			run, open, tries, leaseLost = e.Run, true, 0, false
		case event.TookOver:
			wrong = !open || e.Run.Token != run.Token || all[i-1].Kind != event.Claimed
		case event.Started:
			tries++
			wrong = !open || e.Run.Token != run.Token || e.Run.Try != tries
		case event.Heartbeat, event.Saved, event.TryFailed, event.Unhealthy, event.Panicked, event.HandingOver, event.Stalled, event.Overrun:
			wrong = !open || e.Run.Token != run.Token || tries == 0
		case event.NotStarted:
			wrong = !open || e.Run.Token != run.Token || e.Run.Try != tries
			open = tries > 1 || errors.Is(e.Err, soloist.ErrCancelled) // the outcome follows
		case event.Ended, event.Unrecorded, event.TakenBack:
			cancelled := e.Outcome.Status == store.Cancelled // perhaps before it started
			wrong = !open || e.Run.Token != run.Token || (tries == 0) != (e.Kind == event.TakenBack) && !cancelled
			open, rest[e.Run.Token] = false, e.Kind == event.Unrecorded
		case event.Settled:
			wrong = e.Run.Request == "" && e.Run.Tick.Before(tick)
		case event.Renewed, event.Lost:
			wrong = e.Run.Token != 0 && e.Run.Token != run.Token && !rest[e.Run.Token]
			leaseLost = leaseLost || e.Kind == event.Lost
		}
		if wrong {
			return fmt.Sprintf("%s of token %d, tick %s, try %d, after %s", e.Kind, e.Run.Token, e.Run.Tick.Format(time.TimeOnly), e.Run.Try, kindsOf(all[max(0, i-8):i]))
		}
		if (e.Kind == event.Claimed || e.Kind == event.Settled) && e.Run.Request == "" {
			tick = e.Run.Tick
		}
	}
	return ""
}

func kindsOf(all []event.Event) (kinds []string) {
	for _, e := range all {
		kinds = append(kinds, fmt.Sprint(e.Kind, " ", e.Run.Token))
	}
	return kinds
}

// outcomesIn counts the outcomes that events report.
func outcomesIn(books ...*eventBook) map[store.Status]int {
	n := map[store.Status]int{}
	for _, b := range books {
		for _, e := range b.of("work", event.Ended, event.Settled) {
			n[e.Outcome.Status]++
		}
	}
	return n
}

// What a claim has settled is reported once, also if the claim and the read after it get no answer: the replica that
// has sent it finds out later whether it was applied.
func TestOutcomesOfUnconfirmedClaim(t *testing.T) {
	for name, tt := range map[string]struct {
		applied, other bool
		want           map[store.Status]int
	}{
		"applied":                          {true, false, map[store.Status]int{store.Missed: 1, store.Abandoned: 1}},
		"applied, and another goes on":     {true, true, map[store.Status]int{store.Missed: 1, store.Abandoned: 1}},
		"not applied, and another does it": {false, true, map[store.Status]int{store.Missed: 1, store.Succeeded: 1}},
	} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			job := work("@hourly", time.Minute)
			c.replica("first", job).wake()
			until(3*time.Hour + 10*time.Minute)
			a, b := c.replica("a", job).meets(cutOffAfter("write", tt.applied, time.Hour)), c.replica("b", job)
			books := []*eventBook{a.tells(), b.tells()}
			if _, err := a.RunDue(c.within(20*time.Second), soloist.Wake{}); err == nil {
				t.Error("no error")
			}
			time.Sleep(2 * D)
			if tt.other {
				b.wake()
			}
			_, _ = a.meets(nil).RunDue(c.t.Context(), soloist.Wake{}) // its error may be of the claim
			if got := outcomesIn(books...); !maps.Equal(got, tt.want) {
				t.Errorf("got %v, want %v; the record has %q", got, tt.want, c.outcomes("work"))
			}
		})
	}
}

// The record only counts the outcomes of a backfill: who does not report one leaves it out of the history for good.
func TestOutcomesOfUnconfirmedBackfill(t *testing.T) {
	for _, parallel := range []int{1, 3} {
		for lost := range 5 {
			inCase(t, fmt.Sprintf("%d at a time, write %d", parallel, lost+1), func(t *testing.T, c *cluster) {
				job := work("@hourly", time.Minute)
				c.replica("first", job).wake()
				until(7*time.Hour + 10*time.Minute)
				c.replica("first", job).wake()
				fill := soloist.Backfill{From: time.Now().Add(-7 * time.Hour), To: time.Now(), All: true, Parallel: parallel}
				c.order(soloist.Order{Kind: store.OrderBackfill, Backfill: fill}, job)
				dead := c.replica("dead", job)
				c.launch(dead)
				time.Sleep(30 * time.Second)
				dead.kill()
				time.Sleep(2 * D)
				a := c.replica("a", job)
				book, cut := a.tells(), cutOffAfter("write", true, time.Hour)
				a.meets(onNth("write", int64(lost+1), func(apply func() error) error {
					a.meets(cut)
					return cut("write", apply)
				}))
				_, _ = a.RunDue(c.within(3*time.Minute), soloist.Wake{})
				time.Sleep(2 * D)
				a.meets(nil)
				for range 5 {
					_, _ = a.RunDue(c.t.Context(), soloist.Wake{})
					time.Sleep(2 * D)
				}
				got := outcomesIn(book)
				for status, n := range c.record("work").Backfill.Counts {
					if int(n) != got[status] {
						t.Errorf("%d are counted as %s, and %d are reported", n, status, got[status])
					}
				}
			})
		}
	}
}

// The outcome of a run whose write got no answer is reported once a read shows it.
func TestUnconfirmedOutcomeIsReportedOnceRead(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a, b := c.replica("a", work("@every 10m", 10*time.Second)), c.replica("b", work("@every 10m", 10*time.Second))
		books := []*eventBook{a.tells(), b.tells()}
		c.launch(a)
		time.Sleep(10*time.Minute + 5*time.Second)
		a.meets(cutOffAfter("write", true, time.Hour))
		c.launch(b)
		time.Sleep(25 * time.Minute)
		if got := books[0].of("work", event.Unrecorded, event.Ended); len(got) != 0 && got[0].Kind == event.Ended {
			t.Errorf("reported before it is read: %+v", got)
		}
		a.meets(nil)
		time.Sleep(4 * time.Minute)
		ends := books[0].of("work", event.Unrecorded, event.Ended)
		kinds := []event.Kind{}
		for _, e := range ends {
			kinds = append(kinds, e.Kind)
		}
		if !slices.Equal(kinds, []event.Kind{event.Unrecorded, event.Ended}) || outcomesIn(books...)[store.Succeeded] != 3 {
			t.Errorf("got %s, %v; the record has %q", kinds, outcomesIn(books...), c.outcomes("work"))
		}
	})
}
