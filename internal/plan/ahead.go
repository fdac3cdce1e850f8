package plan

import (
	"time"

	"github.com/soloist-go/soloist/internal/instant"
)

// Before a tick is due the replicas find out which of them runs it, so that at the tick only the claim is left:
//
//   - The replica that ran the last tick acquires the lease about one Lead before the tick.
//   - Each other replica reads the entry once, between LookFirst and LookLast before the tick. If it finds the lease held, it
//     expects that replica to run the tick. If it finds it free, it acquires the lease itself.
//   - At the tick the holder claims. A replica that expects another one to do so does nothing. It looks again before the next
//     tick or, if that is far away, soon after this one: the holder may have died before it could claim.
//
// Under ClaimAhead the claim is written before the tick too. The record is then armed: at
// the tick the run starts without a call, unless the claim was taken back.

// longestLead limits Lead: a lease that is held before a tick keeps others from the job.
const longestLead = 2 * time.Second

// Lead returns how long before a tick its lease is acquired. It is a small part of the
// lease, which must not lapse before the tick.
func (p *Policy) Lead() time.Duration { return min(longestLead, p.Lease/4) }

// LookFirst returns how long before a tick the first followers look. From then on a holder
// that stops keeps the tick: the followers that have looked do not look again.
func (p *Policy) LookFirst() time.Duration { return p.Lead() * 3 / 5 }

// LookLast returns how long before a tick the last followers look.
func (p *Policy) LookLast() time.Duration { return p.Lead() / 4 }

// Cede returns how long before a tick a replica acquires that would rather leave the tick
// to another one: after those that would have it have looked.
func (p *Policy) Cede() time.Duration { return p.Lead() / 5 }

// Upcoming returns the tick before which this replica acts next: the first tick that is not
// settled, claimed or expected. Zero: there is none.
func (p *Policy) Upcoming(v View, o *Observation) time.Time {
	if p.Ticks == nil {
		return time.Time{}
	}
	after := instant.Later(begunThrough(v.Record), o.Expected)
	if v.Record.MayRun() { // ticks that have come due under the run are not run
		after = instant.Later(after, v.Now)
	}
	return p.Ticks.Next(after)
}

// ahead returns what to do before the next tick, if anything is left to find out about it.
func (s *step) ahead(next time.Time) (a Action, ok bool) {
	if s.Ahead.Lead == 0 || s.Record.MayRun() || next.IsZero() {
		return Action{}, false
	}
	// The answer to the look may show that the clock of this replica is fast. That look counts
	// anyway: another one would follow as soon as the service's date leaves room for it.
	switch wait := next.Sub(s.Now) - s.Ahead.Lead; {
	case wait > 0 && !(s.o.Fresh && wait <= s.Lead()/2):
		return Action{After: max(wait, minIdle)}, true
	case s.o.Fresh && s.State.Live():
		// The ticks of a job may be so near to each other that this was the look before the one after next.
		if second := s.Upcoming(s.View, s.o); second.Sub(s.Now) <= s.Ahead.Lead {
			next = instant.Later(next, second)
		}
		return Action{What: Expect, Tick: next}, true
	case !s.o.Fresh && !s.Ahead.Last && !s.hasLooked(next):
		return Action{Read: true}, true
	}
	if wait := next.Sub(s.Now) - s.Ahead.Grab; wait > 0 {
		return Action{After: wait}, true
	}
	return Action{What: Acquire, Tick: next, Lease: s.LeaseAfter(s.Record, s.State)}, true
}

// hasLooked reports whether the entry was read when it was time to look before the tick, or shortly before that.
func (s *step) hasLooked(tick time.Time) bool {
	return tick.Sub(s.Now)+s.o.At.Sub(s.o.LookedAt) <= s.Ahead.Lead+s.Lead()/2
}

// expect waits while another replica is expected to run what is due next. It reads the
// entry before the tick after that one. If that is further away than a lease, it looks once
// more when the claim should be there: the holder may have died before it, or stopped.
func (s *step) expect() (a Action, ok bool) {
	tick, r := s.o.Expected, s.Record
	if s.Ahead.Lead == 0 || s.o.Fresh || tick.IsZero() || s.Ticks.Last(s.Now).After(tick) || s.Unclaimed(r).After(tick) {
		return Action{}, false // or something else is due, or due next
	}
	if r.Definition.Spec != s.Spec || unsettled(r) || s.IsPaused() || Ordered(s.Policy, s.View) {
		return Action{}, false
	}
	return Action{After: max(0, s.lookAgain(tick)), Read: true}, true
}

// lookAgain returns how long it is until the look that follows the one before tick.
func (s *step) lookAgain(tick time.Time) time.Duration {
	if next := s.Upcoming(s.View, s.o); next.IsZero() || next.Sub(tick) > s.Lease {
		return tick.Sub(s.Now) + s.Lease/6 + s.Ahead.Lead/2
	}
	return s.untilLook()
}

// untilLook returns how long it is until this replica looks before the upcoming tick; zero or less: it does not, or has.
func (s *step) untilLook() time.Duration {
	next := s.Upcoming(s.View, s.o)
	if s.Ahead.Lead == 0 || next.IsZero() {
		return 0
	}
	return next.Sub(s.Now) - s.Ahead.Lead
}

// ClaimEarly returns the claim of a tick that is not due yet, to be written before it. It
// returns false if something else would be settled with it: that has to wait for the tick.
func (p *Policy) ClaimEarly(v View, tick time.Time) (next Claim, ok bool) {
	if !p.ClaimAhead {
		return Claim{}, false
	}
	if _, todo := p.Claim(v); todo {
		return Claim{}, false
	}
	v.Now = instant.Later(v.Now, tick)
	next, ok = p.Claim(v)
	r := &next.Record
	if !ok || !next.Run || !r.Run.Tick.Equal(tick) || r.Run.Request != "" || len(r.History) != len(v.Record.History) {
		return Claim{}, false
	}
	r.Run.Armed = true
	return next, true
}
