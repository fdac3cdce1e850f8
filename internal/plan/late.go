package plan

import (
	"slices"
	"time"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/internal/instant"
	"github.com/soloist-go/soloist/internal/record"
)

// Late is [soloist.Late] for decisions.
type Late struct {
	Start  time.Duration // how late a run may start, from its tick on; zero: only Missed limits it
	Finish time.Duration // after its tick: when it has to have succeeded; zero: whenever
	Missed Missed
}

// A tick that has not succeeded by Late.Finish after it is late, and that is reported once: the record says
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

// lateAgain is how long the replicas of a job wait at least between two writes that only report late ticks.
const lateAgain = time.Minute

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

// A judging looks at the ticks of a record, and notes there which of them are late.
type judging struct {
	*Policy
	r    *record.Record
	late Lateness
}

// Judge notes in the record which ticks are late at an instant, and returns those that were not reported
// before. Only a replica of the definition in force knows the ticks. One without Late.Finish leaves what others
// note: they may run at the same time.
func Judge(p *Policy, r *record.Record, now time.Time, c record.JobControl) Lateness {
	j := &judging{Policy: p, r: r}
	if !j.knows() {
		return j.late
	}
	if r.Past.Judged.IsZero() { // Finish is new, or the record is
		r.Past.Judged = r.Watermark
	}
	by := now.Add(-p.Late.Finish - 1) // the last instant of its time is in time
	if j.settled(by) {
		j.owed(by, p.pausesUntil(r, c, now))
	}
	j.note()
	return j.late
}

// knows reports whether this replica knows which ticks are late.
func (j *judging) knows() bool {
	return j.Late.Finish > 0 && j.Ticks != nil && j.r.Definition.Spec == j.Spec
}

// Report is Judge for a write with no other purpose.
func Report(p *Policy, r *record.Record, now time.Time, c record.JobControl) (late Lateness) {
	if late = Judge(p, r, now, c); late.Count > 0 {
		r.Past.Told = now.Truncate(time.Millisecond)
	}
	return late
}

// settled judges ticks that have their outcome. It returns false if one of them may still become late.
func (j *judging) settled(by time.Time) (all bool) {
	judged := &j.r.Past.Judged
	for i, f := range slices.Backward(j.r.History) {
		switch after := instant.Later(spanOf(&f).From, *judged); {
		case f.Request != "" || !f.Tick.After(*judged):
			continue
		case !inVain(&f, j.Late.Finish):
		case f.Tick.After(by) && i < lateKept:
			if !f.From.IsZero() { // its first ticks may be late
				j.add(after, j.Ticks.Last(by), f.Count, string(f.Status))
			}
			return false
		default:
			j.add(after, f.Tick, max(1, f.Count), whyLate(&f))
		}
		*judged = f.Tick
	}
	*judged = instant.Later(*judged, j.r.Watermark)
	return true
}

// owed judges ticks without an outcome. Ticks of a pause will be skipped.
func (j *judging) owed(by time.Time, pauses []record.Span) {
	judged, last := &j.r.Past.Judged, j.Ticks.Last(by)
	for through := *judged; through.Before(last); {
		from, to := nextPause(through, last, pauses)
		j.add(*judged, j.Ticks.Last(from), maxCount, "")
		*judged = instant.Later(*judged, j.Ticks.Last(to))
		through = to
	}
}

// add adds the ticks after one instant and up to a tick, and counts them as judged. They are at most so
// many, and at least one: ticks that have their outcome may be of a schedule before. Without a reason they have none.
func (j *judging) add(after, to time.Time, most int, why string) {
	if !to.After(after) {
		return
	}
	if why == "" {
		why = j.whyOwed(to)
	}
	late := &j.late
	if late.Count == 0 {
		late.Since = firstUpTo(j.Ticks, after, to).Add(j.Late.Finish)
	}
	late.Tick, late.Why, late.Count = to, why, late.Count+max(1, j.Ticks.Count(after, to, most))
	j.r.Past.Judged = instant.Later(j.r.Past.Judged, to)
}

// firstUpTo returns the first tick after an instant, of those up to a tick.
func firstUpTo(ticks Ticks, after, to time.Time) time.Time {
	if next := ticks.Next(after); !next.IsZero() && next.Before(to) {
		return next
	}
	return to
}

// inVain reports whether a tick with this outcome has not succeeded in time, and was to.
func inVain(f *event.Outcome, finishBy time.Duration) bool {
	switch f.Status {
	case event.Succeeded:
		return f.End.Sub(f.Tick) > finishBy
	case event.Skipped:
		return f.Token == 0 && f.Reason != Paused
	case event.Missed:
		return f.Reason != ScheduleChanged
	}
	return f.Status != event.Cancelled || replaced(f.Reason)
}

