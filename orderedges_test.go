package soloist_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/store"
)

// A job that makes up for all its ticks has some from before it paused itself. Those of the
// pause are skipped all the same.
func TestSelfPauseBindsBacklog(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := work("@every 1m", 0)
		w.Missed, w.Retry.PauseAfter = soloist.RunAll, 1
		w.Do = func(ctx context.Context, _ *soloist.Run) error {
			if sinceMidnight() < 10*time.Minute {
				return errors.Join(pause(ctx, 150*time.Second), errors.New("boom"))
			}
			return nil
		}
		c.start("a", w)
		until(10*time.Minute + 30*time.Second)
		c.order(soloist.Order{Kind: store.OrderResume}, w)
		until(12*time.Minute + 30*time.Second)
		t.Log(c.outcomes("work"))
		for _, r := range c.all() {
			if r.Tick.After(c.all()[0].end) && r.Tick.Sub(c.all()[0].Tick) < 9*time.Minute {
				t.Errorf("%s runs, and it came due in a pause", r.ID())
			}
		}
	})
}

// The store answers each read of the orders just within its time, and no tick waits for one. A
// pause is confirmed just after one was served.
func TestPauseEverywhereWithSlowReads(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := here("* * * * * *", nil)
		a, served := c.replica("a", w), make(chan struct{})
		a.tap.meet(func(op string, apply func() error) error {
			err := apply()
			if op == "read document" {
				select {
				case served <- struct{}{}:
				default:
				}
				time.Sleep(2900 * time.Millisecond)
			}
			return err
		})
		c.launch(a)
		time.Sleep(time.Minute)
		<-served
		c.order(soloist.Order{Kind: store.OrderPause, Job: "here"}, w)
		paused := time.Now()
		time.Sleep(time.Minute)
		for _, r := range c.all() {
			if late := r.start.Sub(paused); late > 8*time.Second {
				t.Errorf("a run starts %s after the pause was confirmed", late)
			}
			if late := r.start.Sub(r.Tick); late > 100*time.Millisecond && r.Tick.After(paused.Add(-30*time.Second)) {
				t.Errorf("%s starts %s late", r.ID(), late)
			}
		}
	})
}

// A machine sleeps while a job of EveryReplica is paused.
func TestPauseEverywhereAfterSleep(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w, m := here("* * * * * *", nil), &suspended{}
		a := c.replica("a", w).on(m)
		a.Now = func() time.Time { return time.Now().Add(time.Duration(m.slept.Load())) }
		c.launch(a)
		time.Sleep(61500 * time.Millisecond)
		// The machine sleeps for an hour.
		c.order(soloist.Order{Kind: store.OrderPause, Job: "here"}, w)
		n := len(c.all())
		m.slept.Add(int64(time.Hour))
		time.Sleep(time.Minute)
		if late := len(c.all()) - n; late > 0 {
			t.Errorf("%d runs", late)
		}
	})
}

// The reads of the orders fail for a moment, when a further attempt is claimed.
func TestCancelOutlivesFailedReads(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := rerun(work("@every 1h", 10*time.Minute))
		all := c.startAll(w, "a", "b")
		until(time.Hour + 20*time.Second)
		first := c.all()[0].replica
		all[first].kill()
		until(time.Hour + 29500*time.Millisecond) // the lease lasts a moment longer
		c.order(soloist.Order{Kind: store.OrderCancel}, w)
		other := all[map[string]string{"a": "b", "b": "a"}[first]]
		other.tap.meet(fail(errNetwork, "read document"))
		time.Sleep(5 * time.Second)
		other.tap.meet(nil)
		time.Sleep(30 * time.Minute)
		all[first].stop()
		c.wantRuns(1)
		if f := c.newest(); f.Status != store.Cancelled {
			t.Errorf("got %+v", f)
		}
	})
}

// The document is full of runs of other jobs that are over for days.
func TestDocumentForgetsRequests(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := work("@every 24h", 0)
		c.replica("first", w).wake()
		doc := store.Control{App: "soloist", Seq: 1, Jobs: map[string]store.JobControl{}}
		for i := range 69 {
			var j store.JobControl
			for n := range 100 {
				j.Requests = append(j.Requests, store.Request{Seq: 1, Name: fmt.Sprint("build-", n), By: "the pipeline", At: time.Now(), Until: time.Now().Add(time.Hour)})
			}
			doc.Jobs[fmt.Sprint("job", i)] = j
		}
		b, err := doc.Encode()
		if err != nil {
			t.Fatal(err)
		}
		doc.Audit = []store.Order{{Reason: strings.Repeat("x", store.MaxDocument-len(b)-200)}}
		b, err = doc.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.store.WriteDocument(c.t.Context(), "soloist/.control", "", b); err != nil {
			t.Fatal(err)
		}
		time.Sleep(72 * time.Hour)
		c.order(soloist.Order{Kind: store.OrderPause}, w)
	})
}

