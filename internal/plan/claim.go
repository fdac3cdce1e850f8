package plan

import (
	"time"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/internal/instant"
	"github.com/soloist-go/soloist/internal/record"
)

// A Claim is the record that the holder of a lease has to write, in one write.
type Claim struct {
	Record record.Record
	Run    bool // the record claims a tick, which the holder has to run once the write is confirmed

	Backfilled []event.Outcome // of a backfill: those that the record counts, which its history does not have
}

// Claimed returns the run that is claimed, as its outcome will name it; zero: none is.
func (c *Claim) Claimed() (run event.Outcome) {
	if c.Run {
		run = LastOutcome(&c.Record, "", "")
	}
	return run
}

// Claim returns what is to be written if the lease of the entry is free, or held by this replica. It returns false if there is
// nothing to write. The order is chronological: first what becomes of the run before, then ticks that were missed, then the
// tick to run. One write holds all of it, so that no reader sees a part.
//
// Next asks for it too, only to learn whether something is due. It changes nothing that it is given.
func (p *Policy) Claim(v View) (next Claim, todo bool) {
	if p.Outdated(v) {
		return Claim{}, false
	}
	return draft(p, v)
}

// draft is Policy.Claim for a replica whose definition is in force, or comes into force.
func draft(p *Policy, v View) (next Claim, todo bool) {
	if v.armed() {
		return Claim{}, false
	}
	c := newClaiming(p, v)
	if todo = c.decide(); todo {
		c.next.Record.Due = p.due(&c.next.Record)
	}
	return c.next, todo
}

// A claiming is a claim that is being drafted from a view.
type claiming struct {
	*Policy
	v    View
	next Claim

	undecided bool // what becomes of the last run, or of a tick beside it
	paused    bool // the job, also by what was drafted so far
}

func newClaiming(p *Policy, v View) claiming {
	return claiming{p, v, Claim{Record: v.Record.Clone()}, undecided(v.Record), v.IsPaused()}
}

// writing returns the write of the claim, after what was settled so far.
func (c *claiming) writing() *write {
	return &write{c.Policy, &c.next.Record, len(c.v.Record.History)}
}

// decide drafts the claim, and reports whether it has anything to write.
func (c *claiming) decide() bool {
	r, next := c.v.Record, &c.next.Record
	ordered := len(c.v.Control.Requests) > 0 // else nothing is asked about manual runs that were ordered
	settled := ordered && settleCancelledOrder(next, c.v)
	if ordered {
		noteServed(next, c.v.Control.Requests)
	}
	next.Run.Unlocked = record.Unlocked{}
	next.Run.Claimed, next.Run.Armed = begun(r), false // the run that was armed is over
	next.Definition.Mark = record.Mark{}               // a replica that writes has the definition in force, which answers the mark
	// The run has stalled and was not known to have returned. By now its lease was seen expired, or this replica has held off,
	// so it is over. Left open, it would make each later process hold off again.
	if r.Run.Status == event.Stalled && r.MayRun() {
		next.Run.Finished = c.v.Now.UTC()
	}
	if c.v.Request != "" && settled {
		return true // it may be what the call is for
	}
	settled = !c.undecided && next.Backfill.Seq != 0 && c.settleLeftBackfilled() || settled
	if c.v.Request != "" {
		return c.claimRequest()
	}
	changed := c.undecided && c.settleDead() || settled
	if c.next.Run {
		c.next.Run = c.v.Claims != NoRun
		return c.next.Run
	}
	if c.Ticks == nil { // the next run of a singleton
		if c.paused {
			return changed
		}
		c.claim(time.Time{}, 1)
		return true
	}
	changed = c.adopt() || changed
	changed = resume(next, c.v.Control) || changed
	if ordered && c.v.passedOver() {
		changed = c.claimOrdered() || changed
	}
	if !c.next.Run && !c.paused {
		changed = c.claimDue() || changed
	}
	changed = ordered && c.claimOrdered() || changed
	return c.claimBackfill() || changed
}

