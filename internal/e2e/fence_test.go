//go:build unix

package e2e

import (
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/soloist-go/soloist/store"
)

// A sink takes effects, but none of a run whose token is smaller than one that
// it has seen.
type sink struct {
	url string

	mu      sync.Mutex
	largest int64
	all     []effect // in the order in which they came
}

type effect struct {
	token    int64
	beat     time.Time // when the heartbeat was called that it follows on
	accepted bool
}

func newSink(t *testing.T) *sink {
	s := &sink{}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

func (s *sink) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	token, err1 := strconv.ParseInt(r.FormValue("token"), 10, 64)
	beat, err2 := strconv.ParseInt(r.FormValue("beat"), 10, 64)
	if err1 != nil || err2 != nil {
		http.Error(w, "want token and beat", http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	accepted := token >= s.largest
	s.all = append(s.all, effect{token, time.Unix(0, beat), accepted})
	if !accepted {
		http.Error(w, "a newer run is at it", http.StatusConflict)
		return
	}
	s.largest = token
}

// effects returns those of one token.
func (s *sink) effects(token int64) (of []effect) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.all {
		if e.token == token {
			of = append(of, e)
		}
	}
	return of
}

// await waits for an effect that is accepted, after a heartbeat since then.
func (s *sink) await(t *testing.T, token int64, since time.Time) {
	t.Helper()
	for range 1000 {
		for _, e := range s.effects(token) {
			if e.accepted && e.beat.After(since) {
				return
			}
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("no effect of token %d is accepted", token)
}

func TestAFrozenRunnerHasNoEffectAfterwards(t *testing.T) {
	t.Parallel()
	s := newSink(t)
	f := newFleet(t, order{Program: fenced, Sink: s.url})
	f.start("a", 0)
	old := f.await("the first run", time.Minute, started("a"))
	s.await(t, old.Token, old.At)
	f.start("b", 0)
	f.await("the second replica", time.Minute, func(e event) bool { return e.Replica == "b" && e.What == "ready" })
	time.Sleep(lease / 3) // by then it has found the run
	f.signal("a", syscall.SIGSTOP)
	frozen := time.Now()
	next := f.await("a run elsewhere", time.Minute, started("b"))
	s.await(t, next.Token, next.At)
	time.Sleep(time.Until(frozen.Add(2 * lease)))
	thawed := time.Now()
	f.signal("a", syscall.SIGCONT)
	if end := f.await("the end of the old run", time.Minute, ended("a")); !strings.HasPrefix(end.Cause, store.ErrLost.Error()) {
		t.Errorf("the first heartbeat that failed said %q, want %q", end.Cause, store.ErrLost)
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
		switch taken = taken || e.token == next; {
		case e.token != old:
			continue
		case !e.accepted:
			refused++
		case taken:
			after++
		default:
			before++
		}
		if e.beat.After(thawed) {
			t.Errorf("a heartbeat counted %s after the thaw", e.beat.Sub(thawed))
		}
	}
	if after != 0 {
		t.Errorf("%d effects of the old run were accepted after the first of the new one", after)
	}
	t.Logf("of the old run: %d effects before the new one's first, %d refused after it", before, refused)
}
