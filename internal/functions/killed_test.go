//go:build unix

package functions_test

import (
	"testing"
	"time"

	"github.com/soloist-go/soloist/internal/functions"
)

// A handler is killed while it runs a job. The next invocation gives the tick its
// outcome, or its next attempt.
func TestKilledMidRun(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		job     string
		attempt int
	}{{"work", 0}, {"again", 2}} {
		t.Run(test.job, func(t *testing.T) {
			t.Parallel()
			store := storage(t)
			tick, schedule := soon(2 * time.Second)
			h, c := soloistHost(t, store, schedule, takesEnv+"=1h")
			time.Sleep(time.Until(tick))
			over := make(chan error)
			go func() { _, err := h.Invoke(t.Context(), test.job, timer(tick)); over <- err }()
			c.await(t, "begin "+test.job)
			pid := h.Pid()
			h.Kill()
			if err := <-over; err == nil {
				t.Error("the handler is dead, and its invocation has succeeded")
			}
			wantRestart(t, h, pid, 1)
			time.Sleep(store.Lease + 100*time.Millisecond)
			v, _ := invoke(t, h, test.job, functions.Timer{Unwatched: true}.Payload())
			ran, _, err := v.of(test.job)
			if test.attempt > 0 {
				if len(ran) != 1 || ran[0].Attempt != test.attempt || !ran[0].Tick.Equal(tick) || ran[0].Status != "succeeded" {
					t.Errorf("got %+v, %s; want attempt %d", ran, err, test.attempt)
				}
				return
			}
			if len(ran) != 0 || err != "" {
				t.Errorf("got %+v, %s: it is started at most once", ran, err)
			}
			if got := store.Record(t, "test/"+test.job).History; len(got) == 0 || got[0].Status != "abandoned" || !got[0].Tick.Equal(tick) {
				t.Errorf("got the outcomes %+v", got)
			}
		})
	}
}

// A run that has stalled and goes on ends the process, which the host starts
// again without counting it as a crash.
func TestOverrun(t *testing.T) {
	t.Parallel()
	h, c := soloistHost(t, storage(t))
	pid := h.Pid()
	if _, err := h.Invoke(t.Context(), "deaf", functions.HTTP("POST", "http://localhost/api/deaf", "")); err == nil {
		t.Error("the process goes, and its invocation has succeeded")
	}
	wantRestart(t, h, pid, 0)
	if !c.has("the process exits") {
		t.Errorf("got %q", c.all())
	}
	invoke(t, h, "work", timer(time.Now()))
}
