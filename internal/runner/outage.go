package runner

import (
	"log/slog"
	"sync"
	"time"
)

// An outage is logged once when it begins and once when it is over, however many
// jobs it hits.
type outage struct {
	mu      sync.Mutex
	hit     map[*source]trouble
	since   time.Time
	answers int   // of the store, to any source
	err     error // why it is out of reach for all; nil: it is not, as far as known
}

// A trouble is that of one source.
type trouble struct {
	answers int // how many there had been before
	err     error
}

func (o *outage) begin(s *source, err error, log *slog.Logger) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.hit) == 0 {
		o.hit, o.since = map[*source]trouble{}, time.Now()
		log.Warn("the store is out of reach: trying again until it answers", "first", s.state.job, "error", err)
	}
	t, again := o.hit[s]
	if !again {
		t.answers = o.answers
	}
	t.err = err
	o.hit[s] = t
	// Where others have had answers since its trouble began, it is its own.
	if t.answers == o.answers {
		o.err = err
	}
}

func (o *outage) end(s *source, log *slog.Logger) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.answers++
	o.err = nil
	if _, hit := o.hit[s]; !hit {
		return
	}
	delete(o.hit, s)
	if len(o.hit) == 0 {
		log.Info("the store answers again", "after", time.Since(o.since).Round(time.Second))
	}
}

// leave forgets the trouble of a source that has ended. The loop of the same job
// may be in trouble too.
func (o *outage) leave(s *source) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, hit := o.hit[s]; !hit {
		return
	}
	delete(o.hit, s)
	var left error
	for other, t := range o.hit {
		if other.state == s.state {
			left = t.err
		}
	}
	s.state.set(func(n *snapshot) { n.storage = left })
	if len(o.hit) == 0 {
		o.err = nil
	}
}

// now is why the store is out of reach, and whether it ever answered.
func (o *outage) now() (unreachable error, reached bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err, o.answers > 0
}
