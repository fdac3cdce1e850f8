package mutex

import (
	"sync"
	"time"
)

// patience is how many times as long as the pause after it a stint may be.
const patience = 32

// A stint is the time for which callers of this process have had the lock one after the other. They
// come back at once, and other replicas only look now and then: without a pause after a long stint
// those would never have it.
type stint struct {
	mu    sync.Mutex
	began time.Duration // elapsed time; meaningful if on
	ended time.Duration // of the last hold
	last  time.Duration // how long that was
	on    bool
}

// add counts a hold.
func (s *stint) add(from, to time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.on {
		s.on, s.began = true, from
	}
	s.ended, s.last = to, to-from
}

// end notes that another replica has the lock.
func (s *stint) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.on = false
}

// pause returns for how long the lock is left to others now: as long as they may take for a look.
func (s *stint) pause(now, longest time.Duration) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	look := min(max(shortest, s.last/part), longest)
	pause := s.ended + look - now
	switch {
	case !s.on:
		return 0
	case pause > 0 && s.ended-s.began < patience*look:
		return 0
	}
	s.on = false
	return max(0, pause)
}
