package plan

import (
	"time"

	"github.com/soloist-go/soloist/internal/instant"
)

// wantedAgain is after how long a replica is wanted that cannot do anything yet: it looks again.
const wantedAgain = 30 * time.Second

// Wanted returns when a replica is wanted next, if none is up until then and nothing else happens. Now or before: there is
// something to do. Zero: never. A singleton wakes no replica.
func (p *Policy) Wanted(v View) time.Time {
	if p.Ticks == nil {
		return time.Time{}
	}
	r, live := v.Record, v.State.Live()
	switch {
	case r.MayRun() && live: // a replica has to be there if its holder dies
		return p.afterLease(v)
	case p.Outdated(v):
		return p.wantedByOthers(v)
	case armed(v):
		return r.Run.Tick
	}
	at := p.wantedForTick(v)
	if late := p.wantedForLate(v); at.IsZero() || late.Before(at) && !late.IsZero() {
		at = late
	}
	if live && !at.IsZero() && !at.After(v.Now) { // its holder is about to claim, or died before it could
		return p.afterLease(v)
	}
	return at
}

// afterLease returns when a replica is wanted that waits for the end of a lease: by the next tick, if that comes first. The
// holder may have died a while ago, so its lease may be over by then.
func (p *Policy) afterLease(v View) time.Time {
	from, at := v.Now, v.Now.Add(p.outlasts(v))
	if p.PausedAt(v) { // the first tick after the pause
		from = v.Control.Pause.Until.Add(-1)
	}
	next := p.Ticks.Next(from)
	if next.IsZero() || p.Paused || p.Follows() || p.PausedAt(v) && (selfPaused(v.Record, v.Control) || v.Control.Pause.Until.IsZero()) {
		return at
	}
	return instant.Earlier(at, next)
}

// outlasts returns for how long the lease of a holder that dies now goes on, before another replica can take over.
func (p *Policy) outlasts(v View) time.Duration {
	if beat := v.Record.Beats(); beat > 0 && v.Break.Able {
		return silentAfter(beat)
	}
	return max(p.Lease, time.Duration(v.Record.Run.Lease))
}

// wantedByOthers is Wanted if another definition is in force, whose replicas may all be gone. The record says when its next
// tick is due; this definition takes the job over at one of its own ticks, or for a run that was ordered. See definition.go. The
// longer a tick is due that it may not run, or such a run waits, the less often it looks for the others.
func (p *Policy) wantedByOthers(v View) time.Time {
	q := waiting(v)
	if q == nil && p.PausedAt(v) {
		if selfPaused(v.Record, v.Control) {
			return time.Time{} // its resume is an order, which wakes the app up
		}
		return v.Control.Pause.Until
	}
	at, waits := p.Ticks.Next(v.Now), []time.Time{Due(v.Record)}
	if q != nil {
		waits = append(waits, q.At)
	}
	for _, due := range waits {
		look := instant.Later(due, v.Now.Add(v.Now.Sub(due)/2))
		if !due.IsZero() && (at.IsZero() || look.Before(at)) {
			at = look
		}
	}
	if at.IsZero() {
		return at
	}
	return instant.Later(at, v.Now.Add(wantedAgain))
}

// wantedForTick returns when there is something to run or to settle, whoever has the lease now.
func (p *Policy) wantedForTick(v View) time.Time {
	r := v.Record
	if _, todo := p.Claim(v); todo && !p.onlySkips(v) {
		return v.Now
	}
	next := p.Ticks.Next(instant.Later(r.Watermark, claimed(r)))
	switch {
	case p.Paused && !v.Awaited:
		return time.Time{}
	case p.PausedAt(v):
		return p.wantedAfterPause(v)
	case p.Follows() && next.After(DecidedBy(v.Before)): // the jobs before it wake the app up
		return time.Time{}
	}
	return next
}

// onlySkips reports whether the job is paused by its settings, and all there is to write is that its ticks were skipped. The
// next manual run, or the next program, writes that too.
func (p *Policy) onlySkips(v View) bool {
	return p.Paused && !v.Awaited && !v.Record.MayRun() && !open(v.Record) && !p.Ordered(v)
}

// wantedAfterPause is wantedForTick of a job that an order has paused, or that has paused itself. The end of the pause is
// when the first claim can write: it skips the ticks of the pause, for which followers may wait.
func (p *Policy) wantedAfterPause(v View) time.Time {
	if selfPaused(v.Record, v.Control) || v.Control.Pause.Until.IsZero() {
		return time.Time{} // its resume is an order, which wakes the app up
	}
	v.Now = v.Control.Pause.Until
	return p.wantedForTick(v)
}

// wantedForLate returns when a tick becomes late that has not succeeded, which a replica has to report, whoever has the lease
// now; zero: none does.
func (p *Policy) wantedForLate(v View) time.Time {
	wait := p.UntilTell(v.Record, v.Now, v.Control)
	if wait == never {
		return time.Time{}
	}
	return v.Now.Add(wait)
}
