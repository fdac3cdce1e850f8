package plan

import (
	"slices"
	"time"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/internal/instant"
	"github.com/soloist-go/soloist/internal/record"
)

// A follower is a job whose ticks are its predecessors' ticks. A tick of a follower is due once the run of each predecessor
// for that tick has succeeded or, under AfterAny, has its outcome.
//
//   - The outcomes come from the records of the predecessors, up to their watermarks. An outcome
//     there is final, so an old reading of such a record is never wrong: it only knows less.
//   - The record of the follower alone says which ticks the follower has run. So each of them
//     runs once, whatever becomes of its predecessors later.
//   - Manual runs of a predecessor settle no tick, so they count for nothing here.
//   - A tick for which some predecessor did not succeed is skipped. If its outcome has left the
//     record of the predecessor, the tick is missed: a success is never guessed.
//   - A tick that came due in a pause of the follower is skipped for the pause, whatever the outcomes of
//     the predecessors are: they may have been paused too, or their records may be too short.
//   - Ticks that become due while the follower runs are settled by its next claim, and not at the
//     end of the run, which knows nothing of the predecessors.

// claimAfter is claimDue for a follower. The starting deadline counts from the last outcome that the tick waited for.
func (c *claiming) claimAfter() bool {
	r := &c.next.Record
	all := c.fates(r.Watermark, c.pausesUntil(r, c.v.Control, c.v.Now))
	tick, reason := c.choose(func(yield func(fate) bool) {
		for _, f := range slices.Backward(all) {
			for ; f.status == "" && f.to.After(f.from); f.to = c.Ticks.Last(f.to.Add(-1)) {
				if !yield(f) {
					return
				}
				if f.paused {
					break
				}
			}
		}
	}, c.v.Now)
	w, passed := c.writing(), c.joined(all, tick)
	for _, f := range passed {
		switch {
		case w.full():
			return true
		case f.status != "":
			w.pass(f.to, f.status, f.reason)
		default: // those that might be run
			w.passOutside(f.to, fate{status: event.Missed, reason: reason, waited: c.v.Waited})
		}
	}
	return c.claimChosen(tick, len(passed) > 0)
}

// joined returns the fates of the ticks before one, or all of them if that is zero, with one fate
// for neighbours that are settled alike: the history has room for few.
func (c *claiming) joined(all []fate, before time.Time) (out []fate) {
	for _, f := range all {
		if f.paused {
			f.status, f.reason = event.Skipped, Paused
		}
		if !before.IsZero() {
			f.to = instant.Earlier(f.to, c.Ticks.Last(before.Add(-1)))
		}
		n := len(out) - 1
		switch {
		case !f.to.After(f.from):
			return out
		case n >= 0 && out[n].status == f.status && out[n].reason == f.reason:
			out[n].to = f.to
		default:
			out = append(out, f)
		}
	}
	return out
}

// A Predecessor is what is known of a job that a follower waits for.
type Predecessor struct {
	Job       string
	Watermark time.Time       // of its record; zero: the record is not known
	History   []event.Outcome // of its record
	Seen      []Seen          // oldest first: the time of outcomes that have no end; never changed in place
}

// A Seen says when outcomes without an end were first seen.
type Seen struct {
	Through time.Time // of the ticks after the Seen before, up to here
	At      time.Time
}

// Updated returns what is known of the predecessor by its record as it is now.
func (b Predecessor) Updated(r *record.Record, now time.Time) Predecessor {
	if r.Watermark.Before(b.Watermark) { // of an entry that was created again
		b.Watermark, b.Seen = time.Time{}, nil
	}
	isNew := func(o event.Outcome) bool { return o.Request == "" && o.End.IsZero() && o.Tick.After(b.Watermark) }
	if slices.ContainsFunc(r.History, isNew) {
		b.Seen = slices.Concat(b.Seen[max(0, len(b.Seen)+1-maxBacklog):], []Seen{{r.Watermark, now}})
	}
	b.Watermark, b.History = r.Watermark, slices.Clone(r.History)
	return b
}

// seen returns when the outcome of a tick was seen that has no end, and until which tick it is the same.
func (b *Predecessor) seen(tick time.Time) (at, through time.Time) {
	for _, s := range b.Seen {
		if !s.Through.Before(tick) {
			return s.At, s.Through
		}
	}
	return time.Time{}, b.Watermark
}

// DecidedBy returns the instant up to which all ticks of all predecessors have outcomes.
func DecidedBy(before []Predecessor) (by time.Time) {
	for i, b := range before {
		if i == 0 || b.Watermark.Before(by) {
			by = b.Watermark
		}
	}
	return by
}

