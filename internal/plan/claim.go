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

// Claim returns what is to be written if the lease of the entry is free, or held by this
// replica. It returns false if there is nothing to write. The order is chronological: first
// what becomes of the run before, then ticks that were missed, then the tick to run. One
// write holds all of it, so that no reader sees a part.
//
// Next calls it too, only to learn whether something is due. It changes nothing that it is
// given.
func (p *Policy) Claim(v View) (next Claim, todo bool) {
	if p.Outdated(v) || armed(v) {
		return Claim{}, false
	}
	return draft(p, v)
}

// A claiming is a claim that is being drafted from a view.
type claiming struct {
	*Policy
	v    View
	next Claim
}

func newClaiming(p *Policy, v View) *claiming {
	return &claiming{p, v, Claim{Record: v.Record.Clone()}}
}

// draft is Policy.Claim for a replica whose definition is in force, or comes into force.
func draft(p *Policy, v View) (next Claim, todo bool) {
	c := newClaiming(p, v)
	todo = c.decide()
	c.next.Record.Due = p.due(&c.next.Record)
	return c.next, todo
}

// writing returns the write of the claim, after what was settled so far.
func (c *claiming) writing() *write { return &write{&c.next.Record, len(c.v.Record.History)} }

// decide drafts the claim, and reports whether it has anything to write.
func (c *claiming) decide() bool {
	r, next := c.v.Record, &c.next.Record
	settled := settleCancelledOrder(next, c.v)
	noteServed(next, c.v.Control.Requests)
	next.Run.Unlocked = store.Unlocked{}
	next.Run.Claimed, next.Run.Armed = begun(r), false // the run that was armed is over
	next.Definition.Mark = store.Mark{}                // a replica that writes has the definition in force, which answers the mark
	// The run has stalled and was not known to have returned. By now its lease was seen
	// expired, or this replica has held off, so it is over. Left open, it would make each
	// later process hold off again.
	if r.Run.Status == store.Stalled && r.MayRun() {
		next.Run.Finished = c.v.Now.UTC()
	}
	if c.v.Request != "" && settled {
		return true // it may be what the call is for
	}
	settled = !unsettled(r) && !leftBeside(r) && c.settleLeftBackfilled() || settled
	if c.v.Request != "" {
		return c.claimRequest()
	}
	changed := c.settleDead() || settled
	if c.next.Run {
		c.next.Run = c.v.Claims != NoRun
		return c.next.Run
	}
	if c.Ticks == nil {
		return c.claimTerm() || changed
	}
	changed = c.adopt(next, c.v) || changed
	changed = resume(next, c.v.Control) || changed
	if passedOver(c.v) {
		changed = c.claimOrdered() || changed
	}
	if !c.next.Run && !c.v.Control.Pause.On(c.v.Now) && !selfPaused(next, c.v.Control) {
		changed = c.claimDue() || changed
	}
	changed = c.claimOrdered() || changed
	return c.claimBackfill() || changed
}

// claimTerm claims the next run of a singleton.
func (c *claiming) claimTerm() bool {
	if c.PausedAt(c.v) {
		return false
	}
	c.claim(time.Time{}, 1)
	return true
}

// settleDead decides about the last run if its runner is gone: the run gets another attempt,
// or its outcome. It returns whether it changed anything. A further attempt has the starting
// deadline of its tick.
func (c *claiming) settleDead() bool {
	r := c.v.Record
	if r.Run.Status != store.Running && !open(r) && !leftBeside(r) {
		return false
	}
	if isBackfill(r) {
		return c.settleDeadBackfilled()
	}
	c.next.Record.Run.Deaths = deaths(r)
	if end := c.v.end(); end.Cancel { // its runner may not have known
		c.next.Record.Run.Status = store.Cancelled
		settle(&c.next.Record, LastOutcome(r, store.Cancelled, CancelledBy(end)))
		return true
	}
	again := c.mayRepeat(r)
	if again && c.PausedAt(c.v) { // the tick waits for the end of the pause, with all that is known of its last attempt
		c.next.Record.Run.Deaths, c.next.Record.Run.Unlocked = r.Run.Deaths, r.Run.Unlocked
		return false
	}
	why := ""
	if again {
		if why = c.notRepeated(c.v); why == "" {
			c.claim(r.Run.Tick, r.Run.Attempt+1)
			return true
		}
	}
	c.abandon(why)
	return true
}

// abandon settles the tick of a run that was interrupted: it gets no further attempt. why says the reason, if there is one
// but the policy.
func (c *claiming) abandon(why string) {
	r := c.v.Record
	status, reason, joint := store.Abandoned, endReason(c.v), ", and "
	if open(r) {
		status, reason, joint = r.Run.Status, "not run again", ": "
	}
	if why != "" {
		reason += joint + why
	}
	c.next.Record.Run.Status, c.next.Record.Run.Deaths, c.next.Record.Run.Unlocked = status, deaths(r), store.Unlocked{}
	c.settleRun(&c.next.Record, LastOutcome(r, status, reason))
	c.pauseSelf(&c.next.Record, c.v.Now)
}

