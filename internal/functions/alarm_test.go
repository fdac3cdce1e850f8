//go:build unix

package functions_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/soloist-go/soloist/host/azure"
	"github.com/soloist-go/soloist/internal/functions"
	"github.com/soloist-go/soloist/internal/proctest"
	"github.com/soloist-go/soloist/store"
)

// A platform starts an instance when a message is visible, and takes it away when none is. It counts what it does.
type platform struct {
	*testing.T
	*functions.Host
	queue   *azure.Queue
	storage proctest.Storage

	starts, calls int
	up            time.Duration // of all instances
}

// newPlatform deploys the program with alarms, as the command functions writes it.
func newPlatform(t *testing.T, env ...string) *platform {
	t.Helper()
	p := &platform{T: t, storage: proctest.Azurite(t)}
	name, dir := p.storage.Container, filepath.Join(t.TempDir(), "app")
	env = slices.Concat(p.storage.Env(), []string{"SOLOIST_APP=test", "SOLOIST_ALARM=queue", "SOLOIST_ALARM_QUEUE=" + name, takesEnv + "=0s", proctest.As("program")}, env)
	writer, err := proctest.Command{Program: proctest.Self(), Args: []string{"functions", dir}, Env: env}.Start()
	if err != nil {
		t.Fatal(err)
	}
	if code := writer.Code(); code != 0 {
		t.Fatalf("the command functions ended with code %d", code)
	}
	if p.Host, err = functions.Load(dir, env...); err != nil || len(p.Functions) != 2 {
		t.Fatalf("got %+v, %v", p.Host, err)
	}
	if b := p.Functions["alarm"].Bindings[0]; b.Type != "queueTrigger" || b.QueueName != name || b.Connection == "" {
		t.Fatalf("got %+v", b)
	}
	if p.queue, err = azure.OpenQueue(azure.Config{ConnectionString: p.storage.Setting}, name); err != nil {
		t.Fatal(err)
	}
	return p
}

// instance starts an instance for what do does, and ends it as the platform does: without notice.
func (p *platform) instance(do func() error) {
	p.T.Helper()
	begin := time.Now()
	start(p.T, p.Host)
	p.starts++
	err := do()
	p.Kill()
	p.up += time.Since(begin)
	if err != nil {
		p.Fatalf("%v: %q", err, p.Lines())
	}
}

// call calls a function.
func (p *platform) call(function, payload string) error {
	p.calls++
	_, err := p.Invoke(p.Context(), function, payload)
	return err
}

// drain makes a call for each message that is visible. The message of a call that fails becomes visible again after a minute, as
// host.json says.
func (p *platform) drain() error {
	for {
		all, err := p.queue.Receive(p.Context(), 1, time.Minute)
		if err != nil || len(all) == 0 {
			return err
		}
		text, _ := json.Marshal(string(all[0].Body)) // of a text
		if err := p.call("alarm", fmt.Sprintf(`{"Data":{"alarm":%q},"Metadata":{}}`, text)); err != nil {
			p.Log(err)
			continue
		}
		if err := p.queue.Delete(p.Context(), all[0].Receipt); err != nil {
			return err
		}
	}
}

// run plays the platform until something is done.
func (p *platform) run(done func() bool) {
	p.T.Helper()
	for begin := time.Now(); !done(); time.Sleep(200 * time.Millisecond) {
		if time.Since(begin) > patience {
			p.Fatalf("nothing more came within %s: %q", patience, p.Lines())
		}
		n, err := p.queue.Visible(p.Context())
		if err != nil {
			p.Fatal(err)
		}
		if n > 0 {
			p.instance(p.drain)
		}
	}
}

// ran are the outcomes of the runs of the job work.
func (p *platform) ran() (all []store.Outcome) {
	p.T.Helper()
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
	p.instance(func() error { return p.call("tick", noTick) }) // the first call after a deployment
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
