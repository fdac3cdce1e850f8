package plan

import (
	"slices"
	"strings"
	"time"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/internal/instant"
	"github.com/soloist-go/soloist/internal/record"
)

// Paused is the reason of ticks that are skipped for a pause.
const Paused = "paused"

// ScheduleChanged is the reason of ticks that were due under another definition.
const ScheduleChanged = "the schedule changed"

// Finish returns the record with the outcome of its run, which ended at end. lo is the earliest time that the service's clock
// can show: ticks up to it came due under the run for certain. c is what operators have ordered.
func Finish(p *Policy, r *record.Record, status event.Status, reason string, end, lo time.Time, c record.JobControl) record.Record {
	f := r.Clone()
	f.Run.Finished, f.Run.Stopping = end, false
	if f.Run.Status == event.Stalled {
		endStalled(&f, end)
	} else {
		writing(p, &f).conclude(status, reason, end, lo)
	}
	writing(p, &f).skipUnder(lo, c)
	f.Due = p.due(&f)
	return f
}

// endStalled writes when a stalled run has returned. Its outcome was written when it stalled,
// and other ticks may have been skipped since, so the outcome is looked for by its token.
func endStalled(r *record.Record, end time.Time) {
	i := slices.IndexFunc(r.History, func(f event.Outcome) bool { return f.Token == r.Token })
	if i < 0 {
		return // its tick is still open
	}
	r.History = slices.Clone(r.History)
	r.History[i].End = end
}

// Stall returns the record that says that its run has stalled, at end. The run may still go on, so
// the record has no end of it yet: Finish adds that when the run has returned. lo is as in Finish.
func Stall(p *Policy, r *record.Record, reason string, end, lo time.Time, c record.JobControl) record.Record {
	f := r.Clone()
	f.Run.Stopping = true
	writing(p, &f).conclude(event.Stalled, reason, end, lo)
	writing(p, &f).skipUnder(lo, c)
	f.Due = p.due(&f)
	return f
}

// TakeBack returns the record after a claim that was given up before its run began. It shows the run before that claim again.
// What the claim settled for other ticks stays settled, and its token stays spent: the claim may have been read.
func TakeBack(p *Policy, before, claim *record.Record) record.Record {
	r := claim.Clone()
	if r.Run.Status != event.Running { // it was taken back, without an answer
		return r
	}
	switch {
	case isBackfill(claim):
		takeBackBackfilled(&r, claim)
	case claim.Run.Order != 0:
		unserve(&r.Orders, claim.Run.Order)
		r.Orders.Returned = record.Returned{Order: claim.Run.Order}
	case claim.Run.Request == "" && claim.Run.Attempt == 1:
		r.Orders.Returned = record.Returned{Tick: claim.Run.Tick}
	}
	r.Run = before.Run
	r.Run.Deaths, r.Run.Claimed, r.Run.Unlocked = deaths(before), begun(before), claim.Run.Unlocked
	r.Run.Armed, r.Run.Stopping = false, false
	switch { // a run that was under way has ended, since its lease could be acquired
	case before.Run.Status == event.Running:
		r.Run.Status = event.Abandoned
	case before.MayRun():
		r.Run.Finished = claim.Run.Claimed
	}
	r.Due = p.due(&r)
	return r
}

// conclude gives the tick of the record its outcome, unless the tick stays open. A job that
// has failed too often pauses itself at the end of the run, and no later than the service's clock certainly shows.
func (w *write) conclude(status event.Status, reason string, end, lo time.Time) {
	r := w.Record
	if !lo.IsZero() && lo.Before(end) { // the clock of the replica was fast
		end = lo
	}
	if isDeath(status, reason) {
		r.Run.Deaths = deaths(r)
	}
	r.Run.Claimed, r.Run.Armed = begun(r), false
	if r.Run.Status = status; HasFailed(r) {
		r.Run.Error = reason
	}
	switch fill, again := isBackfill(r), w.endedEarly(); {
	case fill && again:
		waitAgain(r)
	case fill:
		settleBackfilled(r, LastOutcome(r, status, reason))
	case !again || r.Run.Request != "":
		w.settleRun(LastOutcome(r, status, reason))
	}
	w.pauseSelf(end)
}

// pauseSelf pauses a job whose last run was one failure too many.
func (w *write) pauseSelf(at time.Time) {
	r := w.Record
	tooMany := w.PauseAfter > 0 && r.Failures-r.Orders.Spared >= w.PauseAfter
	if tooMany && HasFailed(r) && r.Run.Request == "" && r.Orders.Paused.At.IsZero() {
		r.Orders.Paused = record.SelfPause{At: at.UTC().Truncate(time.Millisecond), Token: r.Token}
	}
}

