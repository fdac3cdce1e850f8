package check

import (
	"slices"
	"strings"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/store"
)

// The invariants about the record: what is claimed, and what becomes of ticks.

// A start is what can be claimed once.
type start struct {
	tick    int64
	request string
	attempt int
}

// claims: a tick's attempt is claimed once; attempts are numbered from one
// without gaps, and each has a lease of its own; and each run has a claim,
// which the service has taken before.
func claims(l *Log, bad report) {
	for _, job := range l.index.entries {
		byToken, seen := map[int64]*Event{}, map[start]*Event{}
		var last *Event
		for _, e := range l.claimed(job) {
			r := e.Record
			if e.backfillOf() != 0 && byToken[r.Token] == nil { // backfilledInOrder looks at its attempts
				byToken[r.Token] = e
				continue
			}
			byToken[r.Token] = e
			s := start{r.Run.Tick.UnixNano(), r.Run.Request, r.Run.Attempt}
			if old := seen[s]; old != nil && !r.Run.Tick.IsZero() && !l.forgot(job, old.Time, e.Time) {
				bad(e.Time, "%s claims tick %s of %s, attempt %d, that %s had claimed", e.Replica, TimeOfDay(r.Run.Tick), job, r.Run.Attempt, old.Replica)
			}
			if r.Run.Attempt > 1 && (last == nil || last.Record.Run.Attempt != r.Run.Attempt-1 || !last.Record.Run.Tick.Equal(r.Run.Tick) || last.Lease == e.Lease) {
				bad(e.Time, "%s claims tick %s of %s, attempt %d, and the claim before is another", e.Replica, TimeOfDay(r.Run.Tick), job, r.Run.Attempt)
			}
			seen[s], last = e, e
		}
		tried := map[[3]int64]bool{}
		for _, r := range l.runs(job) {
			e, try := byToken[r.Token], [3]int64{r.Token, int64(r.Try)}
			if r.backfills() { // its claim may have several ticks
				try[2] = r.Tick.UnixNano()
			}
			switch {
			case e == nil || e.Time.After(r.Time):
				bad(r.Time, "%s begins, and was not claimed", r.name())
			case e.Replica != r.Replica || !e.claims(&r):
				bad(r.Time, "%s begins, and the claim of that token is of %s by %s", r.name(), TimeOfDay(e.Record.Run.Tick), e.Replica)
			case tried[try]:
				bad(r.Time, "%s begins again with try %d", r.name(), r.Try)
			}
			tried[try] = true
		}
	}
}

// dead: a run is settled by another replica's claim only when its context has
// ended, and by one of its own replica only when it has returned.
func dead(l *Log, bad report) {
	for _, job := range l.index.entries {
		tries := map[int64][]*Event{}
		for i, r := range l.runs(job) {
			tries[r.Token] = append(tries[r.Token], &l.runs(job)[i])
		}
		var last *Event
		for _, e := range l.claimed(job) {
			if last != nil && last.Replica == e.Replica {
				l.wantOver(tries[last.Record.Token], e, bad)
			}
			if last != nil && last.Replica != e.Replica {
				for _, r := range tries[last.Record.Token] {
					to := l.believed(r)
					if f := l.asleep(r, to); f != nil && !to.After(f.End.Add(noticed)) {
						to = f.Time
					}
					if e.Time.Before(to) && r.Time.Before(e.Time) && !l.strange(job, r, e) {
						bad(e.Time, "%s claims %s with token %d, and the context of %s lives until %s", e.Replica, job, e.Record.Token, r.name(), TimeOfDay(to))
					}
				}
			}
			last = e
		}
	}
}

