package host_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host"
	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/store"
)

// The storage is away for a minute as the run ends. Its outcome is written when
// the storage is back, and its caller gets it, by a timer and by an HTTP trigger
// alike.
func TestOutageAtEndOfRunLosesNoOutcome(t *testing.T) {
	for _, payload := range []string{"{}", byHTTP} {
		environment(t, "FUNCTIONS_CUSTOMHANDLER_PORT=7071")
		synctest.Test(t, func(t *testing.T) {
			backend := newGated(new(local.Memory), nil)
			runs := 0
			s := open(t, host.Program{Store: backend, Work: []soloist.Work{soloist.Job{Name: "beat", Schedule: "@every 1h", Do: func(context.Context, *soloist.Run) error {
				if runs++; runs == 1 {
					backend.away(time.Minute)
				}
				return nil
			}}}})
			s.invoke(t, "tick", "{}")
			time.Sleep(time.Hour + time.Second)
			code, logs := s.invoke(t, "beat", payload)
			if code != 200 || len(logs) != 1 || !strings.HasSuffix(logs[0], " succeeded") || runs != 1 {
				t.Errorf("%.9s: got %d %q after %d runs, want one run that succeeded", payload, code, logs, runs)
			}
			if got := lastOutcome(t, backend); got.Status != store.Succeeded {
				t.Errorf("%.9s: the record says %+v, want succeeded", payload, got)
			}
			s.wait()
		})
	}
}

// The record of one job cannot be read, and those of others can: that is no outage of
// the storage, and its caller gets an answer as soon as in one.
func TestRunByHandWithUnreadableRecordIsAnswered(t *testing.T) {
	environment(t, "FUNCTIONS_CUSTOMHANDLER_PORT=7071")
	synctest.Test(t, func(t *testing.T) {
		backend := newGated(new(local.Memory), func(op, name string) error {
			if op == "read" && name == "demo/beat" {
				return errDown
			}
			return nil
		})
		s := open(t, host.Program{Store: backend, Work: []soloist.Work{
			soloist.Job{Name: "beat", Schedule: "@every 1h", Do: do},
			soloist.Job{Name: "other", Schedule: "@every 1h", Do: do},
		}})
		go func() {
			time.Sleep(5 * time.Second)
			if code, logs := s.invoke(t, "other", "{}"); code != 200 {
				t.Errorf("the other job: got %d %q", code, logs)
			}
		}()
		begin := time.Now()
		code, logs := s.invoke(t, "beat", byHTTP)
		if took := time.Since(begin); code != 200 || took > 21*time.Second {
			t.Errorf("got %d after %s", code, took)
		}
		if len(logs) != 1 || !strings.Contains(logs[0], "no route to the storage") || !strings.Contains(logs[0], "not begun within 20s") {
			t.Errorf("got %q", logs)
		}
		s.wait()
	})
}

// Whoever calls an HTTP trigger waits no longer for what comes before the jobs than for the job, if
// the storage is out of reach.
func TestRunByHandIsAnsweredInOutageBefore(t *testing.T) {
	environment(t, "FUNCTIONS_CUSTOMHANDLER_PORT=7071")
	synctest.Test(t, func(t *testing.T) {
		backend := newGated(new(local.Memory), refuse(errDown))
		s := open(t, host.Program{Store: backend, Work: work(), Before: counting(new(atomic.Int64))})
		begin, codes := time.Now(), make(chan int)
		for range 2 { // one waits for the other
			go func() {
				code, logs := s.invoke(t, "beat", byHTTP)
				if text := strings.Join(logs, ""); !strings.Contains(text, "no job is started before this is done") || !strings.Contains(text, "not begun within 20s") {
					t.Errorf("got %q", logs)
				}
				codes <- code
			}()
		}
		for range 2 {
			wantCode(t, <-codes, 200)
		}
		if took := time.Since(begin); took > 21*time.Second {
			t.Errorf("they took %s", took)
		}
		backend.set(nil)
		if got := s.get("/readyz"); strings.Contains(got.Body.String(), `"error"`) {
			t.Errorf("nothing has failed: got %s", got.Body)
		}
		if code, logs := s.invoke(t, "beat", byHTTP); code != 200 || len(logs) != 1 || !strings.HasSuffix(logs[0], " succeeded") {
			t.Errorf("after the outage: got %d, %q", code, logs)
		}
		s.wait()
	})
}

// No outage cuts short what comes before the jobs, once it has begun.
func TestOutageDuringWhatComesBefore(t *testing.T) {
	environment(t, "FUNCTIONS_CUSTOMHANDLER_PORT=7071")
	synctest.Test(t, func(t *testing.T) {
		backend := newGated(new(local.Memory), nil)
		s := open(t, host.Program{Store: backend, Work: work(), Before: []*soloist.Once{{Name: "migrate", Key: "v2", Lease: time.Minute,
			Do: func(ctx context.Context, _ *soloist.Run) error {
				backend.away(35 * time.Second)
				select {
				case <-ctx.Done():
					t.Errorf("it was cut short: %v", context.Cause(ctx))
				case <-time.After(40 * time.Second):
				}
				return nil
			}}}})
		if code, logs := s.invoke(t, "beat", byHTTP); code != 200 || len(logs) != 1 || !strings.HasSuffix(logs[0], " succeeded") {
			t.Errorf("got %d, %q", code, logs)
		}
		s.wait()
	})
}

// lastOutcome is the newest outcome in the record of beat.
func lastOutcome(t *testing.T, backend store.Store) store.Outcome {
	e, err := backend.Read(t.Context(), "demo/beat")
	if err != nil {
		t.Fatal(err)
	}
	var r store.Record
	if err := json.Unmarshal(e.Record, &r); err != nil {
		t.Fatal(err)
	}
	if len(r.History) == 0 {
		return store.Outcome{}
	}
	return r.History[0]
}
