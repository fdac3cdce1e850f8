//go:build unix

package functions_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist/internal/functions"
	"github.com/soloist-go/soloist/internal/proctest"
)

// Three timers fire at once for one tick, as they do where instances do not
// share a host id: one runs it, two say who does.
func TestThreeInstances(t *testing.T) {
	t.Parallel()
	storage := proctest.Azurite(t)
	tick, schedule := soon(4 * time.Second)
	hosts, consoles := make([]*functions.Host, 3), make([]*console, 3)
	for i := range hosts {
		hosts[i], consoles[i] = soloistHost(t, storage, schedule, takesEnv+"=16s", // longer than any other answer may take
			fmt.Sprintf("WEBSITE_INSTANCE_ID=instance%d", i))
	}
	time.Sleep(time.Until(tick))
	answers := make(chan told)
	for _, h := range hosts {
		go func() {
			v, _ := invoke(t, h, "work", timer(tick))
			answers <- v
		}()
	}
	var ranBy string
	var holders []string
	for range hosts {
		ran, holder, err := (<-answers).of("work")
		switch {
		case err != "":
			t.Errorf("got the error %s", err)
		case len(ran) == 1 && ran[0].Status == "succeeded" && ran[0].Tick.Equal(tick):
			ranBy += ran[0].Replica
		case len(ran) > 0:
			t.Errorf("got %+v", ran)
		default:
			holders = append(holders, holder)
		}
	}
	if len(holders) != 2 || holders[0] != ranBy || holders[1] != ranBy {
		t.Errorf("it was run by %q, and the others say %q", ranBy, holders)
	}
	begun := 0
	for _, c := range consoles {
		begun += strings.Count(strings.Join(c.all(), "\n"), "stdout: begin work@"+tick.Format(time.RFC3339))
	}
	if begun != 1 {
		t.Errorf("the tick was begun %d times", begun)
	}
}

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