// wantOver checks that the runs of a replica have returned when it claims the next one. Who runs by hand does not know of them.
func (l *Log) wantOver(runs []*Event, e *Event, bad report) {
	if e.Record.Run.Request != "" && e.backfillOf() == 0 {
		return
	}
	for _, r := range runs {
		if r.Replica == e.Replica && (r.Request == "" || r.backfills()) && r.Time.Before(e.Sent) && (r.End.IsZero() || r.End.After(e.Sent)) {
			bad(e.Time, "%s claims %s with token %d, and %s goes on until %s", e.Replica, e.Job, e.Record.Token, r.name(), TimeOfDay(r.End))
		}
	}
}

// tokens: each claim has a larger token than all claims before, also of entries
// that were deleted since, and no other write changes the token of the entry, nor
// what was claimed with it: unless it is taken back, a run that has ended does not
// begin again, and stays that of its tick.
func tokens(l *Log, bad report) {
	for _, job := range l.index.entries {
		var entry, most int64 // the token in the entry, and the largest that was claimed
		var last *store.Record
		for _, e := range l.writes(job) {
			r := e.Record
			if r == nil {
				continue
			}
			switch {
			case e.Replica == Operator || e.Op == "create" || r.Token == entry:
			case e.Op == "take back" && r.Token > most:
				most = r.Token // of a claim that the service has not taken
			case r.Run.Status != store.Running:
				bad(e.Time, "%s writes %s with the new token %d, and claims nothing", e.Replica, job, r.Token)
			case r.Token <= most:
				bad(e.Time, "%s claims %s with token %d after %d", e.Replica, job, r.Token, most)
			default:
				most = r.Token
			}
			if last != nil && r.Token == last.Token && e.Replica != Operator && e.Op != "create" && e.Op != "take back" {
				keepsClaim(e, last, bad)
			}
			if entry, last = r.Token, r; e.Op == "take back" || e.Replica == Operator {
				last = nil
			}
		}
	}
}

// keepsClaim checks that a write under the token of the record before is about the
// same run.
func keepsClaim(e *Event, last *store.Record, bad report) {
	switch r := e.Record; {
	case !r.Run.Tick.Equal(last.Run.Tick) || r.Run.Attempt != last.Run.Attempt:
		bad(e.Time, "%s writes tick %s of %s, attempt %d, under the token of tick %s", e.Replica, TimeOfDay(r.Run.Tick), e.Job, r.Run.Attempt, TimeOfDay(last.Run.Tick))
	case r.Run.Status == store.Running && last.Run.Status != store.Running:
		bad(e.Time, "%s writes that the run of %s with token %d has begun again", e.Replica, e.Job, r.Token)
	}
}

// ledger: the watermark never moves back; of the ticks that it passes, each
// gets one outcome, alone or in a range; and what is written has a record.
func ledger(l *Log, bad report) {
	for _, job := range l.index.jobs {
		var last *store.Record
		for _, e := range l.writes(job) {
			r := e.Record
			if e.Replica == Operator {
				continue
			}
			if r == nil {
				bad(e.Time, "the %s of %s by %s leaves no record", e.Op, job, e.Replica)
				continue
			}
			d := l.definition(e.Replica, job)
			if last == nil || e.Op == "create" {
				if e.Op == "create" && r.Watermark.After(e.Time.Add(madeAhead)) {
					bad(e.Time, "%s makes the entry of %s with the watermark %s", e.Replica, job, TimeOfDay(r.Watermark))
				}
				last = r
				continue
			}
			if r.Watermark.Before(last.Watermark) {
				bad(e.Time, "%s moves the watermark of %s back from %s to %s", e.Replica, job, TimeOfDay(last.Watermark), TimeOfDay(r.Watermark))
			} else if d != nil && d.Every > 0 {
				settled(d, func() *Definition { return l.definitionBefore(job, e) }, last, r, func(format string, args ...any) { bad(e.Time, e.Replica+" writes "+job+": "+format, args...) })
			}
			last = r
		}
	}
}

// hasTicks reports whether a definition that is known has ticks after from, up to to.
func (d *Definition) hasTicks(from, to time.Time) bool {
	return d != nil && d.Every > 0 && d.count(from, to) > 0
}

