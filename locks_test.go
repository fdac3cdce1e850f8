package soloist_test

import (
	"context"
	"strings"
	"testing"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/store"
)

// lockRecord reads the record of an entry that is no job's.
func (c *cluster) lockRecord(name string) store.Record {
	c.t.Helper()
	e, err := c.store.Read(c.t.Context(), "soloist/"+name)
	if err != nil {
		c.t.Fatal(err)
	}
	rec, err := store.DecodeRecord(e.Record, "soloist", name)
	if err != nil {
		c.t.Fatal(err)
	}
	return rec
}

func TestRunHasLocksOfItsStoreAndReplica(t *testing.T) {
	inCluster(t, func(c *cluster) {
		nested := int64(0)
		job := soloist.Job{Name: "work", Schedule: "@every 1h", Do: func(ctx context.Context, run *soloist.Run) error {
			return run.Lock("tenant-42").Do(ctx, func(ctx context.Context, held *soloist.Run) error {
				return held.Lock("inner").Do(ctx, func(_ context.Context, inner *soloist.Run) error {
					nested = inner.Token
					return nil
				})
			})
		}}
		outcome, err := c.replica("a", job).RunNow(c.t.Context(), "work", "now")
		if err != nil || outcome.Status != store.Succeeded {
			t.Fatalf("got %+v, %v", outcome, err)
		}
		outer, inner := c.lockRecord("0-lock-tenant-42"), c.lockRecord("0-lock-inner")
		if outer.Run.Replica != "a" || inner.Run.Replica != "a" || inner.Token != nested || nested == 0 {
			t.Errorf("got the holders %q and %q, and the token %d in place of %d", outer.Run.Replica, inner.Run.Replica, nested, inner.Token)
		}
	})
}

// The lock that a run has is that of the scheduler.
func TestLockOfRunIsThatOfScheduler(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := soloist.Job{Name: "work", Schedule: "@every 1h", Do: func(ctx context.Context, run *soloist.Run) error {
			return run.Lock("tenant-42").TryDo(ctx, func(context.Context, *soloist.Run) error { return nil })
		}}
		a := c.replica("a", job)
		err := c.replica("b", job).Lock("tenant-42").Do(c.t.Context(), func(ctx context.Context, _ *soloist.Run) error {
			outcome, err := a.RunNow(ctx, "work", "now")
			if err != nil || outcome.Status != store.Failed || !strings.Contains(outcome.Reason, soloist.ErrHeld.Error()) {
				t.Errorf("got %+v, %v", outcome, err)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
}

func TestLockOfRunWithoutScheduler(t *testing.T) {
	run := &soloist.Run{}
	err := run.Lock("tenant-42").Do(t.Context(), func(context.Context, *soloist.Run) error { return nil })
	if want := `lock "tenant-42": Store is nil`; err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
}
