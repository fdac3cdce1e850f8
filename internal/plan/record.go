package plan

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/internal/instant"
	"github.com/soloist-go/soloist/internal/record"
	"github.com/soloist-go/soloist/store"
)

// Stopped is the reason, or its beginning, of a run that a stop has ended. A stop is no death:
// a long run may be stopped by each of many deploys.
const Stopped = "stopped"

// deaths returns how many attempts of the last tick have ended by a death, where a run that is still recorded as running
// counts as one. The number in the record may be from another tick, since a program that does not know the field leaves it as
// it is. So it is at most the number of attempts that have ended.
func deaths(r *record.Record) int {
	if r.Run.Status == event.Running {
		return min(r.Run.Deaths, r.Run.Attempt-1) + 1
	}
	return min(r.Run.Deaths, r.Run.Attempt)
}

// open reports whether the tick of the last run waits for another attempt. Its outcome is not
// settled then: the watermark is before it.
func open(r *record.Record) bool {
	return cutShort(r.Run.Status) && begunThrough(r).After(r.Watermark)
}

// cutShort reports whether a run that has come to this was ended before its time.
func cutShort(status event.Status) bool { return status == event.Abandoned || status == event.Stalled }

// isDeath reports whether a run that has come to this has cost its runner.
func isDeath(status event.Status, reason string) bool {
	return status == event.Stalled || status == event.Abandoned && !strings.HasPrefix(reason, Stopped)
}

// unsettled reports whether the last run still waits for its outcome or for another attempt,
// so that no other run may take its place in the record.
func unsettled(r *record.Record) bool { return r.Run.Status == event.Running || open(r) }

// undecided reports whether it is not decided yet what becomes of the last run, or of a tick beside it.
func undecided(r *record.Record) bool { return unsettled(r) || leftBeside(r) }

// begunThrough returns the last tick that is settled or claimed: what comes after it has not begun. A manual run claims none.
func begunThrough(r *record.Record) time.Time {
	if r.Run.Request != "" {
		return r.Watermark
	}
	return instant.Later(r.Watermark, r.Run.Tick)
}

// Due returns the next tick to run under the definition that wrote r, for a replica that does
// not know this definition. An open tick comes first.
func Due(r *record.Record) time.Time {
	if open(r) && !r.Due.IsZero() {
		return r.Run.Tick
	}
	return r.Due
}

// A write is a record that is about to be written, and how many outcomes it had before. One write settles maxSettled, or a few
// more; the next write goes on. The history has room for twice as many, so that each of them is in the record at some time. Of what
// was there before, orders leave the newest five ticks in the history, where followers read them.
type write struct {
	*Policy
	*record.Record
	had int
}

const maxSettled = 10

func writing(p *Policy, r *record.Record) *write { return &write{p, r, len(r.History)} }

// full reports whether what is still to be settled is left to the next write.
func (w *write) full() bool { return len(w.History)-w.had >= maxSettled }

// pass settles the ticks up to last, which no replica runs, with one outcome; if they are settled, it does nothing.
func (w *write) pass(last time.Time, status event.Status, reason string) {
	if !last.After(w.Watermark) {
		return
	}
	f := event.Outcome{Tick: last, Status: status, Reason: reason}
	if n := w.Ticks.Count(w.Watermark, last, maxCount+1); n > 1 {
		f.From, f.Count, f.AtLeast = w.Watermark, min(n, maxCount), n > maxCount
	}
	settle(w.Record, f)
}

// passAll settles the ticks up to last, which no replica runs: ticks of a pause as skipped, the others as left says. It returns
// false if the write has no room for all.
func (w *write) passAll(last time.Time, left fate, pauses []record.Span) bool {
	for through := w.Watermark; through.Before(last); {
		if w.full() {
			return false
		}
		from, to := nextPause(through, last, pauses)
		w.passOutside(from, left)
		w.pass(w.Ticks.Last(to), event.Skipped, Paused)
		through = to
	}
	return true
}

