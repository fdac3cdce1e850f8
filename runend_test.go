package soloist_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
)

// The end of a run is when its function has returned, whatever the replica waits for after that: here for the write of a
// progress note that gets no answer.
func TestEndIsWhenTheFunctionReturned(t *testing.T) {
	inCluster(t, func(c *cluster) {
		s := &muteStore{Memory: c.store}
		var returned time.Time
		job := work("@every 1h", 0)
		job.Do = func(_ context.Context, run *soloist.Run) error {
			for i := range 61 {
				_ = run.Heartbeat(fmt.Sprint("step ", i))
				s.mute.Store(i >= 58)
				time.Sleep(time.Second)
			}
			time.AfterFunc(time.Second, func() { s.mute.Store(false) })
			returned = time.Now()
			return nil
		}
		r := c.replica("a", job)
		r.Store = s
		c.launch(r)
		time.Sleep(time.Hour + 5*time.Minute)
		f := c.record("work").History[0]
		if late := f.End.Sub(returned); late.Abs() > time.Second/10 {
			t.Errorf("the outcome says that it ended at %s, %s after its return", f.End.Format(time.TimeOnly), late)
		}
		if took := f.End.Sub(f.Start).Round(time.Second); took != 61*time.Second {
			t.Errorf("it took %s, want 61s", took)
		}
	})
}
