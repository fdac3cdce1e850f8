package soloist_test

import (
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
)

// frozen is a replica of a process that a platform freezes between two calls. Of its
// clocks only the wall clock has counted the time, as where a machine goes on
// from a snapshot.
type frozen struct {
	*replica
	gone atomic.Int64
}

func (c *cluster) frozen(work ...soloist.Work) *frozen {
	f := &frozen{replica: c.replica("a", work...)}
	now := func() time.Time { return time.Now().Add(time.Duration(f.gone.Load())) }
	f.Now, c.store.Now = now, now
	return f
}

func (f *frozen) freeze(d time.Duration) { f.gone.Add(int64(d)) }

// What the process knew before it was frozen is as old as the wall clock says. By
// its other clocks nothing is due.
func TestACallAfterTheProcessWasFrozen(t *testing.T) {
	inCluster(t, func(c *cluster) {
		other := work("@hourly", 0)
		other.Name = "other"
		f := c.frozen(work("@hourly", 0), other)
		if _, err := f.RunDue(c.t.Context(), soloist.Wake{}); err != nil {
			t.Fatal(err)
		}
		for hour := 1; hour <= 3; hour++ {
			f.freeze(time.Hour)
			f.tap.counts()
			report, err := f.RunDue(c.t.Context(), soloist.Wake{})
			if err != nil || len(report.Jobs[0].Ran) != 1 || len(report.Jobs[1].Ran) != 1 {
				t.Errorf("call %d: got %+v, %v, want one run of each job", hour, report, err)
			}
			if n := f.tap.counts()["read"]; n != 2 {
				t.Errorf("call %d reads %d times, want once for each job", hour, n)
			}
		}
		if got, want := c.outcomes("work"), []string{"succeeded 01:00:00", "succeeded 02:00:00", "succeeded 03:00:00"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

// A call soon after another one reads nothing, as the clocks agree.
func TestACallSoonAfterAnotherReadsNothing(t *testing.T) {
	inCluster(t, func(c *cluster) {
		f := c.frozen(work("@every 1m", 0))
		f.RunDue(c.t.Context(), soloist.Wake{})
		time.Sleep(59 * time.Second)
		f.freeze(time.Second)
		f.tap.counts()
		if _, err := f.RunDue(c.t.Context(), soloist.Wake{}); err != nil || f.tap.counts()["read"] != 0 || len(c.all()) != 1 {
			t.Errorf("%v, %d runs", err, len(c.all()))
		}
	})
}
