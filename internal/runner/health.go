package runner

import "time"

// A Health is how the jobs of a replica fare.
type Health struct {
	Running []string
	Stuck   []string
	Broken  map[string]error
	Overrun map[string]error
	Skew    time.Duration
	Storage error
	Reached bool
	Log     error
}

// Health returns how the replica fares. It asks nobody.
func (r *Replica) Health() Health {
	h := Health{Broken: map[string]error{}, Overrun: map[string]error{}, Skew: r.Clock.Skew(), Log: r.Lines.Blocked()}
	h.Storage, h.Reached = r.outage.now()
	for _, s := range r.jobs {
		n := s.get()
		if n.running > 0 {
			h.Running = append(h.Running, s.job)
		}
		if n.looping && !n.busy && time.Since(n.beat) > stuckAfter {
			h.Stuck = append(h.Stuck, s.job)
		}
		cause := n.overruns()
		if cause != nil && !s.everyReplica {
			h.Overrun[s.job] = cause
		}
		switch {
		case n.broken != nil:
			h.Broken[s.job] = n.broken
		case cause != nil && s.everyReplica:
			h.Broken[s.job] = cause
		case n.storage != nil && h.Storage == nil:
			h.Broken[s.job] = n.storage
		}
	}
	return h
}
