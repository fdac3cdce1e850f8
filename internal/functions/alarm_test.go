//go:build unix

package functions_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/soloist-go/soloist/internal/azurite"
	"github.com/soloist-go/soloist/internal/functions"
	"github.com/soloist-go/soloist/internal/proctest"
	"github.com/soloist-go/soloist/store"
)

// A platform starts an instance when a message is visible, and takes it away when none is. It counts what it does.
type platform struct {
	*testing.T
	app     *functions.App
	console *console
	queue   functions.Queue
	storage proctest.Storage

	starts, calls int
	up            time.Duration // of all instances
}

// newPlatform deploys the program with alarms, as the command functions writes it.
func newPlatform(t *testing.T, env ...string) *platform {
	t.Helper()
	p := &platform{T: t, storage: proctest.Azurite(t)}
	p.queue = functions.Queue{Account: p.storage.Server.QueueURL, Signature: azurite.QueueSignature("rwdlacup", time.Now().Add(time.Hour)), Name: p.storage.Container}
	env = slices.Concat(p.storage.Env(), []string{"SOLOIST_APP=test", "SOLOIST_ALARM=queue", "SOLOIST_ALARM_QUEUE=" + p.queue.Name, takesEnv + "=0s", proctest.As("program")}, env)
	dir := filepath.Join(t.TempDir(), "app")
	writer, err := proctest.Command{Program: proctest.Self(), Args: []string{"functions", dir}, Env: env}.Start()
	if err != nil {
		t.Fatal(err)
	}
	if code := writer.Code(); code != 0 {
		t.Fatalf("the command functions ended with code %d", code)
	}
	if p.app, err = functions.Load(dir, env...); err != nil || len(p.app.Skipped) > 0 || len(p.app.Functions) != 2 {
		t.Fatalf("%v, functions %v, skipped %q", err, p.app.Functions, p.app.Skipped)
	}
	if b := p.app.Functions["alarm"][0]; b.Type != "queueTrigger" || b.QueueName != p.queue.Name || b.Connection == "" {
		t.Fatalf("got %+v", b)
	}
	p.console = watch(t, p.app.Host)
	return p
}

// instance starts an instance for what do does, and ends it as the platform does: without notice.
func (p *platform) instance(do func() error) {
	p.Helper()
	begin := time.Now()
	start(p.T, p.app.Host, p.console)
	p.starts++
	err := do()
	p.app.Host.Stop()
	p.up += time.Since(begin)
	if err != nil {
		p.Fatalf("%v: %q", err, p.console.all())
	}
}

// timer is a call of the daily net.
func (p *platform) timer() {
	p.Helper()
	p.instance(func() error {
		p.calls++
		_, err := p.app.Fire(p.Context(), "tick", functions.Timer{Name: "timer"})
		return err
	})
}

// run plays the platform until something is done.
func (p *platform) run(done func() bool) {
	p.Helper()
	for begin := time.Now(); !done(); {
		if time.Since(begin) > patience {
			p.Fatalf("nothing more came within %s: %q", patience, p.console.all())
		}
		n, err := p.queue.Peek(p.Context())
		if err != nil {
			p.Fatal(err)
		}
		if n > 0 {
			p.instance(func() error {
				calls, err := p.app.Drain(p.Context(), "alarm", p.queue)
				p.calls += calls
				return err
			})
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// ran are the outcomes of the runs of the job work.
func (p *platform) ran() (all []store.Outcome) {
	p.Helper()
	if _, err := p.storage.Store.Read(p.Context(), "test/work"); err != nil {
		return nil // the first call has not made it
	}
	return slices.DeleteFunc(p.storage.Record(p.T, "test/work").History, func(o store.Outcome) bool { return o.Start.IsZero() })
}

// Between two ticks no instance is up, and ticks are run all the same, each once.
func TestAlarmStartsAnInstanceForEachTick(t *testing.T) {
	t.Parallel()
	p := newPlatform(t, scheduleEnv+"=*/20 * * * * *", "SOLOIST_ALARM_LEAD=4s", "SOLOIST_STAY=6s")
	begin := time.Now()
	p.timer() // the first call after a deployment
	p.run(func() bool { return len(p.ran()) >= 3 })
	var late time.Duration
	seen := map[time.Time]bool{}
	for _, o := range p.ran() {
		if o.Status != store.Succeeded || seen[o.Tick] {
			t.Errorf("got the outcome %+v, want one success for each tick", o)
		}
		seen[o.Tick] = true
		late = max(late, o.Start.Sub(o.Tick))
	}
	all := time.Since(begin)
	t.Logf("%d ticks in %s: %d invocations on %d instances, started cold, which were up for %s (%.0f %%); the latest tick began %s after it was due",
		len(seen), all.Round(time.Second), p.calls, p.starts, p.up.Round(time.Second), 100*p.up.Seconds()/all.Seconds(), late.Round(time.Millisecond))
}

// A call that fails is made again after a while, and so often as host.json says; then its message is poison.
func TestPoisonMessage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	files := map[string]string{
		"host.json": `{"version":"2.0","customHandler":{"description":{"defaultExecutablePath":"handler"}},"extensionBundle":{"id":"Microsoft.Azure.Functions.ExtensionBundle","version":"[4.0.0, 5.0.0)"},
			"extensions":{"queues":{"visibilityTimeout":"00:00:01","maxDequeueCount":3}}}`,
		"bad/function.json": `{"bindings":[{"type":"queueTrigger","direction":"in","name":"item","queueName":"q","connection":"AzureWebJobsStorage"}]}`,
	}
	for name, text := range files {
		os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755)
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	app, err := functions.Load(dir)
	if err != nil || len(app.Skipped) > 0 || app.Trigger != (functions.Trigger{Visibility: time.Second, Most: 3}) {
		t.Fatalf("%v, %q, %+v", err, app.Skipped, app.Trigger)
	}
	q := functions.Queue{Account: azurite.Shared(t).QueueURL, Signature: azurite.QueueSignature("rwdlacup", time.Now().Add(time.Hour)), Name: fmt.Sprintf("poisoned-%d", time.Now().UnixNano())}
	app.Host, _ = started(t, "answers")
	if err := q.Put(t.Context(), "eA=="); err != nil {
		t.Fatal(err)
	}
	calls := 0
	proctest.Poll(t, "a poison message", patience, func() bool {
		n, err := app.Drain(context.WithoutCancel(t.Context()), "bad", q)
		if err != nil {
			t.Fatal(err)
		}
		calls += n
		poison, _ := q.Poison().Peek(t.Context())
		return poison == 1
	})
	if n, _ := q.Peek(t.Context()); calls != 3 || n != 0 {
		t.Errorf("%d calls, %d messages are left", calls, n)
	}
	os.WriteFile(filepath.Join(dir, "host.json"), []byte(`{"version":"2.0","customHandler":{"description":{"defaultExecutablePath":"handler"}}}`), 0o644)
	if app, err := functions.Load(dir); err != nil || len(app.Skipped) != 1 {
		t.Errorf("without the extensions: %v, %+v", err, app)
	}
}