// madeAhead is by how much the watermark of an entry may be ahead of the time at which that is made: the service's clock shows
// seconds, and a first token may wait for one of the next.
const madeAhead = 4 * time.Second

// settled checks what one write says of the ticks between two watermarks. It may bring another definition into force than the
// one before, which takes a while to find.
func settled(d *Definition, before func() *Definition, old, now *store.Record, bad func(string, ...any)) {
	news := slices.DeleteFunc(news(old.History, now.History), func(f store.Outcome) bool { return f.Request != "" || f.Tick.IsZero() })
	mark := old.Watermark
	for _, f := range slices.Backward(news) {
		switch from, n := mark, d.count(mark, f.Tick); {
		case !f.From.IsZero() && !f.From.Equal(from):
			bad("the range after %s does not begin at the watermark %s", TimeOfDay(f.From), TimeOfDay(from))
		case !f.From.IsZero() && !exact(&f, n) && (f.Count > 0 || old.Definition.Spec == now.Definition.Spec):
			bad("the range from %s to %s counts %d ticks of %d, at least: %t", TimeOfDay(f.From), TimeOfDay(f.Tick), f.Count, n, f.AtLeast)
		case f.From.IsZero() && !f.Tick.After(mark):
			bad("%s had its outcome when it got %s", TimeOfDay(f.Tick), f.Status)
		case f.From.IsZero() && d.count(mark, f.Tick.Add(-1)) > 0 && old.Definition.Spec == now.Definition.Spec:
			bad("ticks between %s and %s have no fate", TimeOfDay(mark), TimeOfDay(f.Tick))
		case f.From.IsZero() && d.count(mark, f.Tick.Add(-1)) > 0 && before().hasTicks(mark, f.Tick.Add(-1)):
			bad("ticks between %s and %s have no fate, by either definition", TimeOfDay(mark), TimeOfDay(f.Tick))
		}
		if f.Tick.After(mark) {
			mark = f.Tick
		}
	}
	if !mark.Equal(now.Watermark) {
		bad("the watermark is at %s, and the settled end at %s", TimeOfDay(now.Watermark), TimeOfDay(mark))
	}
}

// news is what stands in front of the old history in the new one, of which the
// oldest may have been cut off. The end of a run may be told later.
func news(old, now []store.Outcome) []store.Outcome {
	same := func(a, b store.Outcome) bool {
		a.End, b.End = time.Time{}, time.Time{}
		return a == b
	}
	for n := range now {
		rest := now[n:]
		if len(rest) <= len(old) && slices.EqualFunc(rest, old[:len(rest)], same) {
			return slices.Clone(now[:n])
		}
	}
	return slices.Clone(now)
}

// outcomes: a run's outcome is given up only when somebody else, perhaps a run
// by hand on the same replica, has touched the lease or the entry since the
// claim, or when the store answers and does not take it. A replica that stops, or is on a
// call that ends, need not try that long.
func outcomes(l *Log, bad report) {
	for _, job := range l.index.jobs {
		for _, e := range l.of(job, Said) {
			if !strings.HasPrefix(e.Note, "the outcome was ") || e.Request != "" {
				continue
			}
			claim := l.claimOf(job, e.Token)
			hurried := slices.ContainsFunc(l.of("", Stop), func(s *Event) bool { return s.Replica == e.Replica && s.Time.Before(e.Time) }) ||
				slices.ContainsFunc(l.of("", Up), func(u *Event) bool { return u.Replica == e.Replica && u.Cause != "" })
			if claim == nil || hurried || claim.Record.Run.Request != "" || l.notTaken(job, claim, e) || l.lapsedTwice(job, claim, e) {
				continue
			}
			since := claim.Time
			if t := l.termOf(job, e.Token); t != nil {
				since = t.acquired()
			}
			if !slices.ContainsFunc(l.of(job, Request), func(o *Event) bool {
				return o.OK() && o.Op != "read" && (o.Replica != e.Replica || o.Lease != claim.Lease) && o.Time.After(since) && o.Time.Before(e.Time)
			}) {
				bad(e.Time, "%s gives up the outcome of %s, token %d, and nobody else has touched the entry", e.Replica, job, e.Token)
			}
		}
	}
}