// The run was claimed and has not begun when it is cancelled, and its replica stops.
func TestCancelOutlivesTakenBackClaim(t *testing.T) {
	for _, name := range []string{"tick", "ordered"} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			w := work("@every 1h", time.Minute)
			c.replica("first", w).wake()
			if name == "ordered" {
				c.order(soloist.Order{Kind: store.OrderRun, Request: "please"}, w)
			} else {
				until(time.Hour - time.Second)
			}
			var claimed atomic.Bool
			a := c.replica("a", w)
			a.tap.meet(onNth("write", 1, func(apply func() error) error {
				err := apply()
				c.order(soloist.Order{Kind: store.OrderCancel}, w)
				claimed.Store(true)
				go a.stop()
				time.Sleep(time.Millisecond)
				return err
			}))
			c.launch(a)
			c.launch(c.replica("b", w).meets(func(op string, apply func() error) error {
				if op == "acquire" && !claimed.Load() {
					return store.ErrHeld
				}
				return apply()
			}))
			time.Sleep(10 * time.Minute)
			c.wantRuns(0)
			if f := c.newest(); f.Status != store.Cancelled || f.Reason != "by anna" {
				t.Errorf("got %+v", f)
			}
		})
	}
}

// The same, with a pause instead of a stop: an operator pauses the job and cancels its run.
func TestCancelOutlivesPausedClaim(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := work("@every 1h", time.Minute)
		a := c.replica("a", w)
		c.replica("first", w).wake()
		until(time.Hour - time.Second)
		done := false
		a.tap.meet(func(op string, apply func() error) error {
			err := apply()
			if op == "write" && !done && c.record("work").Run.Status == store.Running {
				done = true
				if _, oerr := a.Order(context.Background(), soloist.Order{Kind: store.OrderPause, Job: "work"}); oerr != nil {
					t.Error(oerr)
				}
				c.order(soloist.Order{Kind: store.OrderCancel}, w)
			}
			return err
		})
		c.launch(a)
		time.Sleep(30 * time.Second)
		c.order(soloist.Order{Kind: store.OrderResume}, w)
		time.Sleep(10 * time.Minute)
		c.wantRuns(0)
		t.Log(c.outcomes("work"))
	})
}

// A run that dies after it was cancelled, of a job that is not run again.
func TestCancelledRunThatDiesIsCancelled(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := work("@every 10m", 5*time.Minute)
		a := c.replica("a", w)
		go func() { _, _ = a.RunDue(c.t.Context(), soloist.Wake{}) }()
		until(10 * time.Minute)
		go func() { _, _ = a.RunDue(c.within(20*time.Second), soloist.Wake{}) }()
		time.Sleep(21 * time.Second / 10)
		a.kill()
		c.order(soloist.Order{Kind: store.OrderCancel}, w)
		time.Sleep(time.Minute)
		out, err := c.replica("b", w).RunNow(c.t.Context(), "work", "please")
		t.Log(out, err)
		t.Log(c.outcomes("work"))
		for _, f := range c.record("work").History {
			if f.Status == store.Abandoned {
				t.Errorf("%+v", f)
			}
		}
	})
}

// The lease ends between the operator's read of the record and the order.
func TestCancelOfAttemptThatBegins(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := rerun(work("@every 1h", 10*time.Minute))
		all := c.startAll(w, "a", "b")
		until(time.Hour + 20*time.Second)
		first := c.all()[0].replica
		all[first].kill()
		until(time.Hour + 29500*time.Millisecond)
		waited := false
		desk := c.replica("desk", w).meets(func(op string, apply func() error) error {
			if op == "write document" && !waited {
				for waited = true; len(c.all()) < 2; { // until the next attempt has begun
					time.Sleep(100 * time.Millisecond)
				}
			}
			return apply()
		})
		_, err := desk.Order(c.t.Context(), soloist.Order{Kind: store.OrderCancel, Job: "work"})
		time.Sleep(30 * time.Minute)
		all[first].stop()
		if f := c.newest(); err != nil || f.Status != store.Cancelled {
			t.Errorf("got %+v, %v", f, err)
		}
	})
}