// passOutside settles the ticks up to an instant, which came due in no pause. Those that have waited for a slot of their group are
// skipped.
func (w *write) passOutside(last time.Time, left fate) {
	if waited := left.waited; !waited.To.IsZero() {
		w.pass(w.Ticks.Last(instant.Earlier(waited.From, last)), left.status, left.reason)
		w.pass(w.Ticks.Last(instant.Earlier(waited.To, last)), event.Skipped, "group "+w.Group)
	}
	w.pass(w.Ticks.Last(last), left.status, left.reason)
}

// settle writes the outcome of a tick or of a range of ticks, and moves the watermark over
// them. The outcome of a manual run settles no tick.
func settle(r *record.Record, f event.Outcome) {
	n := f.Count
	if f.From.IsZero() {
		n = 1
	}
	r.History = append([]event.Outcome{f}, r.History...)
	if f.Status == event.Succeeded {
		r.Succeeded = instant.Later(r.Succeeded, f.End)
	}
	if f.Request != "" {
		return
	}
	r.Counts = counted(r.Counts, f.Status, n)
	switch f.Status {
	case event.Succeeded:
		r.Failures, r.Orders.Spared = 0, 0
	case event.Failed, event.Stalled:
		r.Failures++
	}
	if f.Tick.After(r.Watermark) {
		r.Watermark = f.Tick
		r.Past.Succeeded = LastSuccess(r)
	}
	if back := r.Orders.Returned; back.Order == 0 && !back.Tick.After(r.Watermark) { // nothing of that claim is left to cancel
		r.Orders.Returned = record.Returned{}
	}
}

// counted returns counts of outcomes with some more. The record that this one was cloned from shares the counts.
func counted(counts map[event.Status]int64, status event.Status, n int) map[event.Status]int64 {
	if counts = maps.Clone(counts); counts == nil {
		counts = map[event.Status]int64{}
	}
	counts[status] += int64(n)
	return counts
}

// LastSuccess returns the newest tick that has succeeded, as far as the record shows, zero if none
// has. Manual runs, and singletons, have no tick. The field may be missing, or older than what
// History has: a program that does not know it leaves it as it is.
func LastSuccess(r *record.Record) time.Time {
	last := r.Past.Succeeded
	for i := range r.History {
		if f := &r.History[i]; f.Status == event.Succeeded && f.Request == "" {
			last = instant.Later(last, f.Tick)
		}
	}
	return last
}

// settleRun is settle for the outcome of the last run.
func (w *write) settleRun(f event.Outcome) {
	settle(w.Record, f)
	switch {
	case !w.CountsByHand:
	case IsFailure(&f):
		w.Failures++
	case f.Status == event.Succeeded:
		w.Failures = 0
	}
}

// IsFailure reports whether an outcome of work that is to be done once is a failure: also the death of
// its runner is one, and a stop is none.
func IsFailure(o *event.Outcome) bool {
	return o.Status == event.Failed || isDeath(o.Status, o.Reason)
}

// LastOutcome returns the outcome of the last run.
func LastOutcome(r *record.Record, status event.Status, reason string) event.Outcome {
	return event.Outcome{Tick: r.Run.Tick, Request: r.Run.Request, Status: status, Reason: reason, Attempt: r.Run.Attempt,
		Token: r.Token, Replica: r.Run.Replica, Start: begun(r), End: r.Run.Finished}
}

// OutcomeOfRequest returns the outcome of a manual run, if the record has it. A run whose lease has ended has none before some
// replica has settled it: its runner may only have been cut off, and write the outcome yet.
func OutcomeOfRequest(r *record.Record, request string, lease store.LeaseState) (event.Outcome, bool) {
	i := slices.IndexFunc(r.History, func(f event.Outcome) bool { return f.Request == request })
	switch {
	case i >= 0:
		f := r.History[i]
		if f.Token == r.Token && r.Run.Error != "" { // the history keeps only the beginning of the error
			f.Reason = r.Run.Error
		}
		return f, true
	case r.Run.Request != request, r.Run.Status == event.Running && !lease.Live():
		return event.Outcome{}, false
	}
	return LastOutcome(r, r.Run.Status, r.Run.Error), true
}

