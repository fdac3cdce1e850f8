package proctest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/soloist-go/soloist"
)

// orderEnv carries the order of a replica.
const orderEnv = "PROCTEST_ORDER"

// As is the setting under which this program, started again, is a replica.
func As(order string) string { return orderEnv + "=" + order }

// Order returns the order of this process if it was started as a replica. It
// then ends with the process that has started it.
func Order() (order string, ok bool) {
	if order, ok = os.LookupEnv(orderEnv); ok {
		os.Unsetenv(orderEnv) // it has no replicas of its own
		go func() {
			io.Copy(io.Discard, os.Stdin)
			os.Exit(1)
		}()
	}
	return order, ok
}

// Tell prints an event: what a replica calls.
func Tell(e Event) {
	e.At = time.Now()
	b, _ := json.Marshal(e)          // of texts, numbers and times
	os.Stdout.Write(append(b, '\n')) // in one call: no other line comes between
}

// Of returns an event about a run.
func Of(what string, run *soloist.Run) Event {
	return Event{What: what, Job: run.Job, Tick: run.Tick, Attempt: run.Attempt, Token: run.Token}
}

// TellEnd prints the end of a run, and why it had to end.
func TellEnd(run *soloist.Run, cause error) {
	e := Of("end", run)
	if cause != nil {
		e.Cause = cause.Error()
	}
	Tell(e)
}

// Pause waits for d, or until ctx ends, whose cause it returns then.
func Pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Well asks the probes of the replica that listens at url, which its log shows,
// and returns what they have against it.
func Well(url string) error {
	for path, want := range map[string]string{"healthz": "ok", "readyz": "ready"} {
		resp, err := client.Get(url + path)
		if err != nil {
			return err
		}
		var body struct{ Status string }
		b, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || json.Unmarshal(b, &body) != nil || body.Status != want {
			return fmt.Errorf("/%s answers %s: %s", path, resp.Status, b)
		}
	}
	return nil
}
