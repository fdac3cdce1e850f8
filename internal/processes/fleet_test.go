//go:build unix

package processes

import (
	"encoding/json"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/soloist-go/soloist/internal/proctest"
	"github.com/soloist-go/soloist/store"
)

// A fleet is the replicas of one test over a container of their own.
type fleet struct {
	proctest.Fleet
	t       *testing.T
	storage proctest.Storage
	order   order // of all; Name and Skew are each one's own
}

func newFleet(t *testing.T, o order) *fleet {
	t.Helper()
	f := &fleet{t: t, storage: proctest.Azurite(t), order: o}
	f.Env = append(f.storage.Env(), "SOLOIST_APP=e2e", "SOLOIST_ADDR=127.0.0.1:0", "SOLOIST_GRACE="+o.Grace.String())
	t.Cleanup(func() { f.End(t) })
	return f
}

// start starts a replica; it is killed at the end of the test.
func (f *fleet) start(name string, skew time.Duration) {
	f.t.Helper()
	o := f.order
	o.Name, o.Skew = name, skew
	text, err := json.Marshal(o)
	if err == nil {
		err = f.Start(name, proctest.As(string(text)), "CONTAINER_APP_REPLICA_NAME="+name)
	}
	if err != nil {
		f.t.Fatal(err)
	}
}

// startReady is start of a program under host.Main that returns when the replica
// has reached the storage.
func (f *fleet) startReady(name string) {
	f.t.Helper()
	f.start(name, 0)
	url := f.have("the address of "+name, func(e event) bool { return e.Replica == name && e.Msg == "listening" }).URL
	proctest.Poll(f.t, name+" as it should be", patience, func() bool { return proctest.Well(url) == nil })
}

func (f *fleet) signal(name string, s os.Signal) {
	f.t.Helper()
	if err := f.Replica(name).Signal(s); err != nil {
		f.t.Fatal(err)
	}
}

// await returns the first event from now on that ok accepts.
func (f *fleet) await(what string, ok func(event) bool) event {
	f.t.Helper()
	e, err := f.Await(what, patience, ok)
	if err != nil {
		f.t.Fatal(err)
	}
	return e
}

// have is await that takes an event of before, too.
func (f *fleet) have(what string, ok func(event) bool) event {
	f.t.Helper()
	e, err := f.Have(what, patience, ok)
	if err != nil {
		f.t.Fatal(err)
	}
	return e
}

// exit waits for the end of a process, and returns when that was.
func (f *fleet) exit(name string) (at time.Time, code int) {
	f.t.Helper()
	if !f.Replica(name).GoneWithin(patience) {
		f.t.Fatalf("%s did not exit within %s", name, patience)
	}
	return time.Now(), f.Replica(name).Code()
}

// starts returns the starts of runs so far.
func (f *fleet) starts() (all []event) {
	for _, e := range f.Events() {
		if e.What == "start" {
			all = append(all, e)
		}
	}
	return all
}

// endOf returns the return of a run.
func (f *fleet) endOf(run event) (end event, ok bool) {
	for _, e := range f.Events() {
		if e.What == "end" && e.Token == run.Token {
			return e, true
		}
	}
	return event{}, false
}

// killRun kills the replica that begins the next run, in the middle of that run, and returns the run. A busy machine may
// be so late that the run has returned: that replica is started again, and returned holds the run.
func (f *fleet) killRun() (killed event, returned []event) {
	f.t.Helper()
	for range 5 {
		begun := len(f.starts())
		proctest.Poll(f.t, "a run to kill", patience, func() bool { return len(f.starts()) > begun })
		victim := f.newest().Replica
		f.signal(victim, syscall.SIGKILL)
		<-f.Replica(victim).Gone()
		killed = f.newestOf(victim)
		if _, over := f.endOf(killed); !over {
			return killed, returned
		}
		returned = append(returned, killed)
		f.start(victim, 0)
	}
	f.t.Fatal("each run had returned when its replica was gone")
	return killed, returned
}

// newest returns the newest start, and newestOf that of one replica.
func (f *fleet) newest() event { return f.newestOf("") }

func (f *fleet) newestOf(replica string) (last event) {
	for _, e := range f.starts() {
		if e.At.After(last.At) && started(replica)(e) {
			last = e
		}
	}
	return last
}

func ended(by string) func(event) bool {
	return func(e event) bool { return e.What == "end" && e.Replica == by }
}

func started(by string) func(event) bool {
	return func(e event) bool { return e.What == "start" && (by == "" || e.Replica == by) }
}

func logged(by, text string) func(event) bool {
	return func(e event) bool { return e.What == proctest.Log && e.Replica == by && strings.Contains(e.Text, text) }
}

// A tick is one of one job.
type tick struct {
	job string
	at  int64
}

func tickOf(e event) tick { return tick{e.Job, e.Tick.UnixNano()} }

// ticks returns how often each tick was started.
func (f *fleet) ticks() map[tick]int {
	n := map[tick]int{}
	for _, e := range f.starts() {
		n[tickOf(e)]++
	}
	return n
}

// checkOnce checks that each tick of a job from one to another ran once.
func (f *fleet) checkOnce(job string, every time.Duration, from, to time.Time) {
	f.t.Helper()
	ticks := f.ticks()
	for at := from; !at.After(to); at = at.Add(every) {
		if n := ticks[tick{job, at.UnixNano()}]; n != 1 {
			f.t.Errorf("tick %s of %s ran %d times", at.Format(time.TimeOnly), job, n)
		}
	}
}

// record returns the job's record.
func (f *fleet) record() store.Record {
	f.t.Helper()
	return f.storage.Record(f.t, "e2e/work")
}
