package alert

import (
	"cmp"
	"fmt"
	"time"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/host/internal/format"
	"github.com/soloist-go/soloist/internal/desk"
	"github.com/soloist-go/soloist/internal/record"
)

// fineAfter is for how long a singleton has to run until it is well again.
const fineAfter = 10 * time.Minute

// version orders the states of a record: by its run, and by how far that is.
func version(r *record.Record) int64 {
	v := 4 * r.Token
	switch {
	case !r.MayRun():
		return v + 2
	case r.Run.Status == event.Stalled:
		return v + 1
	}
	return v
}

// about is the place of a run among the versions of its record.
func about(token int64) int64 { return 4*token + 1 }

// ofRecord returns what follows from the record alone.
func ofRecord(st *desk.Status, most int, now time.Time) []condition {
	r := &st.Record
	all := []condition{failures(st, most, now)}
	all = append(all, badEnd(st, Stalled, event.Stalled, now)...)
	if !st.Singleton { // a stop always abandons one
		all = append(all, badEnd(st, Abandoned, event.Abandoned, now)...)
	}
	all = append(all, late(st))
	pause := condition{Kind: Paused, On: !r.Orders.Paused.At.IsZero()}
	if pause.On {
		pause.About = about(r.Orders.Paused.Token)
		pause.facts = facts{Text: fmt.Sprintf("has paused itself after %s in a row: resume it when it can succeed", format.Plural(int(r.Failures), "failure")),
			Failures: r.Failures, Token: r.Orders.Paused.Token, Error: r.Run.Error}
	}
	return append(all, pause)
}

// late is about ticks that have not succeeded in time. Such an incident may begin although the record has not been
// written since the previous incident ended, so it counts as newer than the record.
func late(st *desk.Status) condition {
	l := st.Late
	if l.Count == 0 {
		return condition{Kind: Late}
	}
	text := fmt.Sprintf("is late: the tick %s has not succeeded in time", l.Tick.UTC().Format(time.RFC3339))
	if l.Count > 1 {
		text += fmt.Sprintf(", nor have %d before it", l.Count-1)
	}
	return condition{Kind: Late, On: true, About: version(&st.Record) + 1, facts: facts{Tick: l.Tick, Text: text}}
}

// failures is about so many failures in a row. A stall has an incident of its own.
func failures(st *desk.Status, most int, now time.Time) condition {
	r := &st.Record
	c := condition{Kind: Failures, On: r.Failures >= int64(most) && !isFine(st, now)}
	token, last := streak(r.History, most)
	if c.On && token == 0 {
		token = r.Token // the history does not reach back to it
	}
	if token == 0 || last != nil && last.Status == event.Stalled {
		return c
	}
	c.About = about(token)
	times := max(r.Failures, int64(most))
	c.facts = facts{Text: fmt.Sprintf("has failed %d times in a row", times), Failures: times, Error: r.Run.Error, Token: token}
	if times == 1 {
		c.Text = "has failed"
	}
	if last != nil {
		c.facts.Tick, c.facts.Replica, c.facts.Error = last.Tick, last.Replica, cmp.Or(inBrief(last.Reason), r.Run.Error)
	}
	return c
}

// inBrief returns the beginning of a reason: one document has those of all incidents.
func inBrief(reason string) string {
	text := []rune(reason)
	return string(text[:min(len(text), 100)])
}

// streak returns the run by which the newest series of failures reached the number, zero if
// none did, and the last failure of it.
func streak(history []event.Outcome, most int) (token int64, last *event.Outcome) {
	count := 0
	for i := len(history) - 1; i >= 0; i-- { // from the oldest
		f := &history[i]
		switch {
		case f.Request != "":
		case f.Status == event.Succeeded:
			count = 0
		case f.Status == event.Failed, f.Status == event.Stalled:
			if count++; count == most {
				token = f.Token
			}
			if count >= most {
				last = f
			}
		}
	}
	return token, last
}

// badEnd is about the newest run that ended with this status, until a newer run has succeeded.
// If the history has neither, nothing is known.
func badEnd(st *desk.Status, kind Kind, end event.Status, now time.Time) []condition {
	r := &st.Record
	var bad event.Outcome
	if end == event.Stalled && r.Run.Status == end { // an abandoned tick of the record may have another attempt
		bad = event.Outcome{Token: r.Token, Tick: r.Run.Tick, Reason: r.Run.Error, Replica: r.Run.Replica}
	}
	var good int64
	for _, f := range r.History {
		switch {
		case f.Status == end && f.Token > bad.Token:
			bad = f
			bad.Reason = inBrief(f.Reason)
		case f.Status == event.Succeeded:
			good = max(good, f.Token)
		}
	}
	if bad.Token == 0 && good == 0 && !isFine(st, now) {
		return nil
	}
	c := condition{Kind: kind, On: bad.Token > good && !isFine(st, now)}
	if bad.Token > 0 {
		c.About = about(bad.Token)
		c.facts = facts{Text: endWords[kind], Tick: bad.Tick, Token: bad.Token, Error: bad.Reason, Replica: bad.Replica}
	}
	return []condition{c}
}

var endWords = map[Kind]string{
	Stalled:   "has stalled: its run made no progress, or was not healthy",
	Abandoned: "was abandoned: its run did not reach its end",
}

// isFine reports whether a singleton has run for long. It need not return to be well.
func isFine(st *desk.Status, now time.Time) bool {
	r := &st.Record
	return st.Singleton && r.Run.Status == event.Running && st.Lease.Live() && now.Sub(r.Run.Claimed) > fineAfter
}

// unclaimed is about a lease without a claim. Replicas notice it at different times, so it is
// over only if the lease is free, its holder runs, or nothing is due.
func unclaimed(st *desk.Status, now time.Time) []condition {
	c := condition{Kind: Unclaimed, On: st.Occupied != nil}
	if c.On {
		c.About = version(&st.Record)
		c.facts = facts{Text: "does not run: " + st.Occupied.Error(), Tick: st.Next}
	} else if st.Lease.Live() && !st.Record.MayRun() && st.Next.Before(now) {
		return nil
	}
	return []condition{c}
}

// dueSince is since when a replica should have claimed the next tick: now, during a pause.
func dueSince(st *desk.Status, job record.JobControl, now time.Time) time.Time {
	if job.Pause.On(now) {
		return now
	}
	since := st.Next
	ends := []time.Time{job.Resumed.At, job.Pause.Until}
	for _, p := range job.Pauses {
		ends = append(ends, p.To)
	}
	for _, end := range ends {
		if end.After(since) {
			since = end
		}
	}
	return since
}
