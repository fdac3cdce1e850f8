package soloist

import (
	"slices"
	"strings"
	"time"
)

const (
	maxBacklog = 100     // ticks that RunAll makes up for
	maxDeaths  = 5       // runners that one tick may cost under Rerun
	maxCount   = 100_000 // ticks counted in one range: of more, the fate says that there are at least as many
)

// A plan says what the holder of a lease has to write, and whether it runs the
// tick that it claims by that.
type plan struct {
	record Record
	run    bool
}

// ticks is what a plan needs of a schedule; see internal/schedule.
type ticks interface {
	Next(after time.Time) time.Time
	Last(at time.Time) time.Time
	Count(after, to time.Time, limit int) int
}

// A planner decides what becomes of ticks. It is pure: no clock, no store.
type planner struct {
	ticks       ticks // nil: a singleton, which has a claim and no ticks
	window      time.Duration
	lease       time.Duration
	missed      MissedPolicy
	interrupted InterruptedPolicy
	paused      bool
	spec        string
	since       time.Time // when this replica started, by the service's clock
	broken      bool      // the lease of the last run was ended by an operator, as far as the service tells
	request     string    // of a run by hand, which is all that there is to do; empty: the ticks are
	settleOnly  bool      // this call of RunDue has no time for a run: it settles ticks and starts none
}

// outdated reports whether the definition in force is another one, of a replica
// that started later.
func (p *planner) outdated(r *Record) bool { return younger(r.Spec, r.Since, p.spec, p.since) }

// plan returns what is to be done at now if the lease of r's entry is free. It
// returns false when there is nothing to do.
func (p *planner) plan(r *Record, now time.Time) (next plan, todo bool) {
	if p.outdated(r) {
		return plan{}, false
	}
	next = plan{record: r.clone()}
	next.record.Unlocked = Unlocked{}
	next.record.Mark = Mark{} // whoever writes now has the definition in force
	if r.Status == Stalled && r.mayRun() {
		// The writer has seen the lease expire, or has held off: the run is over.
		// Still open, it would have each later process hold off again.
		next.record.Finished = now.UTC()
	}
	defer func() { next.record.Due = p.dueOf(&next.record) }()
	if p.request != "" {
		todo = p.claimByHand(&next, r, now)
		return next, todo
	}
	changed := p.settleDead(&next, r, now)
	if next.run {
		next.run = !p.settleOnly
		return next, next.run
	}
	if p.ticks == nil {
		p.claim(&next, time.Time{}, 1)
		return next, true
	}
	changed = p.adopt(&next.record, now) || changed
	changed = p.claimDue(&next, now) || changed
	return next, changed
}

// settleDead gives the tick of a runner that died its fate, or its next attempt.
func (p *planner) settleDead(next *plan, r *Record, now time.Time) bool {
	open := r.open()
	if r.Status != Running && !open {
		return false
	}
	next.record.Deaths = r.deaths()
	again := p.mayRepeat(r)
	late := p.window > 0 && now.Sub(r.Tick) > p.window
	if again && !late {
		p.claim(next, r.Tick, r.Attempt+1)
		return true
	}
	status, reason, why := Abandoned, r.endReason(p.broken), ", and the starting deadline has passed"
	if open {
		status, reason, why = r.Status, "not run again", ": the starting deadline has passed"
	}
	if again {
		reason += why
	}
	next.record.Status = status
	next.record.settle(lastFate(r, status, reason))
	return true
}

// mayRepeat reports whether the run that r tells of may have another attempt, now
// that its runner is gone. A tick at or before the watermark has its fate, whatever
// another program has written since. An attempt beyond maxAttempt would make the
// record unreadable.
func (p *planner) mayRepeat(r *Record) bool {
	ours := r.Spec == p.spec && p.ticks != nil && r.Request == "" && !p.paused
	owed := r.Tick.After(r.Through) && r.Attempt < maxAttempt
	return ours && owed && p.interrupted == Rerun && r.deaths() < maxDeaths
}

// lastFate is the fate of the run that r tells of.
func lastFate(r *Record, status Status, reason string) Fate {
	return Fate{Tick: r.Tick, Request: r.Request, Status: status, Reason: reason, Attempt: r.Attempt,
		Token: r.Epoch, Replica: r.Holder, Start: r.Claimed, End: r.Finished}
}