// whyLate says what became of a tick with an outcome.
func whyLate(f *event.Outcome) string {
	if f.Status == event.Succeeded {
		return "it has succeeded too late"
	}
	if f.Reason == "" {
		return string(f.Status)
	}
	return string(f.Status) + ": " + f.Reason
}

// whyOwed says what has become of a tick without an outcome.
func (j *judging) whyOwed(tick time.Time) string {
	switch r := j.r; {
	case r.Run.Request != "" || !r.Run.Tick.Equal(tick):
		return "it has not begun"
	case open(r):
		return "it waits for another attempt"
	case r.Run.Claimed.Sub(tick) > j.Late.Finish:
		return "it has begun too late"
	}
	return "its run has not ended"
}

// note notes in the record for how long the job is late. It is, until a tick succeeds that is not
// older than the newest of those that were late.
func (j *judging) note() {
	known, done := &j.r.Past.Late, LastSuccess(j.r)
	if !known.Tick.After(done) {
		*known = record.Late{}
	}
	if j.late.Count == 0 || !j.late.Tick.After(done) {
		return
	}
	if known.Count == 0 {
		known.Since = j.late.Since
	}
	known.Tick = j.late.Tick
	known.Count += int64(j.late.Count)
}

// LateNow returns which ticks are late at an instant, whether reported or not. Without Late.Finish none is.
func LateNow(p *Policy, r *record.Record, now time.Time, c record.JobControl) record.Late {
	if p.Late.Finish == 0 {
		return record.Late{}
	}
	judged := r.Clone()
	Judge(p, &judged, now, c)
	return judged.Past.Late
}

// UntilTell returns how long it takes until a write is due that reports late ticks, if nothing else
// happens. Zero or less: it is due.
func UntilTell(p *Policy, r *record.Record, now time.Time, c record.JobControl) time.Duration {
	wait := untilLate(p, r, now, c)
	// The clock that reported may be a little ahead of this one. If it is by more than that, it was wrong.
	if again := r.Past.Told.Add(lateAgain).Sub(now); again <= 2*lateAgain {
		wait = max(wait, min(again, lateAgain))
	}
	return wait
}

// untilLate returns how long it takes until a tick becomes late that is not known to be. Zero or less: one is.
func untilLate(p *Policy, r *record.Record, now time.Time, c record.JobControl) time.Duration {
	if !(&judging{Policy: p, r: r}).knows() {
		return never
	}
	judged := r.Clone()
	if late := Judge(p, &judged, now, c); late.Count > 0 {
		return 0
	}
	// A run is owed for the first tick after the judged ones. A tick of a pause is skipped, and what follows a pause without an
	// end depends on its resume.
	far := now.Add(never)
	next := firstOutside(p.Ticks, judged.Past.Judged, p.pausesUntil(&judged, c, far))
	if next.After(far) {
		next = time.Time{}
	}
	for _, f := range slices.Backward(judged.History) {
		if f.Request == "" && f.Tick.After(judged.Past.Judged) && inVain(&f, p.Late.Finish) {
			next = firstUpTo(p.Ticks, instant.Later(spanOf(&f).From, judged.Past.Judged), f.Tick)
			break
		}
	}
	if next.IsZero() {
		return never
	}
	return max(next.Add(p.Late.Finish+1).Sub(now), minIdle)
}

// tellLate adds to what an idle replica does that ticks may be late, or become so before it acts. Just
// before a tick it leaves that to the claim of the tick. It also reports the tick of a dead runner that waits for
// the end of a pause. That releases the lease, so a replica that starts later cannot see that it had expired, and holds off once.
func (s *step) tellLate(a Action) Action {
	if s.Late.Finish == 0 || a.Read || a.What != Wait && a.What != Await {
		return a
	}
	wait := UntilTell(s.Policy, s.Record, s.Now, s.Control)
	left := s.NextTick(s.Record).Sub(s.Now)
	switch {
	case wait > 0 && wait < a.After:
		a.After = wait
		if a.What == Wait {
			a.Jitter = lateJitter
		}
	case wait > 0 || s.State.Live() || left > 0 && left <= 2*s.Lead() && !s.Follows() && !s.IsPaused():
	case !s.o.Fresh:
		return Action{Read: true}
	default:
		return Action{What: Tell, After: a.After}
	}
	return a
}
