package host_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host"
	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/store"
)

// withLogs is a gated store that keeps logs.
type withLogs struct {
	*gated
	store.Appender
}

// noting has the first job of a program note its runs.
func noting(p host.Program, runs *runsLog) host.Program {
	j := p.Work[0].(soloist.Job)
	do := j.Do
	j.Do = func(ctx context.Context, r *soloist.Run) error {
		runs.add(r.ID())
		return do(ctx, r)
	}
	p.Work = []soloist.Work{j}
	return p
}

// cutOff has a job of each 20 s run for a while, and its run ordered by a command that the store
// does not answer for ten minutes, from half a second after the order on: the record has
// forgotten the outcome by then. It returns how often it ran, what the command said and how long
// it took.
func cutOff(t *testing.T, keepsLogs bool, args ...string) (times int, got result, took time.Duration) {
	synctest.Test(t, func(t *testing.T) {
		backend := new(local.Memory)
		runs := &runsLog{}
		p := noting(frequent(backend), runs)
		run(t.Context(), p, "tick")
		fleet, over := p, make(chan struct{})
		go func() {
			defer close(over)
			for range 100 {
				time.Sleep(20 * time.Second)
				run(t.Context(), fleet, "tick")
			}
		}()
		time.Sleep(21 * time.Second)
		away := newGated(backend, nil)
		if p.Store = away; keepsLogs {
			p.Store = withLogs{away, backend}
		}
		time.AfterFunc(time.Second/2, func() { away.away(10 * time.Minute) })
		if args = append([]string{"run", "often", "--request", "one"}, args...); args[len(args)-1] == "--here" {
			away.set(refuse(store.ErrHeld, "acquire")) // another client is faster
		}
		begin := time.Now()
		got = run(t.Context(), p, args...)
		took = time.Since(begin)
		<-over
		times = strings.Count(strings.Join(runs.all(), " ")+" ", "often@one ")
	})
	return times, got, took
}

// A command that was cut off for so long that the record has forgotten what it ordered tells the
// outcome from the log. Without a log it says that it was begun, and neither waits on nor advises
// to run it again.
func TestRunWhoseOutcomeIsForgotten(t *testing.T) {
	environment(t, "SOLOIST_HISTORY=24h")
	times, got, took := cutOff(t, true)
	if times != 1 || got.code != 0 || !strings.HasPrefix(got.out, "often@one: succeeded ") || took > 15*time.Minute {
		t.Errorf("with a log: ran %d times, got %+v after %s", times, got, took)
	}
	for _, args := range [][]string{nil, {"--here"}} {
		times, got, took = cutOff(t, false, args...)
		if times != 1 || got.code != 1 || !strings.HasSuffix(got.err, "was begun or settled, and its outcome is not in the record any more\n") || took > 15*time.Minute {
			t.Errorf("without a log, %q: ran %d times, got %+v after %s", args, times, got, took)
		}
		if strings.Contains(got.err, "no replica has begun it") {
			t.Errorf("%q: it says %s", args, got.err)
		}
	}
}

// A run whose replica has died was begun.
func TestRunWhoseReplicaHasDied(t *testing.T) {
	environment(t)
	synctest.Test(t, func(t *testing.T) {
		runs := &runsLog{}
		p := steered(runs)
		run(t.Context(), p, "tick")
		dying := newGated(p.Store, nil)
		died := p
		died.Store = dying
		stop := replica(t, died, "replica-a")
		time.Sleep(10 * time.Second)
		time.AfterFunc(8*time.Second, func() { dying.set(refuse(errDown)) })
		time.AfterFunc(30*time.Second, stop)
		got := run(t.Context(), p, "run", "beat", "--request", "one", "--until", "2m")
		if got.code != 1 || strings.Contains(got.err, "no replica has begun it") || !strings.HasSuffix(got.err, "replica-a has begun it and writes no outcome: the next replica that is up does\n") {
			t.Errorf("got %+v", got)
		}
	})
}

// A job that has to do with others is run by hand as any is.
func TestRunOfAJobWithAGroupOrBeforeIt(t *testing.T) {
	environment(t)
	synctest.Test(t, func(t *testing.T) {
		p := host.Program{Store: &local.Memory{}, Groups: map[string]int{"db": 1}, Work: []soloist.Work{
			soloist.Job{Name: "import", Schedule: "@every 1h", Do: do, Group: "db"},
			soloist.Job{Name: "report", After: "import", Do: do, Group: "db"},
		}}
		run(t.Context(), p, "tick")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for _, job := range []string{"import", "report"} {
			if got := run(ctx, p, "run", job, "--here", "--request", "one"); got.code != 0 || !strings.HasPrefix(got.out, job+"@one: succeeded ") {
				t.Errorf("%s here: got %+v", job, got)
			}
		}
		defer replica(t, p, "replica-a")()
		for _, job := range []string{"import", "report"} {
			if got := run(ctx, p, "run", job, "--request", "two"); got.code != 0 || !strings.HasPrefix(got.out, job+"@two: succeeded ") {
				t.Errorf("%s: got %+v", job, got)
			}
		}
	})
}
