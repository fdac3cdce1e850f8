package plan

import (
	"time"

	"github.com/soloist-go/soloist/internal/instant"
	"github.com/soloist-go/soloist/store"
)

// A Claim is the record that the holder of a lease has to write, in one write.
type Claim struct {
	Record store.Record
	Run    bool // the record claims a tick, which the holder has to run once the write is confirmed

	Backfilled []store.Outcome // of a backfill: those that the record counts, which its history does not have
}

// Claimed returns the run that is claimed, as its outcome will name it; zero: none is.
func (c *Claim) Claimed() (run store.Outcome) {
	if c.Run {
		run = LastOutcome(&c.Record, "", "")
	}
	return run
}

// writing returns the write of a claim, after what was settled so far.
func (c *Claim) writing(v View) *write { return &write{&c.Record, len(v.Record.History)} }

// Claim returns what is to be written if the lease of the entry is free, or held by this
// replica. It returns false if there is nothing to write. The order is chronological: first
// what becomes of the run before, then ticks that were missed, then the tick to run. One
// write holds all of it, so that no reader sees a part.
//
// Next calls it too, only to learn whether something is due. It changes nothing that it is
// given.
func (p *Policy) Claim(v View) (next Claim, todo bool) {
	if p.Outdated(v) {
		return Claim{}, false
	}
	if early(v) {
		return Claim{}, false
	}
	r := v.Record
	next = Claim{Record: r.Clone()}
	settled := settleCancelledOrder(&next.Record, v)
	noteServed(&next.Record, v.Control.Requests)
	next.Record.Run.Unlocked = store.Unlocked{}
	next.Record.Run.Claimed, next.Record.Run.Armed = begun(r), false // the run that was armed is over
	next.Record.Definition.Mark = store.Mark{}                       // a replica that writes has the definition in force, which answers the mark
	// The run has stalled and was not known to have returned. By now its lease was seen
	// expired, or this replica has held off, so it is over. Left open, it would make each
	// later process hold off again.
	if r.Run.Status == store.Stalled && r.MayRun() {
		next.Record.Run.Finished = v.Now.UTC()
	}
	defer func() { next.Record.Due = p.due(&next.Record) }()
	if v.Request != "" && settled {
		return next, true // it may be what the call is for
	}
	settled = !unsettled(r) && !leftBeside(r) && p.settleLeftBackfilled(&next, v) || settled
	if v.Request != "" {
		todo = p.claimRequest(&next, v)
		return next, todo
	}
	changed := p.settleDead(&next, v) || settled
	if next.Run {
		next.Run = v.Claims != NoRun
		return next, next.Run
	}
	if p.Ticks == nil {
		return next, p.claimTerm(&next, v) || changed
	}
	changed = p.adopt(&next.Record, v) || changed
	changed = resume(&next.Record, v.Control) || changed
	if passedOver(v) {
		changed = p.claimOrdered(&next, v) || changed
	}
	if !next.Run && !v.Control.Pause.On(v.Now) && !selfPaused(&next.Record, v.Control) {
		changed = p.claimDue(&next, v) || changed
	}
	changed = p.claimOrdered(&next, v) || changed
	return next, p.claimBackfill(&next, v) || changed
}

// claimTerm claims the next run of a singleton.
func (p *Policy) claimTerm(next *Claim, v View) bool {
	if p.PausedAt(v) {
		return false
	}
	p.claim(next, v, time.Time{}, 1)
	return true
}

// settleDead decides about the last run if its runner is gone: the run gets another attempt,
// or its outcome. It returns whether it changed anything. A further attempt has the starting
// deadline of its tick.
func (p *Policy) settleDead(next *Claim, v View) bool {
	r := v.Record
	if r.Run.Status != store.Running && !open(r) && !leftBeside(r) {
		return false
	}
	if isBackfill(r) {
		return p.settleDeadBackfilled(next, v)
	}
	next.Record.Run.Deaths = deaths(r)
	if end := v.end(); end.Cancel { // its runner may not have known
		next.Record.Run.Status = store.Cancelled
		settle(&next.Record, LastOutcome(r, store.Cancelled, CancelledBy(end)))
		return true
	}
	again := p.mayRepeat(r)
	if again && p.PausedAt(v) { // the tick waits for the end of the pause, with all that is known of its last attempt
		next.Record.Run.Deaths, next.Record.Run.Unlocked = r.Run.Deaths, r.Run.Unlocked
		return false
	}
	why := ""
	if again {
		if why = p.notRepeated(v); why == "" {
			p.claim(next, v, r.Run.Tick, r.Run.Attempt+1)
			return true
		}
	}
	p.abandon(next, v, why)
	return true
}

