package soloist_test

import (
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/store"
)

// cutOffAfter fails each call of op, applied or not, and for so long afterwards all
// other calls, as a gateway does that blocks the sender of what it dislikes.
func cutOffAfter(op string, applied bool, block time.Duration) fault {
	var mu sync.Mutex // renewals and writes come from several goroutines
	var until time.Time
	return func(got string, apply func() error) error {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case time.Now().Before(until):
			return errNetwork
		case got != op:
			return apply()
		case applied:
			_ = apply()
		}
		until = time.Now().Add(block)
		return errNetwork
	}
}

// refusedAfterWrite fails each write, and refuses the read after it.
func refusedAfterWrite() fault {
	var wrote atomic.Bool
	return func(op string, apply func() error) error {
		switch {
		case op == "write":
			wrote.Store(true)
			return errNetwork
		case op == "read" && wrote.CompareAndSwap(true, false):
			return fs.ErrPermission
		}
		return apply()
	}
}

// A replica that is cut off after each claim, or after each acquisition, cannot release
// its lease then. It releases it once it is answered, and leaves the job to the others.
// So does one whose claims alone get no answer, or whose next read is refused.
func TestReplicaThatIsCutOffCostsNoTick(t *testing.T) {
	type row struct {
		lease time.Duration
		meets fault
		late  time.Duration // at most
		says  bool          // the log says that the job is left alone
	}
	rows := map[string]row{
		"unanswered claims":                {time.Minute, fail(errNetwork, "write"), 5 * time.Second, false},
		"unanswered claims, refused reads": {time.Minute, refusedAfterWrite(), time.Minute, false},
	}
	for _, op := range []string{"write", "acquire"} {
		for _, lease := range []time.Duration{D, time.Minute} {
			for _, block := range []time.Duration{time.Second, 5 * time.Second} {
				// After an acquisition the others may have been first by the time that it is answered.
				rows[fmt.Sprint(op, " ", lease, " ", block)] = row{lease, cutOffAfter(op, op == "acquire", block), max(lease, 30*time.Second), op == "write"}
			}
		}
	}
	for name, tt := range rows {
		inCase(t, name, func(t *testing.T, c *cluster) {
			job := leased(tt.lease, work("@every 1m", 0))
			a := c.replica("a", job).meets(tt.meets)
			if tt.says { // it has to be the first to claim
				c.launch(a)
				time.Sleep(59 * time.Second)
			}
			c.start("b", job)
			if !tt.says {
				c.launch(a)
				time.Sleep(59 * time.Second)
			}
			time.Sleep(4*time.Hour - 29*time.Second)
			if n := c.record("work").Counts; n[store.Succeeded] != 240 || len(n) != 1 {
				t.Errorf("240 ticks: %v", n)
			}
			c.wantInTime(tt.late)
			if tt.says && a.log.lines("the job is left alone", "leaves the job to other replicas", errNetwork.Error()) == nil {
				t.Errorf("the log says %q", a.log.lines("level=ERROR"))
			}
		})
	}
}

// A call after one that was cut off runs what is due: it need not wait for the lease of
// the call before to expire, and leaves nothing to others.
func TestCallAfterCutOffClaimRunsTick(t *testing.T) {
	for _, op := range []string{"write", "acquire"} {
		inCluster(t, func(c *cluster) {
			job := leased(time.Minute, work("0 * * * *", 0))
			a := c.replica("a", job)
			a.wake()
			time.Sleep(time.Hour)
			a.tap.meet(cutOffAfter(op, op == "acquire", 5*time.Second))
			if _, err := a.RunDue(c.t.Context(), soloist.Wake{}); err == nil {
				t.Errorf("%s: a call that is cut off reports no error", op)
			}
			a.tap.meet(nil)
			a.wake()
			runs := c.all()
			if len(runs) != 1 || runs[0].start.Sub(runs[0].Tick) > 2*time.Second {
				t.Errorf("%s: got %+v", op, runs)
			}
		})
	}
}

// A run by hand that is cut off after its claim or its acquisition starts once it is
// answered: it need not wait for its own lease to expire.
func TestRunByHandFreesItsOwnLease(t *testing.T) {
	for _, op := range []string{"write", "acquire"} {
		inCluster(t, func(c *cluster) {
			job := leased(time.Minute, work("0 * * * *", 0))
			a := c.replica("a", job)
			bad := cutOffAfter(op, op == "acquire", 5*time.Second)
			begin := time.Now()
			a.tap.meet(func(got string, apply func() error) error {
				if time.Since(begin) > 10*time.Second {
					return apply()
				}
				return bad(got, apply)
			})
			if _, err := a.RunNow(c.t.Context(), "work", "r1"); err != nil {
				t.Fatal(err)
			}
			runs := c.all()
			if len(runs) != 1 || runs[0].start.Sub(begin) > 30*time.Second {
				t.Errorf("%s: %d runs, after %s", op, len(runs), time.Since(begin))
			}
		})
	}
}

