package runner

import (
	"sync/atomic"
	"time"

	"github.com/soloist-go/soloist/internal/lease"
)

// A load is how much of the work of all replicas this one does. How many replicas there
// are is not known, so it is compared with the jobs.
type load struct {
	jobs int          // that have ticks and leases
	mine atomic.Int64 // of these: their last tick was run here
}

// share returns the part of the jobs that this replica runs, in addition to the job that asks.
func (l *load) share() float64 {
	return float64(max(0, l.mine.Load()-1)) / float64(max(1, l.jobs))
}

// cedes reports whether this replica leaves a tick to others. If it runs more than half of
// the jobs it does so for as many as are above half, on average.
func (l *load) cedes(j *lease.Jitter) bool {
	mine := l.mine.Load()
	above := mine - int64(l.jobs)/2
	return above > 1 && j.UpTo(time.Duration(mine-1)) < time.Duration(above)
}

// count notes whether the last tick of a job was run here.
func (l *load) count(was, is bool) {
	if was != is {
		l.mine.Add(int64(change(is)))
	}
}