// abandon settles the tick of a run that was interrupted: it gets no further attempt. why says the reason, if there is one
// but the policy.
func (p *Policy) abandon(next *Claim, v View, why string) {
	r := v.Record
	status, reason, joint := store.Abandoned, endReason(v), ", and "
	if open(r) {
		status, reason, joint = r.Run.Status, "not run again", ": "
	}
	if why != "" {
		reason += joint + why
	}
	next.Record.Run.Status, next.Record.Run.Deaths, next.Record.Run.Unlocked = status, deaths(r), store.Unlocked{}
	p.settleRun(&next.Record, LastOutcome(r, status, reason))
	p.pauseSelf(&next.Record, v.Now)
}

// abandonInPause settles the tick that waits for the end of a pause, and reports whether there was one. A run that is ordered
// meanwhile takes its place: the record has room for one run.
func (p *Policy) abandonInPause(next *Claim, v View) bool {
	if isBackfill(v.Record) || !p.PausedAt(v) || !p.mayRepeat(v.Record) {
		return false
	}
	p.abandon(next, v, "a run was ordered in the pause")
	return true
}

// notRepeated returns why the tick of a run that was interrupted gets no further attempt, though the
// job has Rerun; empty: it gets one.
func (p *Policy) notRepeated(v View) string {
	switch {
	case p.outlived(v):
		return "a newer tick was due"
	case p.lateStart(v):
		return "the starting deadline has passed"
	}
	return ""
}

// mayRepeat reports whether the run in r may have another attempt, now that its runner is
// gone. A tick up to the watermark has its outcome, and is not repeated whatever another
// program has written since. An attempt beyond MaxAttempt would make the record unreadable.
func (p *Policy) mayRepeat(r *store.Record) bool {
	ours := r.Definition.Spec == p.Spec && p.Ticks != nil && r.Run.Request == "" && !p.Paused
	owed := r.Run.Tick.After(r.Watermark) && r.Run.Attempt < store.MaxAttempt
	return ours && owed && p.Interrupted == Rerun && deaths(r) < maxDeaths
}

// adopt puts a changed definition into force. Ticks of the old definition that were due before are
// settled as missed, and none of the new definition is made up for. Of the old ticks only the first is known. If it came
// due in a pause, the ticks up to the end of that pause are skipped for it.
func (p *Policy) adopt(r *store.Record, v View) bool {
	if r.Definition.Spec == p.Spec {
		r.Definition.Since = instant.Later(r.Definition.Since, v.Since)
		return false
	}
	r.Definition.Spec, r.Definition.Since = p.Spec, v.Since
	from, pauses := p.countsFrom(r, v), p.pausesUntil(r, v.Control, v.Now)
	drop(r, instant.Earlier(pausedThrough(r.Due, pauses), from), store.Skipped, Paused)
	drop(r, from, store.Missed, ScheduleChanged)
	return true
}

// drop settles the ticks of another definition up to an instant. How many they are is not known.
func drop(r *store.Record, to time.Time, status store.Status, reason string) {
	if to.After(r.Watermark) {
		settle(r, store.Outcome{From: r.Watermark, Tick: to.UTC(), Status: status, Reason: reason})
	}
}

// countsFrom returns the instant after which the ticks of a changed definition count. That is
// now, or when a new predecessor begins, with one exception: the first tick that is due under the old definition, the only one
// that is known, is also the newest tick of the new one. It came due while the change was deployed, and must not be lost. There
// is no exception if the new definition has a tick after the due one: counted from the due
// tick, RunAll would also run ticks of the new definition from before it came into force.
func (p *Policy) countsFrom(r *store.Record, v View) time.Time {
	if r.Due.After(r.Watermark) && p.Ticks.Last(v.Now).Equal(r.Due) {
		return r.Due.Add(-1)
	}
	return notBefore(v.Now, v.Before)
}

// claimDue claims the tick that is to run now, and settles those before it.
func (p *Policy) claimDue(next *Claim, v View) bool {
	if p.Follows() {
		return p.claimAfter(next, v)
	}
	r := &next.Record
	newest := p.Ticks.Last(v.Now)
	if !newest.After(r.Watermark) {
		return false
	}
	w, pauses := next.writing(v), p.pausesUntil(r, v.Control, v.Now)
	tick, reason := p.choose(r.Watermark, newest, v.Now, pauses)
	left := fate{status: store.Missed, reason: reason, waited: v.Waited}
	if tick.IsZero() {
		p.passAll(w, newest, left, pauses)
		return true
	}
	before := p.Ticks.Last(tick.Add(-1))
	passed := before.After(r.Watermark)
	if passed && !p.passAll(w, before, left, pauses) {
		return true
	}
	return p.claimChosen(next, v, tick, passed)
}

