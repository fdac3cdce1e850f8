package soloist_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/store"
)

// A record with a lease that the store does not take is the trouble of its job
// alone: the store is not called unreachable.
func TestALeaseBeyondTheStoresLimitsIsRefused(t *testing.T) {
	for text, status := range map[string]store.Status{
		"86400": store.Running, "61": store.Succeeded, "0.001": store.Running, "0": store.Running, "30.5": store.Stalled,
	} {
		t.Run(text+" s, "+string(status), func(t *testing.T) {
			inCluster(t, func(c *cluster) {
				record := c.foreign(text, status)
				a := c.start("a", work("@every 1m", time.Second))
				time.Sleep(10 * time.Minute)
				h := a.Health()
				if got := h.Broken["work"]; h.Storage != nil || got == nil || !strings.Contains(got.Error(), "the record has a lease of") || !strings.Contains(got.Error(), "1s to 1m0s") {
					t.Errorf("health is %+v", h)
				}
				if all, err := a.Status(c.t.Context()); err != nil || all[0].Err == nil || !strings.Contains(all[0].Err.Error(), "lease of") {
					t.Errorf("status is %+v, %v", all, err)
				}
				if got := string(c.raw("work")); got != record || len(c.all()) > 0 {
					t.Errorf("%d runs, and the record is now %s", len(c.all()), got)
				}
			})
		})
	}
}

// A lease that was shorter than the store takes today does no harm once its
// run has ended.
func TestAShortLeaseOfARunThatHasEnded(t *testing.T) {
	inCluster(t, func(c *cluster) {
		c.foreign("0.5", store.Succeeded)
		a := c.start("a", work("@every 1m", time.Second))
		time.Sleep(2 * time.Minute)
		if h := a.Health(); h.Broken["work"] != nil || len(c.all()) == 0 {
			t.Errorf("%d runs, health %+v", len(c.all()), h)
		}
	})
}

// foreign makes the entry of the job "work" with this lease in its record.
func (c *cluster) foreign(lease string, status store.Status) string {
	c.t.Helper()
	now := time.Now().UTC().Add(-time.Minute) // before any replica started
	record := fmt.Sprintf(`{"schema":1,"app":"soloist","job":"work","created":%[1]q,"spec":"x","since":%[1]q,"token":7,"writer":"w","watermark":%[1]q,"tick":%[1]q,"attempt":1,"status":%[2]q,"replica":"b","lease":%[3]s,"claimed":%[1]q}`,
		now.Format(time.RFC3339), status, lease)
	if !json.Valid([]byte(record)) {
		c.t.Fatal(record)
	}
	if _, err := c.store.Create(c.t.Context(), "soloist/work", []byte(record)); err != nil {
		c.t.Fatal(err)
	}
	return record
}

// A checkpoint that is too large stays so: the run learns of it at once, and
// the store is not called unreachable.
func TestACheckpointThatIsTooLargeFailsItsRun(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := soloist.Job{Name: "work", Schedule: "@every 1m", Lease: D, Do: func(ctx context.Context, run *soloist.Run) error {
			var n int
			err := run.Load(ctx, &n)
			if !errors.Is(err, store.ErrTooLarge) || errors.Is(err, store.ErrLost) || ctx.Err() != nil {
				t.Errorf("Load says %v, and the run's context %v", err, ctx.Err())
			}
			return err
		}}
		a := c.start("a", job)
		a.tap.meet(func(op string, apply func() error) error {
			if op == "load" {
				return fmt.Errorf("load: %w", store.ErrTooLarge)
			}
			return apply()
		})
		time.Sleep(10*time.Minute + 30*time.Second)
		if h := a.Health(); h.Storage != nil || len(h.Broken) > 0 {
			t.Errorf("health is %+v", h)
		}
		if loads, runs := a.tap.counts()["load"], len(c.all()); runs < 10 || loads != runs {
			t.Errorf("%d loads in %d runs", loads, runs)
		}
		if r := c.record("work"); r.Status != store.Failed || !strings.Contains(r.Error, store.ErrTooLarge.Error()) {
			t.Errorf("the record says %s: %s", r.Status, r.Error)
		}
	})
}

// A load that fails first and then finds too much leaves no trouble behind.
func TestTooLargeAfterATrouble(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := soloist.Job{Name: "work", Schedule: "0 1 0 * * *", Lease: D, Do: func(ctx context.Context, run *soloist.Run) error {
			err := run.Load(ctx, new(int))
			time.Sleep(time.Hour)
			return err
		}}
		a, loads := c.start("a", job), 0
		a.tap.meet(func(op string, apply func() error) error {
			if op != "load" {
				return apply()
			}
			if loads++; loads < 4 {
				return errNetwork
			}
			return store.ErrTooLarge
		})
		time.Sleep(30 * time.Minute)
		if h := a.Health(); h.Storage != nil || len(h.Broken) > 0 || loads != 4 {
			t.Errorf("after %d loads health is %+v", loads, h)
		}
	})
}
