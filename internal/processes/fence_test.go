//go:build unix

package processes

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/soloist-go/soloist/internal/proctest"
	"github.com/soloist-go/soloist/store"
)

// A sink takes effects, but none of a run whose token is smaller than one that
// it has seen.
type sink struct {
	*proctest.Sink

	mu    sync.Mutex
	fence proctest.Fence
	all   []effect // in the order in which they came
}

type effect struct {
	Token    int64
	Beat     time.Time // when the heartbeat was called that it follows on
	accepted bool
}

func newSink(t *testing.T) *sink {
	t.Helper()
	s := &sink{fence: proctest.Fence{}}
	var err error
	if s.Sink, err = proctest.NewSink(s.take); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func (s *sink) take(e effect) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	e.accepted = s.fence.Pass("work", e.Token)
	s.all = append(s.all, e)
	return e.accepted
}

// await waits for an effect that is accepted, after a heartbeat since then.
func (s *sink) await(t *testing.T, token int64, since time.Time) {
	t.Helper()
	proctest.Poll(t, fmt.Sprintf("an effect of token %d", token), patience, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return slices.ContainsFunc(s.all, func(e effect) bool { return e.Token == token && e.accepted && e.Beat.After(since) })
	})
}

func TestFrozenRunnerHasNoEffect(t *testing.T) {
	t.Parallel()
	for name, job := range map[string]bool{"a singleton": false, "a job": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if job {
				furtherCase(t)
			}
			freeze(t, job)
		})
	}
}

func freeze(t *testing.T, job bool) {
	s := newSink(t)
	f := newFleet(t, order{Program: fenced, Job: job, Sink: s.URL})
	f.start("a", 0)
	old := f.await("the first run", started("a"))
	f.startReady("b")
	s.await(t, old.Token, old.At.Add(lease/3)) // by then the lease was renewed
	f.signal("a", syscall.SIGSTOP)
	frozen := time.Now()
	next := f.await("a run elsewhere", started("b"))
	t.Logf("replaced after %s", next.At.Sub(frozen))
	s.await(t, next.Token, next.At)
	thawed := time.Now()
	f.signal("a", syscall.SIGCONT)
	refused := f.await("the refusal of a heartbeat", func(e event) bool { return e.Replica == "a" && e.What == "refused" })
	end := f.await("the end of the old run", ended("a"))
	t.Logf("cancelled %s after it went on", end.At.Sub(thawed))
	for what, cause := range map[string]string{"the first heartbeat that failed": refused.Cause, "the context": end.Cause} {
		if !strings.HasPrefix(cause, store.ErrLost.Error()) {
			t.Errorf("%s said %q, want %q", what, cause, store.ErrLost)
		}
	}
	f.have("the refusal of the outcome", logged("a", "the outcome was refused"))
	if r := f.record(); r.Run.Replica != "b" || r.Token != next.Token || r.Run.Status != store.Running {
		t.Errorf("the record tells of %s, token %d, %s", r.Run.Replica, r.Token, r.Run.Status)
	}
	s.await(t, next.Token, time.Now())
	s.check(t, old.Token, next.Token, thawed)
}

// check checks that the old run had no effect once the new one had its first,
// and that no heartbeat of it counted that was called after the thaw.
func (s *sink) check(t *testing.T, old, next int64, thawed time.Time) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	taken := false
	var before, after, refused int
	for _, e := range s.all {
		switch taken = taken || e.Token == next; {
		case e.Token != old:
			continue
		case !e.accepted:
			refused++
		case taken:
			after++
		default:
			before++
		}
		if e.Beat.After(thawed) {
			t.Errorf("a heartbeat counted %s after the thaw", e.Beat.Sub(thawed))
		}
	}
	if after != 0 {
		t.Errorf("%d effects of the old run were accepted after the first of the new one", after)
	}
	t.Logf("of the old run: %d effects before the new one's first, %d refused after it", before, refused)
}
