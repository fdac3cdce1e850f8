package soloist_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/store"
)

// A death is a failure also if it is the last one, and its pause is kept.
func TestDeathsCountAsTriesOfOnce(t *testing.T) {
	for _, most := range []int{1, 3} {
		inCase(t, fmt.Sprint(most), func(t *testing.T, c *cluster) {
			var begun []time.Time
			for i := range 6 {
				r := c.replica(fmt.Sprint("r", i))
				o := &soloist.Once{Name: "m", Key: "v1", Lease: D, Retry: soloist.Retry{MaxTries: most, Backoff: time.Minute},
					Do: func(ctx context.Context, _ *soloist.Run) error {
						begun = append(begun, time.Now())
						r.kill()
						<-ctx.Done()
						return errors.New("dead")
					}}
				r.Bind(o)
				if err := o.Run(c.within(10 * time.Minute)); err == nil {
					t.Errorf("%s: no error", r.Replica)
				}
			}
			if len(begun) != most {
				t.Errorf("begun %d times, want %d", len(begun), most)
			}
			for i := 1; i < len(begun); i++ {
				if pause := begun[i].Sub(begun[i-1]); pause < time.Minute {
					t.Errorf("begun again %s after the last time", pause)
				}
			}
		})
	}
}

// A claim whose work does not begin is no try, if its replica can take it back before another one settles it.
func TestOnceThatDidNotBeginIsNoTry(t *testing.T) {
	for name, meet := range map[string]func(*replica){
		"no answer for 3 s":        func(r *replica) { r.meets(away(3 * time.Second)) },
		"no answer for two leases": func(r *replica) { r.meets(away(2 * D)) },
		"suspended before it begins": func(r *replica) {
			var machine suspended
			r.on(&machine).meets(after("write", sync.OnceFunc(func() { machine.slept.Store(int64(2 * D)) })))
		},
	} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			a := c.replica("a")
			meet(a)
			if errs := c.migrate(c.t.Context(), "v1", soloist.Retry{MaxTries: 1}, nil, a); errs[0] != nil {
				t.Error(errs[0])
			}
			c.wantRuns(1)
		})
	}
}

// A holder that was cut off may go on. Who gives the work up because of it has written so before: nothing succeeds afterwards.
func TestOnceIsGivenUpOnlyByItsRecord(t *testing.T) {
	for _, cut := range []time.Duration{2 * time.Second, time.Minute} {
		inCase(t, fmt.Sprint("cut off for ", cut), func(t *testing.T, c *cluster) {
			a, b := c.replica("a"), c.replica("b")
			once := func(r *replica) *soloist.Once {
				o := &soloist.Once{Name: "m", Key: "v1", Lease: D, Retry: soloist.Retry{MaxTries: 1},
					Do: func(context.Context, *soloist.Run) error { time.Sleep(50 * time.Second); return nil }}
				r.Bind(o)
				return o
			}
			ended := make(chan error)
			go func() { ended <- once(a).Run(c.within(10 * time.Minute)) }()
			time.Sleep(5 * time.Second)
			a.tap.cut.Store(true)
			time.AfterFunc(cut, func() { a.tap.cut.Store(false) })
			err := once(b).Run(c.within(10 * time.Minute))
			rec := c.record(strings.TrimPrefix(c.onlyEntry("soloist"), "soloist/"))
			<-ended
			time.Sleep(10 * time.Minute)
			later := c.record(rec.Job)
			if gaveUp := err != nil; gaveUp != (cut == time.Minute) || gaveUp == (later.Run.Status == store.Succeeded) || later.Run.Status != rec.Run.Status {
				t.Errorf("got %v while the record said %s, and it says %s in the end", err, rec.Run.Status, later.Run.Status)
			}
		})
	}
}

// The record has no room for the outcomes of twenty failures with long errors.
func TestManyTriesOfOnce(t *testing.T) {
	for name, text := range map[string]string{"ascii": strings.Repeat("relation already exists; ", 30), "escaped": strings.Repeat("失敗", 100)} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			runs := 0
			o := &soloist.Once{Name: "migrate", Key: "v1", Store: c.store, Lease: D, Replica: "myapp-deployment-7d9f8b6c5d-x2k4p",
				Retry: soloist.Retry{MaxTries: 20, Backoff: time.Second},
				Do:    func(context.Context, *soloist.Run) error { runs++; return errors.New(text) }}
			if err := o.Run(c.within(48 * time.Hour)); err == nil || !strings.Contains(err.Error(), "20 times") || runs != 20 {
				t.Errorf("begun %d times: %v", runs, err)
			}
		})
	}
}

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
