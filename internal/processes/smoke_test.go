//go:build unix

package processes

import (
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/internal/proctest"
)

// hold makes the file that keeps runs from returning.
func hold(t *testing.T) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "hold")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// SIGTERM under a run: the record says that the run is stopping while it goes on, the next run starts when it has
// returned, and the process ends with code 0. Under Rerun the next run is the next attempt at the tick.
func TestSIGTERM(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]order{"a singleton": {Singleton: true}, "a job under Rerun": {Rerun: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o.Takes, o.Hold = time.Hour, hold(t)
			f := newFleet(t, o)
			f.start("a")
			run := f.have("a run", is("start", "a"))
			f.start("b")
			f.awaitReady("b")
			f.signal("a", syscall.SIGTERM)
			proctest.Poll(t, "the record to say that the run is stopping", patience, func() bool { return f.record().Run.Stopping })
			if r := f.record(); r.Run.Status != "running" || r.Token != run.Token || len(f.all(after(run))) > 0 {
				t.Errorf("while the run goes on, the record has %+v", r.Run)
			}
			os.Remove(o.Hold)
			next := f.have("a run elsewhere", is("start", "b"))
			if end := f.have("the end of the run", is("end", "a")); end.Cause != soloist.ErrStopped.Error() {
				t.Errorf("it ended for %q", end.Cause)
			}
			if o.Rerun && (!next.Tick.Equal(run.Tick) || next.Attempt != run.Attempt+1) {
				t.Errorf("attempt %d at %s follows attempt %d at %s", next.Attempt, next.Tick, run.Attempt, run.Tick)
			}
			if code := f.Replica("a").Code(); code != 0 {
				t.Errorf("it exited with code %d", code)
			}
			f.kill("b") // its run would take its grace
			f.judge()
		})
	}
}

// A new version is deployed over the one before, which works on meanwhile. It is prepared once, though its first attempt
// fails or its process is killed; no job of it starts before that. No tick is lost or run twice.
func TestDeploy(t *testing.T) {
	t.Parallel()
	f := newFleet(t, order{Missed: soloist.RunAll, Takes: 50 * time.Millisecond, Version: "v1", Prepared: t.TempDir()})
	old, young := []string{"a1", "b1", "c1"}, []string{"a2", "b2", "c2"}
	f.start(old...)
	f.awaitReady(old...)
	first := f.have("a run", is("start", ""))
	f.order.Version = "v2"
	f.start(young...)
	victim := f.have("the preparation of v2", func(e event) bool { return e.What == "begin" && e.Cause == "v2" }).Replica
	f.kill(victim)
	f.start(victim)
	f.awaitReady(young...)
	f.stop(old...)
	last := slices.MaxFunc(f.all(is("start", "")), func(a, b event) int { return int(a.Token - b.Token) })
	f.have("a run of v2", after(last))
	f.stop(young...)
	f.judge()
	for version, begun := range map[string]int{"v1": 2, "v2": 2} {
		of := func(what string) []event {
			return f.all(func(e event) bool { return e.What == what && e.Cause == version })
		}
		if begins, done := of("begin"), of("done"); len(begins) != begun || len(done) != 1 {
			t.Errorf("%s was begun %d times and done %d times, want %d and once", version, len(begins), len(done), begun)
		} else if early := f.all(func(e event) bool {
			return e.What == "start" && e.Replica[1:] == version[1:] && e.At.Before(done[0].At)
		}); len(early) > 0 {
			t.Errorf("%s ran its job before it was prepared: %+v", version, early)
		}
	}
	f.wantEachTick(first)
}

// wantEachTick checks that each tick from the one of this run on was run. The judge checks that none was twice.
func (f *fleet) wantEachTick(first event) {
	f.t.Helper()
	tick := first.Tick
	for _, run := range f.all(is("start", "")) {
		if run.Tick.Before(first.Tick) {
			continue
		}
		if !run.Tick.Equal(tick) {
			f.t.Errorf("got a run of %s, want the tick %s", run.Tick, tick)
		}
		tick = run.Tick.Add(time.Second)
	}
}
