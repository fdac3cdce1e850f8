package plan

import (
	"time"

	"github.com/soloist-go/soloist/internal/instant"
	"github.com/soloist-go/soloist/store"
)

const (
	nearEvery = 100 * time.Millisecond // at a run that is about to be handed over
	minIdle   = 10 * time.Millisecond  // whatever the clocks say
)

// Next says what to do about an entry as it was last seen.
func (p *Policy) Next(v View, o *Observation, c Clock) Action {
	if p.Outdated(v) {
		return p.yield(v, o)
	}
	_, todo := p.Claim(v)
	switch live := v.State.Live(); {
	case v.Record.MayRun() && live:
		return p.follow(v, o, c)
	case !todo:
		return p.idle(v, o)
	case o.Fresh && live:
		return p.queue(v, o)
	}
	return Action{What: Acquire, Lease: p.LeaseAfter(v.Record)}
}

// LeaseAfter is the length of a lease to be acquired. The last runner may still trust its
// lease. Ours must not end before that one would: then a lease that is seen
// expired ends all trust.
func (p *Policy) LeaseAfter(r *store.Record) time.Duration {
	if r.MayRun() {
		return max(p.Lease, time.Duration(r.Lease))
	}
	return p.Lease
}

// yield leaves the job to replicas of a younger definition, and asks whether any
// is up.
func (p *Policy) yield(v View, o *Observation) Action {
	if since, ok := p.inherits(v, o); ok {
		return Action{What: Inherit, Since: since}
	}
	asked := o.AskedAt
	if v.Record.Mark.Spec == p.Spec {
		asked = o.At
	}
	if v.State.Live() || o.At.Sub(asked) < markAgain || !p.mayMark(v) {
		return Action{What: Yield, After: maxSleep, Read: true}
	}
	return Action{What: Mark, After: maxSleep, Read: true}
}

// idle waits for the next tick. A replica with an older definition may leave a
// mark meanwhile, so the record is read once a minute.
func (p *Policy) idle(v View, o *Observation) Action {
	if o.Fresh && v.Record.Mark.Spec != "" && !v.State.Live() {
		return Action{What: Answer}
	}
	stale := LookEvery - o.At.Sub(o.LookedAt)
	if stale <= 0 {
		return Action{Read: true}
	}
	next := p.NextTick(v.Record)
	if next.IsZero() {
		return Action{After: min(stale, maxSleep)}
	}
	return Action{After: min(stale, max(next.Sub(v.Now), minIdle))}
}

// queue waits beside a lease under which no run is recorded. Its holder is about
// to claim, or died before it could, or is no replica at all.
func (p *Policy) queue(v View, o *Observation) Action {
	if p.Occupied(v.Record, o) {
		return Action{What: Blocked, After: maxSleep, Read: true}
	}
	half := p.Lease / 6 / 2
	return Action{What: Queue, After: half, Jitter: half, Read: true}
}

// follow waits beside a run of another replica: for the moment when its lease
// could lapse if somebody waits for that, else a minute.
func (p *Policy) follow(v View, o *Observation, c Clock) Action {
	a := Action{What: Follow, Read: true}
	switch urgent := p.urgent(v.Record, v.Now); {
	case urgent && v.Record.Stopping:
		// After half a minute ever more rarely: some take long to stop.
		a.After, a.Jitter = p.untilLapse(v.Record, c)
		a.Most = max(nearEvery, o.At.Sub(o.HandoverAt)/300)
	case urgent:
		a.After, a.Jitter = p.untilLapse(v.Record, c)
	default:
		a.After = LookEvery
		if next := p.Ticks.Next(instant.Later(v.Now, v.Record.Tick)); !next.IsZero() {
			a.After = min(a.After, next.Sub(v.Now))
		}
	}
	return a
}

// urgent reports whether the end of the run that r tells of is waited for: by
// another attempt, a singleton, a tick that is due, or a younger definition that
// is to be in force.
func (p *Policy) urgent(r *store.Record, now time.Time) bool {
	if p.Ticks == nil || p.Interrupted == Rerun || r.Spec != p.Spec {
		return true
	}
	return p.Ticks.Last(now).After(instant.Later(r.Watermark, claimed(r)))
}

// untilLapse aims just behind the next instant at which the lease of another
// replica's run could lapse: renewals come at thirds of it after the claim, and
// so do lapses. The earliest reading of the service's clock has to be behind it
// too by then, though it lags a little more all the time: else there would be a
// second look.
func (p *Policy) untilLapse(r *store.Record, c Clock) (after, jitter time.Duration) {
	third := time.Duration(r.Lease) / 3
	if c.Low.IsZero() || third <= 0 {
		return p.Lease / 3, 0
	}
	wait := third - c.Low.Sub(r.Claimed)%third
	wait += wait / time.Duration(c.Drift-1)
	return min(wait, 2*third) + 50*time.Millisecond, 200 * time.Millisecond
}

// Waits returns about when the run that r tells of, whose job was unlocked, can
// be followed by another; zero if it was not. Replicas that are up look at the
// entry once more, and wait for one lease from then on.
func (p *Policy) Waits(r *store.Record, now time.Time) time.Time {
	if r.Unlocked.At.IsZero() || !r.MayRun() {
		return time.Time{}
	}
	look, lease := LookEvery, max(p.Lease, time.Duration(r.Lease))
	if p.urgent(r, now) {
		look = time.Duration(r.Lease)/3 + time.Second
	}
	return r.Unlocked.At.Add(look + lease)
}
