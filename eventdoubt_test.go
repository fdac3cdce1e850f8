package soloist_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/store"
)

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
