package soak_test

import (
	"time"

	"github.com/soloist-go/soloist"
)

// A seat is who runs a job, or leads.
type seat struct {
	*replica
	token int64
	since time.Time
}

// An office is how the singleton fared.
type office struct {
	terms   int
	up      time.Duration
	vacant  time.Time     // since then nobody leads; zero: nobody ever did
	longest time.Duration // that nobody led
	worst   time.Duration // the same, while somebody could
}

// sit notes that a run begins: it has to be the only one. The one before it may
// be on a replica that has crashed.
func (r *replica) sit(run *soloist.Run) (leave func()) {
	c := r.cluster
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.gone() {
		return func() {}
	}
	if s := c.seats[run.Job]; s != nil {
		c.bad("%s: %s begins with token %d while %s runs with token %d", run.Job, r.name, run.Token, s.name, s.token)
	}
	s := &seat{r, run.Token, time.Now()}
	c.seats[run.Job] = s
	if run.Job == leader {
		c.office.begin(max(0, time.Since(c.wellAt)))
	}
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.leave(run.Job, s)
	}
}

// leaveAll ends the runs of a replica that crashes.
func (r *replica) leaveAll() {
	c := r.cluster
	c.mu.Lock()
	defer c.mu.Unlock()
	for job, s := range c.seats {
		if s.replica == r {
			c.leave(job, s)
		}
	}
}

// leave is called with mu held.
func (c *cluster) leave(job string, s *seat) {
	if c.seats[job] != s {
		return
	}
	delete(c.seats, job)
	if job == leader {
		c.office.up += time.Since(s.since)
		c.office.vacant = time.Now()
	}
}

// begin begins a term, after somebody could lead for the time well.
func (o *office) begin(well time.Duration) {
	o.terms++
	if gap := time.Since(o.vacant); !o.vacant.IsZero() {
		o.longest, o.worst = max(o.longest, gap), max(o.worst, min(gap, well))
	}
}