// The claim of the next attempt is on its way while an operator cancels: its replica has read the orders before, and the
// operator sees the attempt before.
func TestCancelOfTickWhoseClaimIsOnItsWay(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := rerun(work("@every 1h", 10*time.Minute))
		a := c.start("a", w)
		until(time.Hour + 20*time.Second)
		a.kill()
		var writes atomic.Int64
		b := c.replica("b", w).meets(func(op string, apply func() error) error {
			if op == "write" && writes.Add(1) == 1 {
				time.Sleep(2 * time.Second)
			}
			return apply()
		})
		c.launch(b)
		for writes.Load() == 0 {
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(500 * time.Millisecond)
		c.order(soloist.Order{Kind: store.OrderCancel, Reason: "wrong data"}, w)
		time.Sleep(30 * time.Minute)
		c.wantOutcomes("work", "cancelled 01:00:00 by anna: wrong data")
	})
}

// A tick waits for another attempt until a pause is over, and is given up meanwhile.
func TestCancelOfWaitingAttempt(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := rerun(work("@every 1h", 5*time.Minute))
		a := c.start("a", w)
		until(time.Hour + time.Minute)
		c.order(soloist.Order{Kind: store.OrderPause}, w)
		a.kill()
		a.stop()
		c.start("b", w)
		time.Sleep(5 * time.Minute)
		c.order(soloist.Order{Kind: store.OrderCancel}, w)
		time.Sleep(time.Minute)
		if f := c.newest(); f.Status != store.Cancelled {
			t.Errorf("got %+v", f)
		}
		c.order(soloist.Order{Kind: store.OrderResume}, w)
		time.Sleep(10 * time.Minute)
		c.wantRuns(1)
	})
}

// A run that has lost its lease returns late, after a run by hand of the same replica was claimed.
// The newer run can be cancelled all the same.
func TestRunByHandCanBeCancelledAfterOlderRunReturns(t *testing.T) {
	inCluster(t, func(c *cluster) {
		var runs atomic.Int64
		w := work("@hourly", 0)
		w.Do = func(ctx context.Context, _ *soloist.Run) error {
			if runs.Add(1) == 1 {
				time.Sleep(5 * time.Minute) // it does not look at its context
				return nil
			}
			<-ctx.Done()
			return context.Cause(ctx)
		}
		a := c.start("a", w)
		until(time.Hour + 10*time.Second)
		if err := a.Unlock(c.t.Context(), "work", true); err != nil {
			c.t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() {
			_, err := a.RunNow(c.within(20*time.Minute), "work", "x")
			done <- err
		}()
		until(time.Hour + 8*time.Minute)
		if runs.Load() != 2 {
			c.t.Fatalf("%d runs, want the older one and the one by hand", runs.Load())
		}
		c.order(soloist.Order{Kind: store.OrderCancel}, w)
		time.Sleep(30 * time.Second)
		if got := c.newest(); got.Status != store.Cancelled || got.Request != "x" {
			c.t.Errorf("got %+v, want that the run by hand is cancelled", got)
		}
		if err := <-done; err != nil {
			c.t.Error(err)
		}
	})
}

// A tick of a paused job waits for another attempt, and other things are written meanwhile. The
// outcome of the attempt before still says who unlocked it.
func TestPausedTickKeepsWhoUnlockedIt(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := rerun(work("@hourly", 10*time.Minute))
		w.StartingDeadline = 5 * time.Minute
		a := c.start("a", w)
		until(time.Hour + 10*time.Second)
		c.order(soloist.Order{Kind: store.OrderPause}, w)
		time.Sleep(10 * time.Second)
		if err := c.replica("ann", w).Unlock(c.t.Context(), "work", true); err != nil {
			c.t.Fatal(err)
		}
		c.order(soloist.Order{Kind: store.OrderRun, Request: "x"}, w)
		time.Sleep(10 * time.Minute)
		c.order(soloist.Order{Kind: store.OrderResume}, w)
		time.Sleep(15 * time.Minute)
		a.stop()
		c.wantOutcomes("work", "abandoned 01:00:00 unlocked by ann, and a run was ordered in the pause", "succeeded 01:00:35")
	})
}
