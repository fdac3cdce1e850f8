package runner

import (
	"context"
	"sync"
	"time"
)

const (
	// startsCheck is how often it is looked whether runs still start. A claim that gets no answer
	// keeps outcomes for that long, and startsMost is for how long they are kept in all.
	startsCheck = 50 * time.Millisecond
	startsMost  = time.Second

	// Once all runs of this replica have started, other replicas' may have not: they share the
	// store, and perhaps the machine. They take about as long as these did.
	startsShortest = 5 * time.Millisecond
	startsLongest  = 25 * time.Millisecond
)

// Starts are the runs of a replica that are about to start. Outcomes wait for them: at a tick of
// many jobs they would take the processors and the store from the claims of those that have not
// started yet, and a late start is worse than a late outcome.
type starts struct {
	mu  sync.Mutex
	now *rush // nil: outcomes do not wait
}

// A rush is a time in which runs are about to start.
type rush struct {
	over  chan struct{} // closed when it ends
	timer *time.Timer   // has it looked at
	begun time.Time
	first time.Time // when the first run had started
	ahead int       // runs that are about to start
	made  int       // runs that have started, or will not
	seen  int       // of these, at the last look
}

// add counts a run that is about to start. The caller calls done, once, when it has, or will not.
func (s *starts) add() (done func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.now
	if r == nil {
		r = &rush{over: make(chan struct{}), begun: time.Now()}
		r.timer = time.AfterFunc(startsCheck, func() { s.look(r) })
		s.now = r
	}
	r.ahead++
	return func() { s.done(r) }
}

func (s *starts) done(r *rush) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r.ahead--
	if r.made++; r.made == 1 {
		r.first = time.Now()
	}
	switch {
	case s.now != r || r.ahead > 0:
	case r.made == 1: // a job that is due alone
		s.end(r)
	default:
		s.wakeIn(r, min(max(time.Since(r.first), startsShortest), startsLongest))
	}
}

// look ends a rush if all runs have started, if none has since the last look, or if it takes too
// long.
func (s *starts) look(r *rush) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.now != r:
	case r.ahead == 0, r.made == r.seen:
		s.end(r)
	default:
		r.seen = r.made
		s.wakeIn(r, startsCheck)
	}
}

// wakeIn has a rush looked at after d, or ends it once it has taken too long. The caller holds mu.
func (s *starts) wakeIn(r *rush, d time.Duration) {
	left := startsMost - time.Since(r.begun)
	if left <= 0 {
		s.end(r)
		return
	}
	r.timer.Reset(min(d, left))
}

// end ends a rush: the next start begins another one, whatever has become of the starts of this one.
// The caller holds mu.
func (s *starts) end(r *rush) {
	r.timer.Stop()
	close(r.over)
	s.now = nil
}

// wait returns when no run is about to start, or when that takes too long. A stop, and the loss
// of the lease, end the wait.
func (s *starts) wait(stop, held context.Context) {
	s.mu.Lock()
	r := s.now
	s.mu.Unlock()
	if r == nil {
		return
	}
	select {
	case <-r.over:
	case <-stop.Done():
	case <-held.Done():
	}
}