// adopt makes a changed definition count: ticks of the old one that were due
// before are over, and none of the new one is made up for.
func (p *planner) adopt(r *Record, now time.Time) bool {
	if r.Spec == p.spec {
		r.Since = later(r.Since, p.since)
		return false
	}
	r.Spec, r.Since = p.spec, p.since
	if from := p.countsFrom(r, now); from.After(r.Through) {
		r.settle(Fate{From: r.Through, Tick: from.UTC(), Status: Missed, Reason: "the schedule changed"})
	}
	return true
}

// countsFrom is the instant after which the ticks of a changed definition count:
// now, unless the tick that is due under the old one is also the newest of the new
// one. It came due while the change was deployed, and is owed. If the new one has a
// newer tick, the change took longer, and RunAll would make up ticks of the new one
// from before the change.
func (p *planner) countsFrom(r *Record, now time.Time) time.Time {
	if r.Due.After(r.Through) && p.ticks.Last(now).Equal(r.Due) {
		return r.Due.Add(-1)
	}
	return now
}

// claimDue claims the tick that is to run now and settles those before it.
func (p *planner) claimDue(next *plan, now time.Time) bool {
	r := &next.record
	newest := p.ticks.Last(now)
	if !newest.After(r.Through) {
		return false
	}
	if p.paused {
		p.pass(r, newest, Skipped, paused)
		return true
	}
	tick, reason := p.choose(r.Through, newest, now)
	if tick.IsZero() {
		p.pass(r, newest, Missed, reason)
		return true
	}
	before := p.ticks.Last(tick.Add(-1))
	passed := before.After(r.Through)
	if passed {
		p.pass(r, before, Missed, reason)
	}
	if p.settleOnly {
		return passed
	}
	p.claim(next, tick, 1)
	return true
}

// choose returns the tick to run of those after through up to newest, none
// when it is zero, and why the ones before it are missed.
func (p *planner) choose(through, newest, now time.Time) (tick time.Time, reason string) {
	window := p.window
	if window == 0 && p.missed == SkipMissed {
		window = p.lease
	}
	if window > 0 && now.Sub(newest) > window {
		return time.Time{}, "outside the window"
	}
	if p.missed != RunAll {
		return newest, "a newer one was due"
	}
	if window > 0 {
		through = later(through, now.Add(-window-1))
	}
	tick = newest
	for n := 1; ; n++ {
		before := p.ticks.Last(tick.Add(-1))
		if !before.After(through) {
			return tick, "outside the window"
		}
		if n == maxBacklog {
			return tick, "too many were due"
		}
		tick = before
	}
}

// pass settles the ticks up to last, which nobody runs.
func (p *planner) pass(r *Record, last time.Time, status Status, reason string) {
	f := Fate{Tick: last, Status: status, Reason: reason}
	if n := p.ticks.Count(r.Through, last, maxCount+1); n > 1 {
		f.From, f.Count, f.AtLeast = r.Through, min(n, maxCount), n > maxCount
	}
	r.settle(f)
}

func (p *planner) claim(next *plan, tick time.Time, attempt int) {
	r := &next.record
	r.Epoch++
	r.Tick, r.Request, r.Attempt = tick, "", attempt
	if attempt == 1 {
		r.Deaths = 0
	}
	r.Status, r.Error = Running, ""
	r.Finished, r.Stopping, r.Progress = time.Time{}, false, Progress{}
	r.Spec, r.Since = p.spec, later(r.Since, p.since)
	next.run = true
}

// claimByHand claims a run beside the ticks. It returns false where a tick is to
// be run again first. Where another definition is in force, that one stays so, and
// it alone decides about its ticks.
func (p *planner) claimByHand(next *plan, r *Record, now time.Time) bool {
	if p.undecided(r) {
		return false
	}
	if p.settleDead(next, r, now); next.run {
		next.run = false
		return false
	}
	p.claim(next, now.UTC().Truncate(time.Millisecond), 1)
	next.record.Request = p.request
	if r.Spec != p.spec {
		next.record.Spec, next.record.Since, next.record.Mark = r.Spec, r.Since, r.Mark
	}
	return true
}

// undecided reports whether the tick that r tells of may be run again, by the
// definition in force, and that is another one.
func (p *planner) undecided(r *Record) bool {
	return r.Spec != p.spec && r.Request == "" && (r.Status == Running || r.open())
}

