package runner

import (
	"time"

	"github.com/soloist-go/soloist/internal/instant"
	"github.com/soloist-go/soloist/internal/plan"
)

// owes returns up to when the ticks are due for a call of RunDue, zero for any other call: those that were
// due when it began, and those up to the tick of its wake-up. Later ones wait for the next call. Else a
// job whose run takes longer than its period would keep the call going forever.
func (r *Runner) owes(c *call) time.Time {
	if c.wake.begin.IsZero() {
		return time.Time{}
	}
	now := r.now()
	last := now.Add(-time.Since(c.wake.begin))
	if c.wake.Tick.Sub(now) <= plan.WakeSpan {
		last = instant.Later(last, instant.Earlier(c.wake.Tick, now))
	}
	return last
}

// leaveTo notes the first tick of a follower that the call leaves to others. It runs those that are
// decided as far as it knows, up to the last tick it has due.
func (r *Runner) leaveTo(c *call) {
	if b := r.view.before; b != nil {
		left := r.job.Policy.Unclaimed(&r.view.rec)
		if does := instant.Earlier(b.jobs.get().by, r.owes(c)); !left.IsZero() && !left.After(does) {
			left = r.job.Policy.Ticks.Next(does)
		}
		b.left.Store(&left)
	}
}