// notTaken reports whether the store has taken no outcome under the claim for six lengths
// of its lease when the replica says that it gives it up, has answered each read of the
// last two, and has not refused it the right to write then. The clocks of replicas may be
// fast.
func (l *Log) notTaken(job string, claim, gaveUp *Event) bool {
	length := time.Duration(claim.Record.Run.Lease) * 97 / 100
	var first *Event
	for _, o := range l.of(job, Request) {
		if o.Replica != gaveUp.Replica || o.Sent.Before(claim.Sent) || o.Time.After(gaveUp.Time) {
			continue
		}
		late := gaveUp.Time.Sub(o.Sent) < 2*length
		switch {
		case o.Op == "read" && late && (!o.OK() || o.Heard.IsZero()):
			return false
		case o.Op != "finish" || o.Lease != claim.Lease || o.Record != nil && o.Record.Token != claim.Record.Token:
		case o.OK() || late && o.Cause == string(ReadOnly):
			return false
		case first == nil:
			first = o
		}
	}
	return first != nil && gaveUp.Time.Sub(first.Sent) >= 6*length
}

// lapsedTwice reports whether the lease of the claim had expired for the second time when the replica gave the outcome
// up. Once it has tried for four lengths of the lease it renews no more, and revives an expired lease once. The clocks of
// replicas may be fast.
func (l *Log) lapsedTwice(job string, claim, gaveUp *Event) bool {
	patience := 4 * time.Duration(claim.Record.Run.Lease) * 97 / 100
	var first, revived, refused *Event
	for _, o := range l.of(job, Request) {
		if o.Lease != claim.Lease || o.Replica != gaveUp.Replica || o.Time.After(gaveUp.Time) {
			continue
		}
		switch finish := o.Op == "finish" && o.Record != nil && o.Record.Token == claim.Record.Token; {
		case finish && first == nil:
			first = o
		case o.Op == "renew" && o.OK() && first != nil && o.Sent.Sub(first.Sent) >= patience:
			revived = o
		case finish && o.Code == "LeaseLost":
			refused = o
		}
	}
	return revived != nil && refused != nil && refused.Time.After(revived.Time)
}

// early: no run starts more than a second before its tick, by the service's
// clock, whatever the wall clock of its replica shows, or by what it cannot know of that
// clock since it acquired the lease.
func early(l *Log, bad report) {
	for _, job := range l.index.jobs {
		for _, r := range l.runs(job) {
			if !r.Tick.IsZero() && r.Request == "" && r.Time.Before(r.Tick.Add(-l.earliness(&r))) {
				bad(r.Time, "%s begins %s early", r.name(), r.Tick.Sub(r.Time))
			}
		}
	}
}

// earliness is by how much a run may be early.
func (l *Log) earliness(r *Event) time.Duration {
	if t := l.termOf(r.Job, r.Token); t != nil && t.acquire != nil {
		return t.doubtAt(r.Time)
	}
	return time.Second
}

// order: the ticks of a job are claimed in order.
func order(l *Log, bad report) {
	for _, job := range l.index.jobs {
		var last *Event
		for _, e := range l.claimed(job) {
			if e.Record.Run.Request != "" || e.Record.Run.Tick.IsZero() {
				continue
			}
			if last != nil && e.Record.Run.Tick.Before(last.Record.Run.Tick) && !l.forgot(job, last.Time, e.Time) {
				bad(e.Time, "%s claims tick %s of %s after %s", e.Replica, TimeOfDay(e.Record.Run.Tick), job, TimeOfDay(last.Record.Run.Tick))
			}
			last = e
		}
	}
}

