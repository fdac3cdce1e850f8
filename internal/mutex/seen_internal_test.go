package mutex

import (
	"errors"
	"testing"
	"time"

	"github.com/soloist-go/soloist/internal/runner"
	"github.com/soloist-go/soloist/store"
)

// A call that waits for others of its process says that the lock is held if one of them works, or if the last whole look has
// seen a holder, within the length of a lease.
func TestWhatAWaitingCallSays(t *testing.T) {
	now := -time.Hour // elapsed time counts from any instant
	s := seen{elapsed: func() time.Duration { return now }, length: time.Minute}
	says := func(when string, want error) {
		t.Helper()
		if got := s.why(); !errors.Is(got, want) {
			t.Errorf("%s: got %v, want %v", when, got, want)
		}
	}
	says("before a look", runner.ErrTrying)
	s.look(true, false)
	says("a part of the slots, with a holder", store.ErrHeld)
	s.look(false, false)
	says("a part without one, after that", store.ErrHeld)
	s.look(false, true)
	says("a whole look without one", runner.ErrTrying)
	s.look(true, true)
	now += time.Minute - 1
	says("a holder, just less than a lease ago", store.ErrHeld)
	now++
	says("a holder, a lease ago", runner.ErrTrying)
	end := s.begin()
	says("another call works", store.ErrHeld)
	end()
	says("it has returned", runner.ErrTrying)
}
