package runner

import (
	"time"

	"github.com/soloist-go/soloist/internal/plan"
	"github.com/soloist-go/soloist/store"
)

// lookAhead adds to a view how long before the next tick this replica acts. A call of
// RunDue or RunNow does not wait for ticks. A job that skips its ticks has nothing to be on time
// for, one of a group needs a slot first, and a follower does not know when it is due. A replica that
// may not be able to write does nothing ahead, so that it keeps no lease from the others, until it
// tries again.
func (r *Runner) lookAhead(c *call, v *plan.View) {
	if c.bounded || r.job.Policy.Paused || !r.mayActAhead() || r.denial.bars(time.Now()) {
		return
	}
	next := r.job.Policy.Upcoming(*v, &r.view.seen)
	if next.IsZero() {
		return
	}
	if next.Sub(v.Now) > farAway && !r.awaitsOther(v) {
		v.Ahead.Lead, v.Ahead.Grab = r.job.Policy.Lead(), r.job.Policy.Lead()
		return
	}
	l := &r.view.lead
	v.Ahead.Last = r.ranLast() && !l.outrun.Equal(next)
	if !l.tick.Equal(next) || l.last != v.Ahead.Last {
		*l = lead{tick: next, last: v.Ahead.Last, outrun: l.outrun}
		l.d, l.grab = r.drawLead(v.Ahead.Last, next)
	}
	v.Ahead.Lead, v.Ahead.Grab = l.d, l.grab
}

// mayActAhead reports whether the job is claimed by the replica that was first before its tick.
func (r *Runner) mayActAhead() bool { return r.job.Group == nil && !r.job.Policy.Follows() }

// awaitsOther reports whether this replica waits for another one to claim or start a tick. Then
// it looks soon after it, and the drawn lead keeps the looks of the replicas apart.
func (r *Runner) awaitsOther(v *plan.View) bool {
	return v.Record.Run.Armed || v.Now.Sub(r.view.seen.Expected) <= r.job.Policy.Lease
}

// farAway is how far away a tick is before which this replica looks at the job again, so that
// nothing is drawn for it yet: an idle job has no random numbers.
const farAway = 2 * plan.LookEvery

// drawLead returns how long before a tick this replica looks, and acquires what it finds free.
// The replica that ran the last tick does not look. The more jobs a replica runs, the later it
// acquires, so that a replica which runs few of them is before it. A replica that runs more than half of all
// jobs leaves some ticks to others: it acquires after they have looked. One whose writes may not
// arrive is last of all; see tryToProve.
func (r *Runner) drawLead(last bool, tick time.Time) (look, grab time.Duration) {
	p, load := &r.job.Policy, r.replica.jobs.load.share()
	first, window := p.Lead(), p.Lead()-p.LookFirst()
	switch {
	case r.denial.unproved:
		return r.lastOfAll(), r.lastOfAll()
	case last && r.replica.jobs.load.cedes(r.client.Jitter):
		return p.Cede(), p.Cede()
	case last:
		first -= r.client.Jitter.UpTo(time.Duration(float64(window) * load))
		return first, first
	}
	window = p.LookFirst() - p.LookLast()
	grab = p.LookFirst() - r.client.Jitter.UpTo(window/2) - time.Duration(float64(window/2)*min(1, 2*load))
	if r.replica.reads.Many() { // jobs of one tick are looked at by one listing
		return p.LookFirst() - r.replica.reads.Within(window/8, tick), min(grab, p.LookFirst()-window/4)
	}
	return grab, grab
}

// triesAgain reports whether an acquisition before the next tick got no answer, and is to be
// repeated at the tick: until then a successful read does not end the trouble.
func (r *Runner) triesAgain(v plan.View) bool {
	p := &r.job.Policy
	next := p.NextTick(v.Record)
	return r.denial.unproved && !next.IsZero() && next.Equal(r.denial.tried)
}

// raceLost notes that another replica was first with the lease before a tick, and returns how long
// this one waits until it looks, as all others do.
func (r *Runner) raceLost(tick time.Time) time.Duration {
	look, grab := r.drawLead(false, tick)
	r.view.lead = lead{tick: tick, d: look, grab: grab, outrun: tick}
	return r.readAgain(max(tick.Sub(r.now())-look, raceOver))
}

// raceOver is how long a replica waits that lost a race for a lease after others have looked.
const raceOver = 100 * time.Millisecond

// keeps returns the tick before which this replica need not release the lease that it
// holds: the next tick is so near that it would acquire the lease again at once. Once a
// lease's length has passed it releases the lease anyway, and lets others be first:
// a replica with another definition, or a manual run, may wait for it.
func (h *hold) keeps() (tick time.Time, ok bool) {
	p, c, s, v := &h.job.Policy, h.call, h.session, h.decideBy(h.call)
	next := p.NextTick(&h.view.rec)
	if _, todo := p.Claim(v); todo || next.IsZero() || next.Sub(v.Now) > p.Lead() || v.IsPaused() {
		return time.Time{}, false
	}
	// Between two runs there is no beat, so the lease of a holder that dies would have to expire.
	if p.Beat > 0 || c.bounded || !h.mayActAhead() || h.stop.Err() != nil || h.view.rec.Run.Status == store.Stalled || h.replica.Degraded() != nil || !s.Reusable() {
		return time.Time{}, false
	}
	if s.Age() > s.Length || h.replica.jobs.load.cedes(h.client.Jitter) {
		cede := p.Cede()
		if next.Sub(v.Now) < cede*3/2 { // the lease has to be free for a moment
			cede /= 8
		}
		h.view.lead = lead{tick: next, last: true, d: cede, grab: cede}
		return time.Time{}, false
	}
	s.Reopen()
	return next, true
}
