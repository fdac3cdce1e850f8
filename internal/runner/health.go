package runner

import "time"

// A Health is the state of the jobs of a replica; the root explains the fields.
type Health struct {
	Running []string
	Stuck   []string
	Broken  map[string]error
	Overrun map[string]error
	Skew    time.Duration
	Storage error
	Reached bool
}

// Health returns the state of the replica's jobs from memory. It makes no storage call,
// so it answers at once in an outage too.
func (r *Replica) Health() Health {
	h := Health{Broken: map[string]error{}, Overrun: map[string]error{}, Skew: r.Clock.Skew()}
	h.Storage, h.Reached = r.vitals.outage.now()
	for _, s := range r.jobs.states {
		n := s.get()
		if n.running > 0 {
			h.Running = append(h.Running, s.job)
		}
		if n.looping && !n.busy && time.Since(n.beat) > stuckAfter {
			h.Stuck = append(h.Stuck, s.job)
		}
		// A job with a lease that overruns degrades the whole replica; a job that runs on
		// each replica is only broken itself. An outage that hits all jobs is Storage;
		// only trouble that hits this job alone is its own trouble.
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
