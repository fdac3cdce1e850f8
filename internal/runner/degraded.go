package runner

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
)

// A degradation is why a replica starts nothing new: which runs under a lease go on though
// their contexts have ended. Every step asks for it, so what it costs must not grow with the
// number of jobs: only a run that begins or ends to go on so changes it.
type degradation struct {
	mu    sync.Mutex
	runs  []stray               // in the order of the jobs
	cause atomic.Pointer[error] // of the first of them; nil: there is none
}

// A stray is one such run. A job has more than one if it was run manually as well.
type stray struct {
	overrun
	job   string
	place int // of the job among the replica's jobs
}

// set replaces what is known of the runs of one origin; without a cause there is none.
func (d *degradation) set(s stray) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.runs = slices.DeleteFunc(d.runs, func(old stray) bool { return old.of == s.of })
	if s.cause != nil {
		d.runs = append(d.runs, s)
		slices.SortStableFunc(d.runs, func(a, b stray) int { return a.place - b.place })
	}
	if len(d.runs) == 0 {
		d.cause.Store(nil)
		return
	}
	// The cause is that run's: what is refused here has lost nothing.
	err := fmt.Errorf("%s goes on though its context has ended (%v): this replica takes nothing new until it returns or the process is restarted", d.runs[0].job, d.runs[0].cause)
	d.cause.Store(&err)
}
