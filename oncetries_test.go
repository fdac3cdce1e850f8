package soloist_test

import (
	"context"
	"errors"
	"fmt"
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