// endReason returns why the last run is over, which has written no outcome. A lease that was seen
// broken was ended by an operator, unless the run beats: then a replica may have broken it.
func endReason(v View) string {
	r := v.Record
	switch {
	case !r.Run.Unlocked.At.IsZero():
		return "unlocked by " + r.Run.Unlocked.By
	case v.Break.ByOperator || v.State == store.Broken && r.Beats() == 0:
		return "unlocked"
	}
	return "its runner died"
}

// lateCreate is how long a create may take to arrive: its caller has given it up before.
const lateCreate = time.Minute

// OlderThan reports whether r, which was read later than before, cannot have followed it:
// tokens and watermarks never go back, so a person has put back an old version.
//
// A create may arrive late. If the entry was deleted meanwhile, this is a new entry though its date is older than that of the entry
// that was deleted. No run was claimed in that one, so nothing of it is lost.
func OlderThan(r, before *record.Record) bool {
	if unclaimed := before.Token == before.Created.UnixMicro(); unclaimed && r.Created.Before(before.Created) {
		return before.Created.Sub(r.Created) > lateCreate
	}
	return r.Created.Before(before.Created) ||
		r.Created.Equal(before.Created) && (r.Token < before.Token || r.Watermark.Before(before.Watermark))
}

// begun returns when the run of a record began, as far as it is known: its claim, or the tick that it was armed for.
func begun(r *record.Record) time.Time {
	if r.Run.Armed {
		return instant.Later(r.Run.Claimed, r.Run.Tick)
	}
	return r.Run.Claimed
}

// Bounds are the limits that a record has to keep, or the replica leaves it alone.
type Bounds struct {
	Latest            time.Time     // the latest that the service's clock can show; zero: not known
	Shortest, Longest time.Duration // leases that the store accepts
}

// Unusable returns what is wrong with a record that can be read. A replica that acted upon
// such a record would let the job rest for long, or fail in a way that names no cause.
func Unusable(r *record.Record, b Bounds) error {
	return cmp.Or(fromFuture(r, b), exhausted(r), leaseOutOfBounds(r, b), beatOutOfBounds(r))
}

// fast is how far an instant may be in the future, since clocks differ.
const fast = time.Minute

// fromFuture returns what is wrong with a record that has an instant in the future: the job would
// rest until then. It is right by itself when that instant comes. No program takes the instant
// back before: ticks that were claimed by a clock that was ahead would be claimed once more.
func fromFuture(r *record.Record, b Bounds) error {
	if b.Latest.IsZero() {
		return nil
	}
	if name, at := latest(r); at.After(b.Latest.Add(fast)) {
		return fmt.Errorf("the record's %s %s is in the future: by the store's clock the record is right again from %s on; to run the job before that, "+
			"delete its entry %s/%s while nothing runs it", name, at.Format(time.RFC3339), RightAgain(r).Format(time.RFC3339), r.App, r.Job)
	}
	return nil
}

// RightAgain returns from when on no instant in r is in the future.
func RightAgain(r *record.Record) time.Time {
	_, at := latest(r)
	return at.Add(-fast)
}