// once: a tick of which the record has said that it succeeded never starts
// again. A machine that is suspended between the look at the deadline and a
// further try begins that when it goes on, though another has run the tick.
func once(l *Log, bad report) {
	for _, job := range l.index.jobs {
		done := map[start]*Event{}
		for _, e := range l.writes(job) {
			if r := e.Record; r != nil && r.Run.Status == store.Succeeded && !r.Run.Tick.IsZero() {
				s := start{r.Run.Tick.UnixNano(), r.Run.Request, 0}
				if done[s] == nil {
					done[s] = e
				}
			}
		}
		for _, r := range l.runs(job) {
			e := done[start{r.Tick.UnixNano(), r.Request, 0}]
			if e != nil && r.Time.After(e.Time) && !l.late(&r, e) && !l.forgot(job, e.Time, r.Time) {
				bad(r.Time, "%s begins, and the tick had succeeded at %s", r.name(), TimeOfDay(e.Time))
			}
		}
	}
}

// late reports whether a run begins after the success of another because its machine was
// suspended meanwhile: as a further try, or as a first one that was told to start before.
func (l *Log) late(r, success *Event) bool {
	claim := l.claimOf(r.Job, r.Token)
	if claim == nil || success.Record.Token <= r.Token {
		return false
	}
	f := l.frozen(r.Replica, claim.Time, r.Time)
	if f == nil || !f.Time.Before(success.Time) || r.Time.After(f.End.Add(moment)) {
		return false
	}
	of := func(e *Event) bool { // a backfill has several ticks under one token
		return e.Replica == r.Replica && e.Token == r.Token && e.Tick.Equal(r.Tick) && e.Time.Before(f.Time)
	}
	told := slices.ContainsFunc(l.of(r.Job, Said), func(e *Event) bool { return of(e) && strings.HasPrefix(e.Note, "run started") })
	begun := slices.ContainsFunc(l.of(r.Job, Ran), of)
	return r.Try > 1 || told && !begun
}

// policies: under Abandon a tick is started once at most; under Rerun
// until five of its runners have died.
func policies(l *Log, bad report) {
	for _, job := range l.index.jobs {
		starts := map[start][]*Event{}
		for _, e := range l.claimed(job) {
			r, d := e.Record, l.definition(e.Replica, job)
			if r.Run.Tick.IsZero() || d == nil {
				continue
			}
			s := start{r.Run.Tick.UnixNano(), r.Run.Request, 0}
			before := starts[s]
			if len(before) > 0 && l.forgot(job, before[len(before)-1].Time, e.Time) {
				before = nil // the entry that was made then knows of none of them
			}
			starts[s] = append(before, e)
			if len(before) == 0 {
				continue
			}
			deaths := len(slices.DeleteFunc(slices.Clone(before), l.stopped))
			if d.Interrupted != soloist.Rerun || r.Run.Request != "" && e.backfillOf() == 0 || deaths >= 5 {
				bad(e.Time, "%s starts tick %s of %s for the %dth time, after %d deaths", e.Replica, TimeOfDay(r.Run.Tick), job, len(before)+1, deaths)
			}
		}
	}
}

// stopped reports whether a claimed run was ended by a stop: its own replica has
// abandoned it, and neither by the loss of its lease nor by a stall.
func (l *Log) stopped(claim *Event) bool {
	lost := slices.ContainsFunc(l.runs(claim.Job), func(r Event) bool {
		lost := r.Cause == store.ErrLost.Error() || r.Cause != soloist.ErrStopped.Error() && strings.HasPrefix(r.Note, store.ErrLost.Error())
		return r.Token == claim.Record.Token && (lost || r.Cause == soloist.ErrStalled.Error())
	})
	return !lost && slices.ContainsFunc(l.writes(claim.Job), func(e *Event) bool {
		r := e.Record
		return e.Lease == claim.Lease && r != nil && r.Token == claim.Record.Token && r.Run.Status == store.Abandoned
	})
}
