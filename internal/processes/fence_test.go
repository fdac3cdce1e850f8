//go:build unix

package processes

import (
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/soloist-go/soloist/internal/proctest"
	"github.com/soloist-go/soloist/store"
)

// An effect is what a run sends to a sink, which refuses tokens that are smaller than one it has seen.
type effect struct {
	Token int64
	Beat  time.Time // when the heartbeat was called that it follows
}

type sink struct {
	*proctest.Sink

	mu    sync.Mutex
	fence proctest.Fence
	all   []effect
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
	s.all = append(s.all, e)
	return s.fence.Pass("work", e.Token)
}

// effects returns those of a run.
func (s *sink) effects(token int64) (of []effect) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.all {
		if e.Token == token {
			of = append(of, e)
		}
	}
	return of
}

func (s *sink) await(t *testing.T, token int64) {
	t.Helper()
	begun := len(s.effects(token))
	proctest.Poll(t, fmt.Sprintf("an effect of token %d", token), patience, func() bool { return len(s.effects(token)) > begun })
}

// SIGSTOP under a run, and SIGCONT once another replica runs: no heartbeat of the old run counts any more, so it has no
// effect but one that was on its way, and the sink refuses that. It ends, and its outcome does not replace the new run.
func TestSIGSTOP(t *testing.T) {
	t.Parallel()
	for _, lease := range []time.Duration{15 * time.Second, 3 * time.Second} { // the service's shortest, and one kept by beats
		t.Run(lease.String(), func(t *testing.T) {
			t.Parallel()
			s := newSink(t)
			f := newFleet(t, order{Singleton: true, Sink: s.URL})
			f.Env = append(f.Env, "SOLOIST_LEASE="+lease.String())
			f.start("a")
			old := f.have("a run", is("start", "a"))
			f.start("b")
			f.awaitReady("b")
			s.await(t, old.Token)
			f.signal("a", syscall.SIGSTOP)
			next := f.have("a run elsewhere", is("start", "b"))
			s.await(t, next.Token)
			thawed := time.Now()
			f.signal("a", syscall.SIGCONT)
			for what, e := range map[string]event{
				"a heartbeat": f.have("the refusal of a heartbeat", func(e event) bool { return e.What == "refused" && e.Token == old.Token }),
				"the context": f.have("the end of the old run", func(e event) bool { return e.What == "end" && e.Token == old.Token }),
			} {
				if !strings.HasPrefix(e.Cause, store.ErrLost.Error()) {
					t.Errorf("%s said %q, want %q", what, e.Cause, store.ErrLost)
				}
			}
			s.await(t, next.Token)
			if r := f.record(); r.Run.Replica != "b" || r.Token != next.Token || r.Run.Status != store.Running {
				t.Errorf("the record has %s, token %d, %s", r.Run.Replica, r.Token, r.Run.Status)
			}
			s.judge(t, old.Token, thawed)
		})
	}
}

// judge checks that no heartbeat of the old run counted that was called after the thaw.
func (s *sink) judge(t *testing.T, old int64, thawed time.Time) {
	t.Helper()
	for _, e := range s.effects(old) {
		if e.Beat.After(thawed) {
			t.Errorf("a heartbeat counted %s after the thaw", e.Beat.Sub(thawed))
		}
	}
}
