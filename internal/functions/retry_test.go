//go:build unix

package functions_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist/internal/functions"
	"github.com/soloist-go/soloist/internal/proctest"
)

// A storage that is out of reach when a timer fires costs no tick: the platform
// calls again, and the tick is still due.
func TestARetryRunsTheTickAfterAnOutage(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "records")
	tick, schedule := soon(4 * time.Second)
	h, c := soloistHost(t, proctest.Directory(dir), schedule)
	invoke(t, h, "work", functions.Timer{}.Payload())
	away := dir + ".away"
	outage := func() error { return errors.Join(os.Rename(dir, away), os.WriteFile(dir, nil, 0o600)) }
	over := func() error { return errors.Join(os.Remove(dir), os.Rename(away, dir)) }
	if err := outage(); err != nil {
		t.Fatal(err)
	}
	app := functions.App{Host: h, Retries: map[string]functions.Retry{"work": {Most: 20, Delay: 500 * time.Millisecond}}}
	time.Sleep(time.Until(tick))
	type fired struct {
		functions.Result
		err error
	}
	done := make(chan fired, 1)
	go func() {
		res, err := app.Fire(t.Context(), "work", functions.Timer{Next: tick})
		done <- fired{res, err}
	}()
	c.await(t, "the invocation fails")
	if err := over(); err != nil {
		t.Fatal(err)
	}
	if got := <-done; got.err != nil || len(got.Logs) == 0 || !strings.Contains(got.Logs[0], "tick "+tick.Format(time.RFC3339)+" succeeded") {
		t.Errorf("got %q, %v: %q", got.Logs, got.err, c.all())
	}
	// Without retries it is as it was: the failure is the last word. The other job
	// has the same tick.
	if err := outage(); err != nil {
		t.Fatal(err)
	}
	app.Retries = nil
	if _, err := app.Fire(t.Context(), "again", functions.Timer{Next: tick}); !errors.Is(err, functions.ErrStatus) {
		t.Errorf("got %v", err)
	}
	if err := over(); err != nil {
		t.Fatal(err)
	}
}
