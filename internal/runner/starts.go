package runner

import (
	"context"
	"sync"
	"time"
)

const (
	// startsAhead is how long before its tick a run counts as about to start.
	startsAhead = 20 * time.Millisecond

	// startsCheck is how often the starts are looked at: if none was made since the last time,
	// outcomes wait no more. No job waits for longer for a store that does not answer another one.
	// It is no round time, so that the wait does not end at the very instant at which others begin.
	startsCheck = 49_973 * time.Microsecond
	startsMost  = 20 // checks: so long do outcomes wait if starts keep coming

	// Once all runs of this replica have started, those of others may have not: they share the
	// store, and perhaps the machine. They take about as long as these did.
	startsShortest = 4_973 * time.Microsecond
	startsLongest  = 24_973 * time.Microsecond
)

// Starts are the runs of a replica that are about to start. Outcomes wait for them: at a tick of
// many jobs they would take the processors and the store from the claims of those that have not
// started yet, and nobody waits for an outcome as for the start of a run.
type starts struct {
	mu    sync.Mutex
	ahead int           // runs that are about to start
	over  chan struct{} // closed when outcomes wait no more; nil: they do not wait
	timer *time.Timer   // has look called

	// Since outcomes wait:
	first  time.Time // when the first run has started
	made   int       // runs that have started
	seen   int       // of these, at the last look
	checks int
}

// add counts a run that is about to start. The caller calls done once it has, or will not.
func (s *starts) add() (done func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ahead++
	if s.ahead == 1 && s.over == nil {
		s.over = make(chan struct{})
		s.made, s.seen, s.checks = 0, 0, 0
		s.timer = time.AfterFunc(startsCheck, s.look)
	}
	return sync.OnceFunc(s.done)
}

func (s *starts) done() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ahead--
	if s.made++; s.made == 1 {
		s.first = time.Now()
	}
	switch {
	case s.ahead > 0 || s.over == nil:
	case s.made == 1: // a job that is due alone
		s.close()
	default:
		s.timer.Reset(min(max(time.Since(s.first), startsShortest), startsLongest))
	}
}

// look ends the wait of outcomes if it is over, or has taken too long.
func (s *starts) look() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.checks++
	switch {
	case s.over == nil:
	case s.ahead == 0, s.made == s.seen, s.checks >= startsMost:
		s.close()
	default:
		s.seen = s.made
		s.timer.Reset(startsCheck)
	}
}

// close lets outcomes wait no more. The caller holds mu.
func (s *starts) close() {
	s.timer.Stop()
	close(s.over)
	s.over = nil
}

// wait returns when no run is about to start, or when ctx ends, or when that takes too long.
func (s *starts) wait(ctx context.Context) {
	s.mu.Lock()
	over := s.over
	s.mu.Unlock()
	if over == nil {
		return
	}
	select {
	case <-over:
	case <-ctx.Done():
	}
}
