package plan

import (
	"slices"
	"time"

	"github.com/soloist-go/soloist/internal/instant"
	"github.com/soloist-go/soloist/store"
)

// A tick that has not succeeded by FinishBy after it is late, and that is reported once: the record says
// up to which tick it is known of each whether it was late.
//
//   - A tick with an outcome is late if it did not succeed, or succeeded later. A tick that was skipped
//     on purpose, for a pause or by the job itself, is not, nor is a tick that an operator has cancelled.
//   - A tick without an outcome is late whatever keeps it: its run goes on, it waits, or nothing has
//     begun it. A tick that came due in a pause is not.
//   - A tick is reported when its time is over, though its outcome may have said so before. The history
//     does not keep all outcomes: an outcome about to leave it is reported before its time.
//   - The holder of a run reports, since no other replica can write meanwhile; else any replica does, in
//     its next claim or by a write of its own.
//   - Writes for that alone are a minute apart, whichever replicas send them: a job of every second
//     whose ticks are all late would cost one each second. What becomes late meanwhile is reported by the next.

// lateKept is how many outcomes wait for the time of their ticks. The history has room for twice as
// many in most records, so that none is lost unseen.
const lateKept = 10

// LateAgain is how long the replicas of a job wait at least between two writes that only report late ticks.
const LateAgain = time.Minute

// lateJitter keeps the replicas apart that would all report one tick.
const lateJitter = 3 * time.Second

// never is the wait for what does not come.
const never = 365 * 24 * time.Hour

// A Lateness is what a write reports about late ticks.
type Lateness struct {
	Tick  time.Time // the newest of them; zero: there are none
	Count int       // how many they are
	Why   string    // what became of Tick
	Since time.Time // when the first of them should have succeeded
}

// Judge notes in the record which ticks are late at an instant, and returns those that were not reported
// before. Only a replica of the definition in force knows the ticks. One without FinishBy leaves what others
// note: they may run at the same time.
func (p *Policy) Judge(r *store.Record, now time.Time, c store.JobControl) (late Lateness) {
	if !p.judges(r) {
		return late
	}
	if r.Past.Judged.IsZero() { // FinishBy is new, or the record is
		r.Past.Judged = r.Watermark
	}
	by := now.Add(-p.FinishBy - 1) // the last instant of its time is in time
	if p.judgeSettled(r, by, &late) {
		p.judgeOwed(r, by, p.pausesUntil(r, c, now), &late)
	}
	p.noteLate(r, &late)
	return late
}

// judges reports whether this replica knows which ticks are late.
func (p *Policy) judges(r *store.Record) bool {
	return p.FinishBy > 0 && p.Ticks != nil && r.Definition.Spec == p.Spec
}

// Tell is Judge for a write with no other purpose.
func (p *Policy) Tell(r *store.Record, now time.Time, c store.JobControl) (late Lateness) {
	if late = p.Judge(r, now, c); late.Count > 0 {
		r.Past.Told = now.Truncate(time.Millisecond)
	}
	return late
}

// judgeSettled judges ticks that have their outcome. It returns false if one of them may still become
// late.
func (p *Policy) judgeSettled(r *store.Record, by time.Time, late *Lateness) (all bool) {
	judged := &r.Past.Judged
	for i, f := range slices.Backward(r.History) {
		switch {
		case f.Request != "" || !f.Tick.After(*judged):
			continue
		case !p.inVain(&f):
		case f.Tick.After(by) && i < lateKept:
			if !f.From.IsZero() { // its first ticks may be late
				p.addLate(late, r, instant.Later(f.From, *judged), p.Ticks.Last(by), f.Count, string(f.Status))
			}
			return false
		default:
			p.addLate(late, r, instant.Later(before(&f), *judged), f.Tick, max(1, f.Count), whyLate(&f))
		}
		*judged = f.Tick
	}
	*judged = instant.Later(*judged, r.Watermark)
	return true
}

// judgeOwed judges ticks without an outcome. Ticks of a pause will be skipped.
func (p *Policy) judgeOwed(r *store.Record, by time.Time, pauses []store.Span, late *Lateness) {
	last := p.Ticks.Last(by)
	for through := r.Past.Judged; through.Before(last); {
		from, to := nextPause(through, last, pauses)
		p.addLate(late, r, r.Past.Judged, p.Ticks.Last(from), maxCount, "")
		r.Past.Judged = instant.Later(r.Past.Judged, p.Ticks.Last(to))
		through = to
	}
}

// addLate adds the ticks after one instant and up to a tick, and counts them as judged. They are at most so
// many, and at least one: ticks that have their outcome may be of a schedule before. Without a reason they have none.
func (p *Policy) addLate(late *Lateness, r *store.Record, after, to time.Time, most int, why string) {
	if !to.After(after) {
		return
	}
	if why == "" {
		why = p.whyOwed(r, to)
	}
	if late.Count == 0 {
		late.Since = p.first(after, to).Add(p.FinishBy)
	}
	late.Tick, late.Why, late.Count = to, why, late.Count+max(1, p.Ticks.Count(after, to, most))
	r.Past.Judged = instant.Later(r.Past.Judged, to)
}