// finish writes the outcome of the run that r tells of, which ended at end. lo
// is the earliest that the service's clock can show now: ticks up to it came
// due under the run.
func (p *planner) finish(r *Record, status Status, reason string, end, lo time.Time) Record {
	f := r.clone()
	f.Finished, f.Stopping = end, false
	if f.Status == Stalled {
		f.endStalled(end)
	} else {
		p.conclude(&f, status, reason)
	}
	p.skipUnder(&f, lo)
	return f
}

// endStalled writes down when a stalled run has returned. Its fate was written
// when it stalled, and ticks may have been skipped since.
func (r *Record) endStalled(end time.Time) {
	i := slices.IndexFunc(r.History, func(f Fate) bool { return f.Token == r.Epoch })
	if i < 0 {
		return // its tick is still open
	}
	r.History = slices.Clone(r.History)
	r.History[i].End = end
}

// stall writes that the run has stalled. It is not known to have ended: its
// end follows when it returns.
func (p *planner) stall(r *Record, reason string, lo time.Time) Record {
	f := r.clone()
	f.Stopping = true
	p.conclude(&f, Stalled, reason)
	p.skipUnder(&f, lo)
	return f
}

// paused is the reason of ticks that are skipped for a pause.
const paused = "paused"

// stopped is the reason, or its beginning, of a run that a stop has ended. Such
// an end is no death: each of many deploys may stop a long run.
const stopped = "stopped"

// conclude gives the tick that r tells of its fate, unless it stays open.
func (p *planner) conclude(r *Record, status Status, reason string) {
	if status == Stalled || status == Abandoned && !strings.HasPrefix(reason, stopped) {
		r.Deaths = r.deaths()
	}
	r.Status = status
	if status == Failed || status == Stalled {
		r.Error = reason
	}
	if !p.offeredAgain(r) {
		r.settle(lastFate(r, status, reason))
	}
	r.Due = p.dueOf(r)
}

// skipUnder skips the ticks up to lo: they came due under a run.
func (p *planner) skipUnder(r *Record, lo time.Time) {
	if p.ticks == nil || p.missed == RunAll || p.offeredAgain(r) || r.Spec != p.spec {
		return
	}
	if r.Request != "" && p.ticks.Last(r.Tick).After(r.Through) {
		return // a tick was due before this run by hand, and still is
	}
	last := p.ticks.Last(lo)
	if r.Attempt > 1 && !p.missBefore(r, last) {
		return
	}
	if last.After(r.Through) {
		p.pass(r, last, Skipped, "overlap")
	}
	r.Due = p.after(r)
}

// missBefore settles the ticks that came due before the claim of a further
// attempt: they did not come due under it. If last, the newest tick, did not
// either, they stay due, and it returns false. Else the newest is skipped, so
// the watermark passes all of them.
func (p *planner) missBefore(r *Record, last time.Time) bool {
	if !last.After(r.Claimed) {
		return false
	}
	if before := p.ticks.Last(r.Claimed); before.After(r.Through) {
		p.pass(r, before, Missed, "a newer one was due")
	}
	return true
}

// offeredAgain reports whether the tick stays open: its run was ended before
// its time, and another replica may have it.
func (p *planner) offeredAgain(r *Record) bool {
	early := r.Status == Abandoned || r.Status == Stalled
	return early && p.interrupted == Rerun && r.Request == "" && r.deaths() < maxDeaths && p.ticks != nil
}

// next returns the next tick after what is settled or runs, zero when there is
// none.
func (p *planner) next(r *Record) time.Time {
	if p.ticks != nil && r.open() {
		return r.Tick
	}
	return p.after(r)
}

// after is the next tick that is neither settled nor claimed, zero when there is
// none. Where a run is to be repeated, that is not the next one to run.
func (p *planner) after(r *Record) time.Time {
	if p.ticks == nil {
		return time.Time{}
	}
	return p.ticks.Next(later(r.Through, r.claimed()))
}

// dueOf is what Due has to say of r: the next tick by the definition in force.
func (p *planner) dueOf(r *Record) time.Time {
	if r.Spec != p.spec {
		return r.Due
	}
	return p.after(r)
}

// urgent reports whether the end of the run that r tells of is waited for: by
// another attempt, a singleton, a tick that is due, or a younger definition that
// is to be in force.
func (p *planner) urgent(r *Record, now time.Time) bool {
	if p.ticks == nil || p.interrupted == Rerun || r.Spec != p.spec {
		return true
	}
	return p.ticks.Last(now).After(later(r.Through, r.claimed()))
}
