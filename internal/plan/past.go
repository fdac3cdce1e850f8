package plan

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/soloist-go/soloist/internal/instant"
	"github.com/soloist-go/soloist/store"
)

// Stopped is the reason, or its beginning, of a run that a stop has ended. A stop is no death:
// a long run may be stopped by each of many deploys.
const Stopped = "stopped"

// deaths returns how many attempts of the last tick have ended by a death, where a run that
// is still recorded as running counts as one. The number in the record may be from another
// tick, since a program that does not know the field leaves it as it is. So it is at most the
// number of attempts that have ended.
func deaths(r *store.Record) int {
	if r.Run.Status == store.Running {
		return min(r.Run.Deaths, r.Run.Attempt-1) + 1
	}
	return min(r.Run.Deaths, r.Run.Attempt)
}

// open reports whether the tick of the last run waits for another attempt. Its outcome is not
// settled then: the watermark is before it.
func open(r *store.Record) bool {
	return (r.Run.Status == store.Abandoned || r.Run.Status == store.Stalled) && claimed(r).After(r.Watermark)
}

// unsettled reports whether the last run still waits for its outcome or for another attempt,
// so that no other run may take its place in the record.
func unsettled(r *store.Record) bool { return r.Run.Status == store.Running || open(r) }

// claimed returns the last tick that was claimed. It is zero after a manual run, which
// claims no tick.
func claimed(r *store.Record) time.Time {
	if r.Run.Request != "" {
		return time.Time{}
	}
	return r.Run.Tick
}

// Due returns the next tick to run under the definition that wrote r, for a replica that does
// not know this definition. An open tick comes first.
func Due(r *store.Record) time.Time {
	if open(r) && !r.Due.IsZero() {
		return r.Run.Tick
	}
	return r.Due
}

// A write is a record that is about to be written, and how many outcomes it had before. One write settles maxSettled, or a few
// more; the next write goes on. The history has room for twice as many, so that each of them is in the record at some time. Of what
// was there before, orders leave the newest five ticks in the history, where followers read them.
type write struct {
	*store.Record
	had int
}

const maxSettled = 10

func writing(r *store.Record) *write { return &write{r, len(r.History)} }

// full reports whether what is still to be settled is left to the next write.
func (w *write) full() bool { return len(w.History)-w.had >= maxSettled }

// settle writes the outcome of a tick or of a range of ticks, and moves the watermark over
// them. The outcome of a manual run settles no tick.
func settle(r *store.Record, f store.Outcome) {
	n := f.Count
	if f.From.IsZero() {
		n = 1
	}
	r.History = append([]store.Outcome{f}, r.History...)
	if f.Status == store.Succeeded {
		r.Succeeded = instant.Later(r.Succeeded, f.End)
	}
	if f.Request != "" {
		return
	}
	counts := maps.Clone(r.Counts) // the record that this one was cloned from shares them
	if counts == nil {
		counts = map[store.Status]int64{}
	}
	counts[f.Status] += int64(n)
	r.Counts = counts
	switch f.Status {
	case store.Succeeded:
		r.Failures, r.Orders.Spared = 0, 0
	case store.Failed, store.Stalled:
		r.Failures++
	}
	if f.Tick.After(r.Watermark) {
		r.Watermark = f.Tick
		r.Past.Succeeded = LastSuccess(r)
	}
	if back := r.Orders.Returned; back.Order == 0 && !back.Tick.After(r.Watermark) { // nothing of that claim is left to cancel
		r.Orders.Returned = store.Returned{}
	}
}

// LastSuccess returns the newest tick that has succeeded, as far as the record shows, zero if none
// has. Manual runs, and singletons, have no tick. The field may be missing, or older than what
// History has: a program that does not know it leaves it as it is.
func LastSuccess(r *store.Record) time.Time {
	last := r.Past.Succeeded
	for i := range r.History {
		if f := &r.History[i]; f.Status == store.Succeeded && f.Request == "" {
			last = instant.Later(last, f.Tick)
		}
	}
	return last
}

// settleRun is settle for the outcome of the last run.
func (p *Policy) settleRun(r *store.Record, f store.Outcome) {
	settle(r, f)
	switch {
	case !p.CountsByHand:
	case IsFailure(&f):
		r.Failures++
	case f.Status == store.Succeeded:
		r.Failures = 0
	}
}

// IsFailure reports whether an outcome of work that is to be done once is a failure: also the death of
// its runner is one, and a stop is none.
func IsFailure(o *store.Outcome) bool {
	switch o.Status {
	case store.Failed, store.Stalled:
		return true
	case store.Abandoned:
		return !strings.HasPrefix(o.Reason, Stopped)
	}
	return false
}

// pass settles the ticks up to last, which no replica runs, with one outcome.
func (p *Policy) pass(r *store.Record, last time.Time, status store.Status, reason string) {
	f := store.Outcome{Tick: last, Status: status, Reason: reason}
	if n := p.Ticks.Count(r.Watermark, last, maxCount+1); n > 1 {
		f.From, f.Count, f.AtLeast = r.Watermark, min(n, maxCount), n > maxCount
	}
	settle(r, f)
}

// LastOutcome returns the outcome of the last run.
func LastOutcome(r *store.Record, status store.Status, reason string) store.Outcome {
	return store.Outcome{Tick: r.Run.Tick, Request: r.Run.Request, Status: status, Reason: reason, Attempt: r.Run.Attempt,
		Token: r.Token, Replica: r.Run.Replica, Start: begun(r), End: r.Run.Finished}
}

// OutcomeOfRequest returns the outcome of a manual run, if the record has it. A run whose
// lease has ended has none before some replica has settled it: its runner may only have been
// cut off, and write the outcome yet.
func OutcomeOfRequest(r *store.Record, request string, lease store.LeaseState) (store.Outcome, bool) {
	i := slices.IndexFunc(r.History, func(f store.Outcome) bool { return f.Request == request })
	switch {
	case i >= 0:
		f := r.History[i]
		if f.Token == r.Token && r.Run.Error != "" { // the history keeps only the beginning of the error
			f.Reason = r.Run.Error
		}
		return f, true
	case r.Run.Request != request, r.Run.Status == store.Running && !lease.Live():
		return store.Outcome{}, false
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
func OlderThan(r, before *store.Record) bool {
	if unclaimed := before.Token == before.Created.UnixMicro(); unclaimed && r.Created.Before(before.Created) {
		return before.Created.Sub(r.Created) > lateCreate
	}
	return r.Created.Before(before.Created) ||
		r.Created.Equal(before.Created) && (r.Token < before.Token || r.Watermark.Before(before.Watermark))
}

// begun returns when the run of a record began, as far as it is known: its claim, or the
// tick that it was armed for.
func begun(r *store.Record) time.Time {
	if r.Run.Armed {
		return instant.Later(r.Run.Claimed, r.Run.Tick)
	}
	return r.Run.Claimed
}