// skipUnder settles the ticks up to lo as skipped, since they came due under the run, except a
// tick that waits for its end. It must not settle a tick that came due before the run, which is
// missed or still owed. Ticks of a pause are skipped for the pause. Those of the last pause are left to the next
// claim, by which its end is known: a replica reads orders a little later. Ticks of so many pauses that the write has no room for
// each count together, those of the pauses too: the next claim would not know that they came due under the run.
func (w *write) skipUnder(lo time.Time, c record.JobControl) {
	p, r := w.Policy, w.Record
	if p.Ticks == nil || p.Follows() || p.Late.Missed == RunAll || r.Definition.Spec != p.Spec {
		return
	}
	if !p.Ticks.Last(lo).After(r.Watermark) {
		return
	}
	if isBackfill(r) || r.Run.Request == "" && w.endedEarly() { // then the tick stays open
		return
	}
	if r.Run.Request != "" && p.Ticks.Last(r.Run.Tick).After(r.Watermark) {
		return // a tick was due before this manual run, and still is
	}
	pauses := p.pausesUntil(r, c, lo)
	last := lastOutside(p.Ticks, lo, pauses)
	// Ticks from before the claim of a further attempt came due under no run. If one came due since, they are settled first.
	missed := fate{status: event.Missed, reason: "a newer one was due"}
	if r.Run.Attempt > 1 && (!last.After(r.Run.Claimed) || !w.passAll(p.Ticks.Last(r.Run.Claimed), missed, pauses)) {
		return
	}
	if p.Overlap != SkipOverlap { // the newest of them is due at the end of the run
		last = p.Ticks.Last(last.Add(-1))
	}
	if !w.passAll(last, fate{status: event.Skipped, reason: "overlap"}, pauses) {
		w.pass(last, event.Skipped, "overlap")
	}
}

// endedEarly reports whether the last run was ended before its time, and may have another attempt.
func (w *write) endedEarly() bool {
	return w.Ticks != nil && cutShort(w.Run.Status) && w.Interrupted.repeats(w.Run.Attempt, deaths(w.Record))
}

// HasFailed reports whether the last run has failed or stalled.
func HasFailed(r *record.Record) bool {
	return r.Run.Status == event.Failed || r.Run.Status == event.Stalled
}

// Ticks that come due while the job runs are skipped at the end of the run, unless the policy of the job says otherwise:
//
//   - Under QueueOne the newest of them stays unsettled at the end of the run. So it is due then,
//     as a tick is that came due a moment later, and whatever bounds such a tick bounds it:
//     the starting deadline, pauses, a full group, a changed definition.
//   - Under Replace too. Besides, the replica that runs the older tick ends that run as soon as the
//     newer one is due and can start there. It knows the ticks, so no replica has to notify it, and no other replica
//     can claim the newer tick before the run has ended: there is one claim at a time. If the
//     runner has died, the older tick gets no further attempt once a newer one is due.

// ReplacedBy returns the tick that is due and takes the place of the last run, whose outcome is not written yet. It is zero if
// there is none: a tick that would not be run itself ends no run. A run by hand is never replaced.
func (p *Policy) ReplacedBy(v View) time.Time {
	r := v.Record
	if p.Overlap != Replace || p.Ticks == nil || r.Run.Request != "" || v.IsPaused() {
		return time.Time{}
	}
	newest := p.Ticks.Last(v.Now)
	if !newest.After(instant.Later(r.Watermark, r.Run.Tick)) {
		return time.Time{}
	}
	tick, _ := p.choose(backwards(p.Ticks, r.Watermark, newest, p.pausesUntil(r, v.Control, v.Now)), v.Now)
	return tick
}

// Replaced begins the reason of a cancelled run whose place a newer tick has taken. The reason of a run which an
// operator has cancelled begins with "by".
const Replaced = "replaced"

// replaced reports whether a newer tick has taken the place of a cancelled run with the reason.
func replaced(reason string) bool { return strings.HasPrefix(reason, Replaced+" ") }

// UntilReplaced returns for how long no tick takes the place of the last run.
func UntilReplaced(ticks Ticks, now time.Time) time.Duration {
	next := ticks.Next(now)
	if next.IsZero() {
		return maxSleep
	}
	return min(max(next.Sub(now), minIdle), maxSleep)
}
