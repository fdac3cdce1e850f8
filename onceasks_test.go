package soloist_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
)

// Work that says that another try would fail as well is given up by all replicas, those that come later
// too, and each says why. The next key is work of its own.
func TestOnceThatFailsForGood(t *testing.T) {
	inCluster(t, func(c *cluster) {
		do := func(context.Context, *soloist.Run) error {
			return fmt.Errorf("migrate: %w", soloist.Permanent(errors.New("the column exists")))
		}
		all := c.replicas("a", "b", "c")
		errs := c.migrate(c.t.Context(), "v1", soloist.Retry{}, do, all...)
		errs = append(errs, c.migrate(c.t.Context(), "v1", soloist.Retry{MaxTries: 5}, do, append(all, c.replica("d"))...)...)
		for _, err := range errs {
			wantError(t, err, `"migrate"`, `"v1"`, "not tried again", "the column exists")
		}
		c.wantRuns(1)
		if errs := c.migrate(c.t.Context(), "v2", soloist.Retry{}, nil, all...); errors.Join(errs...) != nil {
			t.Error("the next key:", errs)
		}
	})
}

// A stop is no failure, whatever the work says of it, and also once the work has failed after that.
func TestOnceThatIsStoppedIsNotGivenUp(t *testing.T) {
	inCluster(t, func(c *cluster) {
		ctx, cancel := context.WithCancel(c.t.Context())
		time.AfterFunc(time.Minute, cancel)
		c.migrate(ctx, "v1", soloist.Retry{}, func(ctx context.Context, _ *soloist.Run) error {
			return soloist.Permanent(pause(ctx, time.Hour))
		}, c.replica("a"))
		tries := 0
		do := func(context.Context, *soloist.Run) error {
			if tries++; tries == 1 {
				return errors.New("the database is locked")
			}
			return nil
		}
		if errs := c.migrate(c.t.Context(), "v1", soloist.Retry{}, do, c.replica("b")); errs[0] != nil {
			t.Error(errs[0])
		}
		c.wantRuns(3)
	})
}

// The pause that work asks for is kept by all replicas, also after a restart of the one that has
// failed. It holds for one try, and does not shorten the Backoff.
func TestOnceThatAsksForPause(t *testing.T) {
	inCluster(t, func(c *cluster) {
		asked := []time.Duration{20 * time.Minute, time.Second, 0, -time.Hour}
		tries := 0
		do := func(context.Context, *soloist.Run) error {
			if tries++; tries <= len(asked) {
				return soloist.RetryAfter(errors.New("throttled"), asked[tries-1])
			}
			return nil
		}
		retry := soloist.Retry{Backoff: time.Minute}
		ctx := c.within(30 * time.Second)
		c.migrate(ctx, "v1", retry, do, c.replica("a")) // a does not come back
		for _, err := range c.migrate(c.t.Context(), "v1", retry, do, c.replicas("b", "c")...) {
			if err != nil {
				t.Error(err)
			}
		}
		c.wantRuns(5)
		for i, want := range []time.Duration{20 * time.Minute, 2 * time.Minute, 4 * time.Minute, 5 * time.Minute} {
			if got := c.all()[i+1].start.Sub(c.all()[i].end); got < want || got > want+2*time.Second {
				t.Errorf("try %d begins %s after the one before, want %s", i+2, got, want)
			}
		}
	})
}

// A pause beyond all measure leaves a record that can be read.
func TestOnceThatAsksForEndlessPause(t *testing.T) {
	inCluster(t, func(c *cluster) {
		do := func(context.Context, *soloist.Run) error {
			return soloist.RetryAfter(errors.New("never"), math.MaxInt64)
		}
		for _, name := range []string{"a", "b"} {
			errs := c.migrate(c.within(time.Hour), "v1", soloist.Retry{Backoff: time.Second}, do, c.replica(name))
			wantError(t, errs[0], "failed on a: never", context.DeadlineExceeded.Error())
		}
		c.wantRuns(1)
	})
}

// What was not begun is not told as a failure that is tried again, least of all at the end.
func TestOnceTellsWhatWasNotBegun(t *testing.T) {
	for name, f := range map[string]fault{"reads are refused": fail(fs.ErrPermission), "nothing is answered": fail(errNetwork), "writes are refused": failWrites(fs.ErrPermission)} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			a := c.replica("a").meets(f)
			errs := c.migrate(c.within(time.Hour), "v1", soloist.Retry{}, nil, a)
			wantError(t, errs[0], context.DeadlineExceeded.Error())
			time.Sleep(time.Second) // the log has a queue
			a.wantLines(0, "has failed")
			if len(a.log.lines("level=WARN")) == 0 {
				t.Error("nothing is told")
			}
			want := map[string]int{"writes are refused": 1}[name]
			a.wantLines(want, "will be tried again")
			a.wantLines(want, "not known to be done", "grant it write access")
			c.wantRuns(0)
		})
	}
}