// claimChosen claims the tick that was chosen, after those before it were settled. passed says
// whether there were any. A zero tick: none is to run.
func (p *Policy) claimChosen(next *Claim, v View, tick time.Time, passed bool) bool {
	if tick.IsZero() {
		return passed
	}
	r := &next.Record
	if returned := r.Orders.Returned; !returned.Tick.IsZero() && returned.Tick.Equal(tick) && cancelled(v) {
		settleReturned(r, store.Outcome{Tick: tick, Attempt: 1}, v.end())
		return true
	}
	if v.Claims == NoRun {
		return passed
	}
	p.claim(next, v, tick, 1)
	return true
}

// claim makes the record say that this replica runs the tick. The token grows with each
// claim and never otherwise. The caller of Policy.Claim adds who claims, and when.
func (p *Policy) claim(next *Claim, v View, tick time.Time, attempt int) {
	r := &next.Record
	r.Token++
	r.Beat = store.Beat{}
	if p.Beat > 0 {
		r.Beat = store.Beat{Token: r.Token, Length: store.Seconds(p.Beat)}
	}
	r.Orders.Returned = store.Returned{}
	r.Run.Tick, r.Run.Request, r.Run.Order, r.Run.Attempt = tick, "", 0, attempt
	if attempt == 1 {
		r.Run.Deaths = 0
	}
	r.Run.Status, r.Run.Error = store.Running, ""
	r.Run.Finished, r.Run.Stopping, r.Run.Progress = time.Time{}, false, store.Progress{}
	r.Definition.Spec, r.Definition.Since = p.Spec, instant.Later(r.Definition.Since, v.Since)
	next.Run = true
}

// claimRequest claims a manual run, in addition to the ticks, once for each request. It returns false
// if a tick is to be run again first: the record has room for one run, and the claim would
// overwrite what it says about that tick. If another
// definition is in force, it stays so, and it alone decides about its ticks.
func (p *Policy) claimRequest(next *Claim, v View) bool {
	r := v.Record
	if p.Undecided(r) {
		return false
	}
	settled := p.settleDead(next, v)
	if next.Run {
		next.Run = false
		return false
	}
	if r.Run.Request == v.Request { // its runner died: there is only its outcome to write
		return r.Run.Status == store.Running
	}
	if v.Claims == NoRun {
		return settled
	}
	if unsettled(&next.Record) && !p.abandonInPause(next, v) {
		return false
	}
	resume(&next.Record, v.Control) // now: the next resume counts the run that is claimed here, and would move the end of the pause
	p.settleCancelled(next, v)
	p.claim(next, v, v.Now.UTC().Truncate(time.Millisecond), 1)
	next.Record.Run.Request = v.Request
	serveByHand(&next.Record, v)
	// A manual run puts no definition into force.
	if r.Definition.Spec != p.Spec {
		next.Record.Definition = r.Definition
	}
	return true
}

// Undecided reports whether the last run's tick may be run again under the definition in
// force, which is another one than this replica's. Then only a replica with that definition
// can settle it.
func (p *Policy) Undecided(r *store.Record) bool {
	return r.Definition.Spec != p.Spec && (r.Run.Request == "" || isBackfill(r)) && (unsettled(r) || leftBeside(r))
}

// early reports whether the record is armed for a tick that is not due yet. Until then
// nothing is settled and no attempt starts, whatever became of the holder.
func early(v View) bool {
	r := v.Record
	return r.Run.Armed && r.MayRun() && r.Run.Tick.After(v.Now)
}

// startingDeadline returns how late a first attempt may start; zero: as late as Missed says.
// Lease is the store's: a job may ask for a shorter one, which its beats keep.
func (p *Policy) startingDeadline() time.Duration {
	if p.StartingDeadline == 0 && p.Missed == SkipMissed {
		return p.Lease
	}
	return p.StartingDeadline
}

// choose returns the tick to run of those after through, up to newest, and why the ones
// before it are missed. A zero tick: none is to run. Ticks of a pause are not run later.
func (p *Policy) choose(through, newest, now time.Time, pauses []store.Span) (tick time.Time, reason string) {
	deadline := p.startingDeadline()
	if deadline > 0 && now.Sub(newest) > deadline {
		return time.Time{}, "past the starting deadline"
	}
	if p.Missed != RunAll {
		if p.lastOutside(newest, pauses).Equal(newest) {
			tick = newest
		}
		return tick, "a newer one was due"
	}
	if deadline > 0 {
		through = instant.Later(through, now.Add(-deadline-1))
	}
	// RunAll: go back from the newest tick to the oldest tick that may still run.
	before := p.lastOutside(newest, pauses)
	for n := 0; before.After(through); n++ {
		if n == maxBacklog {
			return tick, "too many were due"
		}
		tick = before
		before = p.lastOutside(p.Ticks.Last(tick.Add(-1)), pauses)
	}
	return tick, "past the starting deadline"
}