// A run by hand whose claim was applied, and that was cut off then, does not run: its caller
// gets an error, and not that the run goes on. So does the caller of RunDue.
func TestAppliedClaimThatIsCutOffIsTold(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := leased(time.Minute, work("0 * * * *", 0))
		a := c.replica("a", job)
		a.tap.meet(cutOffAfter("write", true, 5*time.Second))
		_, err := a.RunNow(c.t.Context(), "work", "r1")
		wantError(t, err, "was claimed and not run")
		time.Sleep(time.Hour)
		if _, err = a.RunDue(c.t.Context(), soloist.Wake{}); err == nil {
			t.Error("RunDue: no error")
		}
		time.Sleep(30 * time.Second)
		if _, err = a.RunDue(c.t.Context(), soloist.Wake{}); err == nil || !strings.Contains(err.Error(), "was claimed and not run") {
			t.Errorf("RunDue: %v", err)
		}
		c.wantRuns(0)
	})
}

// A claim that is written ends what the claim before it has left in Health. A singleton
// may lead for months after that.
func TestWrittenClaimEndsTrouble(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.launch(c.replica("a", leader()).meets(inTurn("write", errNetwork, errNetwork, nil)))
		time.Sleep(5 * time.Second)
		if len(a.Health().Broken) != 1 {
			t.Errorf("after a claim that failed: %+v", a.Health())
		}
		time.Sleep(time.Minute)
		if h := a.Health(); len(h.Running) != 1 || len(h.Broken) != 0 {
			t.Errorf("after one that was written: %+v", h)
		}
	})
}

// A replica that is cut off after a claim that was applied does not release its lease
// once it is answered: the record says that the tick may be running.
func TestAppliedClaimOfCutOffReplicaKeepsLease(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := leased(time.Minute, work("@every 10m", 0))
		a := c.launch(c.replica("a", job).meets(cutOffAfter("write", true, 5*time.Second)))
		time.Sleep(10*time.Minute + 40*time.Second)
		e, err := c.store.Read(c.t.Context(), "soloist/work")
		if err != nil || e.State != store.Leased || c.record("work").Run.Status != store.Running {
			t.Errorf("got %s, %s, %v", e.State, c.record("work").Run.Status, err)
		}
		if n := a.tap.counts()["release"]; n != 0 || len(c.all()) != 0 {
			t.Errorf("%d releases, %d runs", n, len(c.all()))
		}
	})
}

// A lease that was acquired after that of a replica that was cut off is left alone.
func TestCutOffReplicaReleasesNoOtherLease(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := work("@every 10m", 0)
		a := c.replica("a", job)
		a.tap.meet(cutOffAfter("write", false, 20*time.Second)) // longer than the lease
		c.launch(a)
		time.Sleep(10*time.Minute + D + time.Second)
		e, err := c.store.Read(c.t.Context(), "soloist/work")
		other := c.store.Lease("soloist/work", "00000000-0000-4000-8000-000000000000")
		if err == nil {
			_, err = other.Acquire(c.t.Context(), time.Minute, e.ETag)
		}
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(30 * time.Second)
		if _, err := other.Renew(c.t.Context()); err != nil {
			t.Error(err)
		}
		if why := a.Health().Broken["work"]; why != nil {
			t.Errorf("it stands back: %v", why)
		}
	})
}

// A replica that does not know whether its calls arrive gives the others less of a head
// start than a tick has time: it may be alone.
func TestHeadStartMissesNoTick(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := work("@every 1m", 0)
		job.StartingDeadline = time.Second
		// The acquisition of the second tick, and its repetition.
		c.launch(c.replica("a", job).meets(inTurn("acquire", nil, errNetwork, errNetwork, nil)))
		time.Sleep(3*time.Minute + 30*time.Second)
		if n := c.record("work").Counts; n[store.Succeeded] != 3 {
			t.Errorf("3 ticks: %v", n)
		}
	})
}

// The first token waits for a second that begins after the entry was seen. A replica that has
// settled the first tick as missed has seen it then, so the second tick need not wait.
func TestMissedFirstTickDelaysNoOther(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := work("@every 1m", 0)
		job.StartingDeadline = time.Second
		c.launch(c.replica("a", job).meets(inTurn("acquire", errNetwork, errNetwork, errNetwork, errNetwork, errNetwork, errNetwork, nil)))
		time.Sleep(3*time.Minute + 30*time.Second)
		if n := c.record("work").Counts; n[store.Missed] != 1 || n[store.Succeeded] != 2 {
			t.Errorf("3 ticks, the first missed: %v", n)
		}
	})
}
