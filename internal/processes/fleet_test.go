//go:build unix

package processes

import (
	"encoding/json"
	"os"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/soloist-go/soloist/internal/proctest"
	"github.com/soloist-go/soloist/internal/record"
)

// patience is how long a test waits for what has to come, on any machine.
const patience = 5 * time.Minute

// A fleet is the replicas of one test, over a container of their own.
type fleet struct {
	proctest.Fleet
	t       *testing.T
	storage proctest.Storage
	order   order   // of those that are started from now on
	killed  []event // the replica, and when it was gone
}

func newFleet(t *testing.T, o order) *fleet {
	t.Helper()
	f := &fleet{t: t, storage: proctest.Azurite(t), order: o}
	f.Env = append(f.storage.Env(), "SOLOIST_APP=smoke", "SOLOIST_ADDR=127.0.0.1:0", "SOLOIST_GRACE=30s")
	t.Cleanup(func() { f.End(t) })
	return f
}

func (f *fleet) start(names ...string) {
	f.t.Helper()
	text, err := json.Marshal(f.order)
	if err != nil {
		f.t.Fatal(err)
	}
	for _, name := range names {
		if err := f.Start(name, proctest.As(string(text)), "CONTAINER_APP_REPLICA_NAME="+name); err != nil {
			f.t.Fatal(err)
		}
	}
}

// awaitReady waits until the newest process of each replica says that it is ready.
func (f *fleet) awaitReady(names ...string) {
	f.t.Helper()
	for _, name := range names {
		proctest.Poll(f.t, name+" to be ready", patience, func() bool {
			url := ""
			for _, e := range f.Events() {
				if e.Replica == name && (e.What == proctest.Begins || e.Msg == "listening") {
					url = e.URL
				}
			}
			return url != "" && proctest.Well(url) == nil
		})
	}
}

func (f *fleet) signal(name string, s os.Signal) {
	f.t.Helper()
	if err := f.Replica(name).Signal(s); err != nil {
		f.t.Fatal(err)
	}
}

// kill kills a replica and returns when it is gone.
func (f *fleet) kill(name string) {
	f.t.Helper()
	f.signal(name, syscall.SIGKILL)
	<-f.Replica(name).Gone()
	f.killed = append(f.killed, event{Replica: name, At: time.Now()})
}

// stop ends replicas as a platform does: each with code 0.
func (f *fleet) stop(names ...string) {
	f.t.Helper()
	for _, name := range names {
		if err := f.Replica(name).Stop(patience); err != nil {
			f.t.Errorf("%s: %v", name, err)
		}
	}
}

// have waits for the first event of all that is so.
func (f *fleet) have(what string, ok func(event) bool) event {
	f.t.Helper()
	e, err := f.Have(what, patience, ok)
	if err != nil {
		f.t.Fatal(err)
	}
	return e
}

func (f *fleet) record() record.Record { return f.storage.Record(f.t, "smoke/work") }

// is accepts events of one kind, of one replica or of any.
func is(what, replica string) func(event) bool {
	return func(e event) bool { return e.What == what && (replica == "" || e.Replica == replica) }
}

// after accepts starts with a larger token.
func after(run event) func(event) bool {
	return func(e event) bool { return e.What == "start" && e.Token > run.Token }
}

// all returns the events that are so, in the order of time.
func (f *fleet) all(ok func(event) bool) (all []event) {
	for _, e := range f.Events() {
		if ok(e) {
			all = append(all, e)
		}
	}
	slices.SortFunc(all, func(a, b event) int { return a.At.Compare(b.At) })
	return all
}

// judge checks what holds in each of these tests.
func (f *fleet) judge() {
	f.t.Helper()
	for _, fault := range faults(f.all(is("start", "")), f.all(is("end", "")), f.killed) {
		f.t.Error(fault)
	}
}