// abandonInPause settles the tick that waits for the end of a pause, and reports whether there was one. A run that is ordered
// meanwhile takes its place: the record has room for one run.
func (c *claiming) abandonInPause() bool {
	if isBackfill(c.v.Record) || !c.PausedAt(c.v) || !c.mayRepeat(c.v.Record) {
		return false
	}
	c.abandon("a run was ordered in the pause")
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
// program has written since.
func (p *Policy) mayRepeat(r *store.Record) bool {
	ours := r.Definition.Spec == p.Spec && p.Ticks != nil && r.Run.Request == "" && !p.Paused
	return ours && r.Run.Tick.After(r.Watermark) && p.Interrupted.repeats(r.Run.Attempt, deaths(r))
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
func (c *claiming) claimDue() bool {
	if c.Follows() {
		return c.claimAfter()
	}
	r := &c.next.Record
	newest := c.Ticks.Last(c.v.Now)
	if !newest.After(r.Watermark) {
		return false
	}
	w, pauses := c.writing(), c.pausesUntil(r, c.v.Control, c.v.Now)
	tick, reason := c.choose(r.Watermark, newest, c.v.Now, pauses)
	left := fate{status: store.Missed, reason: reason, waited: c.v.Waited}
	if tick.IsZero() {
		c.passAll(w, newest, left, pauses)
		return true
	}
	before := c.Ticks.Last(tick.Add(-1))
	passed := before.After(r.Watermark)
	if passed && !c.passAll(w, before, left, pauses) {
		return true
	}
	return c.claimChosen(tick, passed)
}

// claimChosen claims the tick that was chosen, after those before it were settled. passed says
// whether there were any. A zero tick: none is to run.
func (c *claiming) claimChosen(tick time.Time, passed bool) bool {
	if tick.IsZero() {
		return passed
	}
	r := &c.next.Record
	if returned := r.Orders.Returned; !returned.Tick.IsZero() && returned.Tick.Equal(tick) && cancelled(c.v) {
		settleReturned(r, store.Outcome{Tick: tick, Attempt: 1}, c.v.end())
		return true
	}
	if c.v.Claims == NoRun {
		return passed
	}
	c.claim(tick, 1)
	return true
}

// claim makes the record say that this replica runs the tick. The token grows with each
// claim and never otherwise. The caller of Policy.Claim adds who claims, and when.
func (c *claiming) claim(tick time.Time, attempt int) {
	r := &c.next.Record
	r.Token++
	r.Beat = store.Beat{}
	if c.Beat > 0 {
		r.Beat = store.Beat{Token: r.Token, Length: store.Seconds(c.Beat)}
	}
	r.Orders.Returned = store.Returned{}
	r.Run.Tick, r.Run.Request, r.Run.Order, r.Run.Attempt = tick, "", 0, attempt
	if attempt == 1 {
		r.Run.Deaths = 0
	}
	r.Run.Status, r.Run.Error = store.Running, ""
	r.Run.Finished, r.Run.Stopping, r.Run.Progress = time.Time{}, false, store.Progress{}
	r.Definition.Spec, r.Definition.Since = c.Spec, instant.Later(r.Definition.Since, c.v.Since)
	c.next.Run = true
}

// claimRequest claims a manual run, in addition to the ticks, once for each request. It returns false
// if a tick is to be run again first: the record has room for one run, and the claim would
// overwrite what it says about that tick. If another
// definition is in force, it stays so, and it alone decides about its ticks.
func (c *claiming) claimRequest() bool {
	r := c.v.Record
	if c.Undecided(r) {
		return false
	}
	settled := c.settleDead()
	if c.next.Run {
		c.next.Run = false
		return false
	}
	if r.Run.Request == c.v.Request { // its runner died: there is only its outcome to write
		return r.Run.Status == store.Running
	}
	if c.v.Claims == NoRun {
		return settled
	}
	if unsettled(&c.next.Record) && !c.abandonInPause() {
		return false
	}
	resume(&c.next.Record, c.v.Control) // now: the next resume counts the run that is claimed here, and would move the end of the pause
	c.settleCancelled()
	c.claim(c.v.Now.UTC().Truncate(time.Millisecond), 1)
	c.next.Record.Run.Request = c.v.Request
	serveByHand(&c.next.Record, c.v)
	// A manual run puts no definition into force.
	if r.Definition.Spec != c.Spec {
		c.next.Record.Definition = r.Definition
	}
	return true
}

// Undecided reports whether the last run's tick may be run again under the definition in
// force, which is another one than this replica's. Then only a replica with that definition
// can settle it.
func (p *Policy) Undecided(r *store.Record) bool {
	return r.Definition.Spec != p.Spec && (r.Run.Request == "" || isBackfill(r)) && (unsettled(r) || leftBeside(r))
}

// armed reports whether the record is armed for a tick that is not due yet. Until then
// nothing is settled and no attempt starts, whatever became of the holder.
func armed(v View) bool {
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