// latest returns the latest of the instants in r that cannot lie in the future, and its name.
// Due is a field that can, and Past.Late.Since, as a tick may fail before it is late. So is the end of a run, by a little:
// it is the start and a duration by the clock of its replica, which may be fast.
func latest(r *record.Record) (name string, at time.Time) {
	look := func(n string, t time.Time) {
		if t.After(at) {
			name, at = n, t
		}
	}
	// The number of an order begins with the earliest time that it can have been given.
	lookOrder := func(n string, seq int64) { look(n, time.UnixMicro(seq).UTC()) }
	look("watermark", r.Watermark)
	look("date of creation", r.Created)
	look("start of a replica (since)", r.Definition.Since)
	look("start of a replica that asks (mark)", r.Definition.Mark.Since)
	look("newest tick that has succeeded", r.Past.Succeeded)
	look("newest tick judged", r.Past.Judged)
	look("newest late tick", r.Past.Late.Tick)
	look("time when it was last told to be late", r.Past.Told)
	look("tick", r.Run.Tick)
	look("claim", r.Run.Claimed)
	lookOrder("order of a run", r.Run.Order)
	lookOrder("last order served", r.Orders.Served)
	look("pause of itself", r.Orders.Paused.At)
	look("claim given back", r.Orders.Returned.Tick)
	lookOrder("order given back", r.Orders.Returned.Order)
	lookOrder("backfill", r.Backfill.Seq)
	look("last tick of a backfill", r.Backfill.Through)
	for _, early := range r.Orders.Early {
		lookOrder("order served early", early)
	}
	for _, s := range r.Orders.Pauses {
		look("end of a pause", s.To)
	}
	for _, f := range r.History {
		look("tick in the history", f.Tick)
		look("start of a run in the history", f.Start)
	}
	return name, at
}

// exhausted returns what is wrong with a record whose token is the largest that can be read: no claim can follow it.
func exhausted(r *record.Record) error {
	if r.Token < record.MaxToken {
		return nil
	}
	return fmt.Errorf("the record has the token %d, the largest there is, so nothing can be claimed: correct the record", r.Token)
}

// leaseOutOfBounds returns what is wrong with the lease in a record. Followers acquire the lease of a dead runner for its old
// length, and hold off that long. If the store refuses that length, the refusal looks like an outage. If it is too short, a
// follower starts while a runner still trusts its lease. After the end of a run a short lease does neither.
func leaseOutOfBounds(r *record.Record, b Bounds) error {
	d := time.Duration(r.Run.Lease)
	if d > b.Longest || r.MayRun() && (d < b.Shortest || d%time.Second != 0) {
		return fmt.Errorf("the record has a lease of %s and the store takes whole seconds from %s to %s: another program wrote it, or the limits of the store have changed: correct it in the record", d, b.Shortest, b.Longest)
	}
	return nil
}

// spare is by how many bytes the end of a run may lengthen the record of its claim, in addition to the outcome: statuses that
// are counted for the first time, numbers with more digits, longer dates, a due tick.
const spare = 256

// RoomForOutcome returns why the outcome of the run that r claims might not fit into the
// record, even if shortened as far as possible. Such a run must not start: a lost outcome
// counts as the death of the runner, and under Rerun a tick that has succeeded would run again.
func RoomForOutcome(r *record.Record) error {
	f := r.Clone()
	f.Writer = rand.Text() // only its length counts: the length of the nonce of a write
	f.Run.Finished, f.Run.Progress.At, f.Run.Stopping = r.Run.Claimed, r.Run.Claimed, true
	f.Succeeded, f.Past.Succeeded = r.Run.Claimed, r.Run.Claimed
	if !f.Past.Judged.IsZero() {
		f.Past.Late = record.Late{Since: r.Run.Claimed, Tick: r.Run.Claimed, Count: f.Past.Late.Count + maxCount}
	}
	f.History = []event.Outcome{LastOutcome(&f, event.Succeeded, "")}
	if _, err := f.EncodeWithin(store.MaxRecord - spare); err != nil {
		return fmt.Errorf("it has no room for the outcome of a run: %w", err)
	}
	return nil
}

// beatOutOfBounds returns what is wrong with the beat of the run in r: a replica that acted upon a
// very short one would replace a holder that is alive.
func beatOutOfBounds(r *record.Record) error {
	beat, lease := r.Beats(), time.Duration(r.Run.Lease)
	if !r.MayRun() || r.Beat.Token != r.Token || beat >= record.ShortestBeat && beat <= lease && beat%time.Second == 0 {
		return nil
	}
	return fmt.Errorf("the record has a beat of %s under a lease of %s, and it is whole seconds, at least %s and no more than the lease: another program wrote it: correct it in the record", beat, lease, record.ShortestBeat)
}
