package mutex

import (
	"sync"
	"time"

	"github.com/soloist-go/soloist/internal/lease"
	"github.com/soloist-go/soloist/internal/runner"
)

const (
	// shortest is the shortest pause between two looks, before the jitter.
	shortest = 50 * time.Millisecond

	// part is which part of the time that the lock is held already a waiting caller lets pass
	// until its next look. So a lock that is held for a second is free for about a tenth of one
	// before it is seen, and a lock that is held for an hour costs few calls.
	part = 8

	// lapseSlack is how long after the instant at which a lease can lapse it is looked at.
	lapseSlack = 50 * time.Millisecond
)

// A pace says when a waiting caller looks again.
type pace struct {
	clock   *lease.Clock
	jitter  *lease.Jitter
	longest time.Duration // between two looks

	tokens int64         // the sum of the tokens of all slots at the last look
	since  time.Duration // elapsed time since which they are the same
}

// next returns the pause until the next look, after a look that has shown these holders.
func (p *pace) next(held []*runner.HeldError) time.Duration {
	now, tokens := p.clock.Elapsed(), int64(0)
	for _, h := range held {
		tokens += h.Token
	}
	if p.since == 0 || tokens != p.tokens {
		p.tokens, p.since = tokens, now
	}
	pause := p.longest
	for _, h := range held {
		pause = min(pause, p.until(h, now-p.since))
	}
	return pause
}

// until returns the pause for one slot, whose holder has it for at least as long as waited.
func (p *pace) until(h *runner.HeldError, waited time.Duration) time.Duration {
	if h.Stopping {
		return shortest
	}
	pause := p.jitter.Half(min(max(shortest, max(h.For, waited)/part), p.longest))
	// Renewals come at thirds of the lease after the claim, so a lapse comes at such an instant.
	if third := h.Lease / 3; third > 0 {
		if lapse := third - h.For%third + lapseSlack; lapse < pause {
			pause = max(shortest, lapse)
		}
	}
	if h.Beat > 0 { // it is replaced once it has sent no beat for long enough
		pause = min(pause, max(shortest, min(h.Beat/3, h.Silent)))
	}
	return pause
}

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