// first returns the first tick after an instant, of those up to a tick.
func (p *Policy) first(after, to time.Time) time.Time {
	if next := p.Ticks.Next(after); !next.IsZero() && next.Before(to) {
		return next
	}
	return to
}

// before returns the instant after which the ticks of an outcome come.
func before(f *store.Outcome) time.Time {
	if f.From.IsZero() {
		return f.Tick.Add(-1)
	}
	return f.From
}

// inVain reports whether a tick with this outcome has not succeeded in time, and was to.
func (p *Policy) inVain(f *store.Outcome) bool {
	switch f.Status {
	case store.Succeeded:
		return f.End.Sub(f.Tick) > p.FinishBy
	case store.Skipped:
		return f.Token == 0 && f.Reason != Paused
	case store.Missed:
		return f.Reason != ScheduleChanged
	}
	return f.Status != store.Cancelled || replaced(f.Reason)
}

// whyLate says what became of a tick with an outcome.
func whyLate(f *store.Outcome) string {
	if f.Status == store.Succeeded {
		return "it has succeeded too late"
	}
	if f.Reason == "" {
		return string(f.Status)
	}
	return string(f.Status) + ": " + f.Reason
}

// whyOwed says what has become of a tick without an outcome.
func (p *Policy) whyOwed(r *store.Record, tick time.Time) string {
	switch {
	case !claimed(r).Equal(tick):
		return "it has not begun"
	case open(r):
		return "it waits for another attempt"
	case r.Run.Claimed.Sub(tick) > p.FinishBy:
		return "it has begun too late"
	}
	return "its run has not ended"
}

// noteLate notes in the record for how long the job is late. It is, until a tick succeeds that is not
// older than the newest of those that were late.
func (p *Policy) noteLate(r *store.Record, late *Lateness) {
	done := LastSuccess(r)
	if !r.Past.Late.Tick.After(done) {
		r.Past.Late = store.Late{}
	}
	if late.Count == 0 || !late.Tick.After(done) {
		return
	}
	if r.Past.Late.Count == 0 {
		r.Past.Late.Since = late.Since
	}
	r.Past.Late.Tick = late.Tick
	r.Past.Late.Count += int64(late.Count)
}

// LateNow returns which ticks are late at an instant, whether reported or not. Without FinishBy none is.
func (p *Policy) LateNow(r *store.Record, now time.Time, c store.JobControl) store.Late {
	if p.FinishBy == 0 {
		return store.Late{}
	}
	judged := r.Clone()
	p.Judge(&judged, now, c)
	return judged.Past.Late
}

// UntilTell returns how long it takes until a write is due that reports late ticks, if nothing else
// happens. Zero or less: it is due.
func (p *Policy) UntilTell(r *store.Record, now time.Time, c store.JobControl) time.Duration {
	wait := p.untilLate(r, now, c)
	// The clock that reported may be a little ahead of this one. If it is by more than that, it was wrong.
	if again := r.Past.Told.Add(LateAgain).Sub(now); again <= 2*LateAgain {
		wait = max(wait, min(again, LateAgain))
	}
	return wait
}

// untilLate returns how long it takes until a tick becomes late that is not known to be. Zero or less:
// one is.
func (p *Policy) untilLate(r *store.Record, now time.Time, c store.JobControl) time.Duration {
	if !p.judges(r) {
		return never
	}
	judged := r.Clone()
	if late := p.Judge(&judged, now, c); late.Count > 0 {
		return 0
	}
	next := p.nextOwed(&judged, now, c)
	for _, f := range slices.Backward(judged.History) {
		if f.Request == "" && f.Tick.After(judged.Past.Judged) && p.inVain(&f) {
			next = p.first(instant.Later(before(&f), judged.Past.Judged), f.Tick)
			break
		}
	}
	if next.IsZero() {
		return never
	}
	return max(next.Add(p.FinishBy+1).Sub(now), minIdle)
}

// nextOwed returns the first tick after the judged ones that a run is owed for; zero: there is none. A tick of a pause is
// skipped, and what follows a pause without an end depends on its resume.
func (p *Policy) nextOwed(r *store.Record, now time.Time, c store.JobControl) time.Time {
	far := now.Add(never)
	next := p.firstOutside(r.Past.Judged, p.pausesUntil(r, c, far))
	if next.After(far) {
		return time.Time{}
	}
	return next
}

// tellLate adds to what an idle replica does that ticks may be late, or become so before it acts. Just
// before a tick it leaves that to the claim of the tick. It also reports the tick of a dead runner that waits for
// the end of a pause. That releases the lease, so a replica that starts later cannot see that it had expired, and holds off once.
func (p *Policy) tellLate(a Action, v View, o *Observation) Action {
	if p.FinishBy == 0 || a.Read || a.What != Wait && a.What != Await {
		return a
	}
	wait := p.UntilTell(v.Record, v.Now, v.Control)
	left := p.NextTick(v.Record).Sub(v.Now)
	switch {
	case wait > 0 && wait < a.After:
		a.After = wait
		if a.What == Wait {
			a.Jitter = lateJitter
		}
	case wait > 0 || v.State.Live() || left > 0 && left <= 2*p.Lead() && !p.Follows() && !p.PausedAt(v):
	case !o.Fresh:
		return Action{Read: true}
	default:
		return Action{What: Tell, After: a.After}
	}
	return a
}
