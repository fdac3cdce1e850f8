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
)

// Starts are the runs of a replica that are about to start. Outcomes wait for them: at a tick of
// many jobs they would take the processors and the store from the claims of those that have not
// started yet, and nobody waits for an outcome as for the start of a run.
type starts struct {
	mu    sync.Mutex
	ahead int           // runs that are about to start
	made  int           // since the last check
	over  chan struct{} // closed when outcomes wait no more; nil: they do not wait
	watch *time.Timer   // of over
}

// add counts a run that is about to start. The caller calls done once it has, or will not.
func (s *starts) add() (done func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ahead++
	if s.ahead == 1 {
		s.open()
	}
	return sync.OnceFunc(s.done)
}

func (s *starts) done() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ahead--
	s.made++
	if s.ahead == 0 {
		s.close()
	}
}

// open lets outcomes wait. The caller holds mu.
func (s *starts) open() {
	over := make(chan struct{})
	s.over, s.made = over, 0
	checks := 0
	s.watch = time.AfterFunc(startsCheck, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.over != over {
			return
		}
		if checks++; s.made == 0 || checks == startsMost {
			s.close()
			return
		}
		s.made = 0
		s.watch.Reset(startsCheck)
	})
}

// close lets outcomes wait no more. The caller holds mu.
func (s *starts) close() {
	if s.over != nil {
		s.watch.Stop()
		close(s.over)
		s.over = nil
	}
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

// willStart notes that the run of a call is about to start.
func (r *Runner) willStart(c *call) {
	if c.started == nil {
		c.started = r.replica.starts.add()
	}
}

// hasStarted notes that the run of the call has started, or that it will not.
func (c *call) hasStarted() {
	if c.started != nil {
		c.started()
		c.started = nil
	}
}