// settleDead decides about the last run, whose runner is gone: the run gets another attempt, or its outcome. It returns
// whether it changed anything. A further attempt has the starting deadline of its tick.
func (c *claiming) settleDead() bool {
	r := c.v.Record
	if isBackfill(r) {
		return c.settleDeadBackfilled()
	}
	c.next.Record.Run.Deaths = deaths(r)
	if end := c.v.end(); end.Cancel { // its runner may not have known
		c.next.Record.Run.Status = event.Cancelled
		settle(&c.next.Record, LastOutcome(r, event.Cancelled, CancelledBy(end)))
		return true
	}
	why := ""
	if c.mayRepeat() {
		if c.paused { // the tick waits for the end of the pause, with all that is known of its last attempt
			c.next.Record.Run.Deaths, c.next.Record.Run.Unlocked = r.Run.Deaths, r.Run.Unlocked
			return false
		}
		if why = c.notRepeated(); why == "" {
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
	status, reason, joint := event.Abandoned, endReason(c.v), ", and "
	if open(r) {
		status, reason, joint = r.Run.Status, "not run again", ": "
	}
	if why != "" {
		reason += joint + why
	}
	c.next.Record.Run.Status, c.next.Record.Run.Deaths, c.next.Record.Run.Unlocked = status, deaths(r), record.Unlocked{}
	w := c.writing()
	w.settleRun(LastOutcome(r, status, reason))
	w.pauseSelf(c.v.Now)
	c.paused = c.paused || selfPaused(&c.next.Record, c.v.Control)
}

// abandonInPause settles the tick that waits for the end of a pause, and reports whether there was one. A run that is ordered
// meanwhile takes its place: the record has room for one run.
func (c *claiming) abandonInPause() bool {
	if !c.paused || !c.mayRepeat() {
		return false
	}
	c.abandon("a run was ordered in the pause")
	return true
}

// notRepeated returns why the tick of a run that was interrupted gets no further attempt, though the job has Rerun; empty: it
// gets one. Under Replace it gets none once a newer tick has come due, even if that is too late to be run itself.
func (c *claiming) notRepeated() string {
	r := c.v.Record
	switch newest := lastOutside(c.Ticks, c.v.Now, c.pausesUntil(r, c.v.Control, c.v.Now)); {
	case c.Overlap == Replace && newest.After(r.Run.Tick):
		return "a newer tick was due"
	case c.lateStart():
		return "the starting deadline has passed"
	}
	return ""
}

// mayRepeat reports whether the last run may have another attempt, now that its runner is gone. A tick up to the watermark has
// its outcome, and is not repeated whatever another program has written since.
func (c *claiming) mayRepeat() bool {
	r := c.v.Record
	ours := r.Definition.Spec == c.Spec && c.Ticks != nil && r.Run.Request == "" && !c.Paused
	return ours && r.Run.Tick.After(r.Watermark) && c.Interrupted.repeats(r.Run.Attempt, deaths(r))
}

// adopt puts a changed definition into force. Ticks of the old definition that were due before are
// settled as missed, and none of the new definition is made up for. Of the old ticks only the first is known. If it came
// due in a pause, the ticks up to the end of that pause are skipped for it.
func (c *claiming) adopt() bool {
	r := &c.next.Record
	if r.Definition.Spec == c.Spec {
		r.Definition.Since = instant.Later(r.Definition.Since, c.v.Since)
		return false
	}
	r.Definition.Spec, r.Definition.Since = c.Spec, c.v.Since
	from, pauses := c.countsFrom(), c.pausesUntil(r, c.v.Control, c.v.Now)
	drop(r, instant.Earlier(pausedThrough(r.Due, pauses), from), event.Skipped, Paused)
	drop(r, from, event.Missed, ScheduleChanged)
	return true
}

// drop settles the ticks of another definition up to an instant. How many they are is not known.
func drop(r *record.Record, to time.Time, status event.Status, reason string) {
	if to.After(r.Watermark) {
		settle(r, event.Outcome{From: r.Watermark, Tick: to.UTC(), Status: status, Reason: reason})
	}
}

// countsFrom returns the instant after which the ticks of a changed definition count. That is
// now, or when a new predecessor begins, with one exception: the first tick that is due under the old definition, the only one
// that is known, is also the newest tick of the new one. It came due while the change was deployed, and must not be lost. There
// is no exception if the new definition has a tick after the due one: counted from the due
// tick, RunAll would also run ticks of the new definition from before it came into force.
func (c *claiming) countsFrom() time.Time {
	if r := &c.next.Record; r.Due.After(r.Watermark) && c.Ticks.Last(c.v.Now).Equal(r.Due) {
		return r.Due.Add(-1)
	}
	return notBefore(c.v.Now, c.v.Before)
}

// claimDue claims the tick that is to run now, and settles those before it.
func (c *claiming) claimDue() bool {
	if c.Follows() {
		return c.claimAfter()
	}
	r, newest := &c.next.Record, c.Ticks.Last(c.v.Now)
	if !newest.After(r.Watermark) {
		return false
	}
	pauses := c.pausesUntil(r, c.v.Control, c.v.Now)
	tick, reason := c.choose(backwards(c.Ticks, r.Watermark, newest, pauses), c.v.Now)
	before := newest
	if !tick.IsZero() {
		before = c.Ticks.Last(tick.Add(-1))
	}
	passed := before.After(r.Watermark) // else nothing is due before it
	if !c.writing().passAll(before, fate{status: event.Missed, reason: reason, waited: c.v.Waited}, pauses) {
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
	if returned := r.Orders.Returned; returned.Tick.Equal(tick) && c.v.end().Cancel {
		settleReturned(r, event.Outcome{Tick: tick, Attempt: 1}, c.v.end())
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
	r.Beat = record.Beat{}
	if c.Beat > 0 {
		r.Beat = record.Beat{Token: r.Token, Length: record.Seconds(c.Beat)}
	}
	r.Orders.Returned = record.Returned{}
	r.Run.Tick, r.Run.Request, r.Run.Order, r.Run.Attempt = tick, "", 0, attempt
	if attempt == 1 {
		r.Run.Deaths = 0
	}
	r.Run.Status, r.Run.Error = event.Running, ""
	r.Run.Finished, r.Run.Stopping, r.Run.Progress = time.Time{}, false, record.Progress{}
	r.Definition.Spec, r.Definition.Since = c.Spec, instant.Later(r.Definition.Since, c.v.Since)
	c.next.Run = true
}

// claimRequest claims a manual run, in addition to the ticks, once for each request. It returns false if a tick is to be run
// again first: the record has room for one run, and the claim would overwrite what it says about that tick. If another
// definition is in force, it stays so, and it alone decides about its ticks.
func (c *claiming) claimRequest() bool {
	r := c.v.Record
	if c.Undecided(r) {
		return false
	}
	settled := c.undecided && c.settleDead()
	if c.next.Run {
		c.next.Run = false
		return false
	}
	if r.Run.Request == c.v.Request { // its runner died: there is only its outcome to write
		return r.Run.Status == event.Running
	}
	if c.v.Claims == NoRun {
		return settled
	}
	if unsettled(&c.next.Record) && !c.abandonInPause() {
		return false
	}
	resume(&c.next.Record, c.v.Control) // now: the next resume counts the run that is claimed here, and would move the end of the pause
	c.claimByHand(c.v.Request)
	for _, q := range c.v.Control.Requests { // it may have been ordered, and others before it
		if next := &c.next.Record; q.Name == c.v.Request && !next.Orders.IsServed(q.Seq) {
			next.Run.Order = q.Seq
			serveEarly(&next.Orders, q.Seq)
		}
	}
	// A manual run puts no definition into force.
	if r.Definition.Spec != c.Spec {
		c.next.Record.Definition = r.Definition
	}
	return true
}

// claimByHand claims a manual run, of now.
func (c *claiming) claimByHand(request string) {
	c.settleCancelled()
	c.claim(c.v.Now.UTC().Truncate(time.Millisecond), 1)
	c.next.Record.Run.Request = request
}

// Undecided reports whether the last run's tick may be run again under the definition in force, which is another one than this
// replica's. Then only a replica with that definition can settle it.
func (p *Policy) Undecided(r *record.Record) bool {
	return r.Definition.Spec != p.Spec && (r.Run.Request == "" || isBackfill(r)) && undecided(r)
}

// armed reports whether the record is armed for a tick that is not due yet. Until then
// nothing is settled and no attempt starts, whatever became of the holder.
func (v View) armed() bool {
	return v.Record.Run.Armed && v.Record.MayRun() && v.Record.Run.Tick.After(v.Now)
}

// TooLate reports whether a first attempt must not start so long after its tick came due, whatever Missed says.
// Lease is the store's: a job may ask for a shorter one, which its beats keep.
func (p *Policy) TooLate(after time.Duration) bool {
	deadline := p.Late.Start
	if deadline == 0 && p.Late.Missed == SkipMissed {
		deadline = p.Lease
	}
	return deadline > 0 && after > deadline
}

// choose returns the tick to run of some, the newest of which comes first, and why the ones before it are missed. A zero tick:
// none is to run. Ticks of a pause are not run later.
func (p *Policy) choose(ticks func(yield func(fate) bool), now time.Time) (tick time.Time, reason string) {
	n := 0
	for f := range ticks {
		switch {
		case p.TooLate(now.Sub(f.since)):
			return tick, "past the starting deadline"
		case p.Late.Missed != RunAll && f.paused:
			return tick, "a newer one was due"
		case p.Late.Missed != RunAll:
			return f.to, "a newer one was due"
		case f.paused:
		case n == maxBacklog:
			return tick, "too many were due"
		default: // RunAll goes back to the oldest tick that may still run
			tick, n = f.to, n+1
		}
	}
	return tick, "past the starting deadline"
}

// backwards yields the ticks after an instant, from the newest one on; of those of a pause only the last. Each may be run from
// when it came due.
func backwards(ticks Ticks, through, newest time.Time, pauses []record.Span) func(yield func(fate) bool) {
	return func(yield func(fate) bool) {
		for at := newest; at.After(through); {
			pause, paused := pauseOf(at, pauses)
			if !yield(fate{to: at, since: at, paused: paused}) {
				return
			}
			if at = at.Add(-1); paused {
				at = pause.From
			}
			at = ticks.Last(at)
		}
	}
}
