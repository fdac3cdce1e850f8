package soloist_test

import (
	"fmt"
	"testing"
	"time"
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