// notBefore returns the instant after which the ticks of a job count that is new, or has a changed definition: a follower
// has no tick that comes before the first of a new predecessor.
func notBefore(from time.Time, before []Predecessor) time.Time {
	for _, b := range before {
		if o, _ := b.outcome(b.Watermark); o == nil { // it has settled no tick yet
			from = instant.Later(from, b.Watermark)
		}
	}
	return from
}

// outcome returns the outcome of a tick up to the watermark, nil if the record does not have it
// any more, and until when the ticks that follow have the same.
func (b *Predecessor) outcome(tick time.Time) (o *event.Outcome, until time.Time) {
	until = b.Watermark
	for i := range b.History {
		o := &b.History[i]
		switch s := spanOf(o); {
		case o.Request != "":
		case isIn(tick, s):
			return o, s.To
		case !s.From.Before(tick): // its ticks come after From
			until = instant.Earlier(until, s.From)
		}
	}
	return nil, until
}

// A fate is what the outcomes of the predecessors make of some ticks in a row.
type fate struct {
	from, to time.Time    // the ticks after one instant and up to the other
	paused   bool         // the follower was paused when they came due
	status   event.Status // of ticks that are not to be run; empty: they may be
	reason   string
	since    time.Time   // they may be run from then on
	waited   record.Span // of ticks that are left: those that waited for a slot of their group
}

// fates returns what is decided of the ticks after an instant, in their order. Those of a pause have fates of their own.
func (c *claiming) fates(after time.Time, pauses []record.Span) (all []fate) {
	by := instant.Earlier(c.v.Now, DecidedBy(c.v.Before))
	for tick := c.Ticks.Next(after); !tick.IsZero() && !tick.After(by); tick = c.Ticks.Next(after) {
		f := c.fateOf(tick)
		from, to := nextPause(tick.Add(-1), instant.Earlier(f.to, by), pauses)
		if f.paused = tick.After(from); !f.paused {
			to = from
		}
		f.from, f.to = after, c.Ticks.Last(to)
		all, after = append(all, f), f.to
	}
	return all
}

// fateOf returns what is decided of a tick, and in to until when it is the same. If several
// predecessors keep the tick from being run, the first of them is the reason.
func (c *claiming) fateOf(tick time.Time) (f fate) {
	f.to = c.v.Before[0].Watermark
	for _, b := range c.v.Before {
		f.to = instant.Earlier(f.to, b.Watermark)
		o, until := b.outcome(tick)
		f.to = instant.Earlier(f.to, until)
		switch {
		case f.status != "":
		case o == nil:
			f.status, f.reason = event.Missed, "the outcome of "+b.Job+" is not known"
		case o.Status != event.Succeeded && !c.AfterAny:
			f.status, f.reason = event.Skipped, b.Job+" "+string(o.Status)
		case o.End.IsZero():
			at, through := b.seen(tick)
			f.since, f.to = instant.Later(f.since, at), instant.Earlier(f.to, through)
		default:
			f.since = instant.Later(f.since, o.End)
		}
	}
	return f
}

// lateStart reports whether it is too late for a further attempt of the last run. For a follower
// the deadline counts from what its tick waited for; if that is not known, from the last claim.
func (c *claiming) lateStart() bool {
	from := c.v.Record.Run.Tick
	if c.Follows() {
		from = c.v.Record.Run.Claimed
		if all := c.fates(c.v.Record.Run.Tick.Add(-1), nil); len(all) > 0 && all[0].status == "" {
			from = all[0].since
		}
	}
	return c.Late.Start > 0 && c.v.Now.Sub(from) > c.Late.Start
}

const (
	minAwait = 300 * time.Millisecond
	maxAwait = 10 * time.Second
)

// AwaitPace returns the pause between two reads of a predecessor, so long after its tick. The
// longer a run has taken, the less it matters that its end is seen a little later.
func AwaitPace(sinceTick time.Duration) time.Duration {
	return min(max(sinceTick/8, minAwait), maxAwait)
}

// Awaits returns the first tick that has come and whose predecessors have no outcome for it, as far as is known here: then
// their records are to be read. It returns false if there is none, or if nothing can be run now whatever those records say.
func (p *Policy) Awaits(v View) (tick time.Time, ok bool) {
	if !p.Follows() || p.Outdated(v) || v.IsPaused() || v.runs() {
		return time.Time{}, false
	}
	tick = p.Ticks.Next(instant.Later(begunThrough(v.Record), DecidedBy(v.Before)))
	return tick, !tick.IsZero() && !tick.After(v.Now)
}
