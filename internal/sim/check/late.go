package check

import (
	"slices"
	"strings"
	"time"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/store"
)

// The invariants about ticks that have to have succeeded by FinishBy.

// tellsLate is how long a tick may be late until some replica has told so: the longest time between two
// looks of an idle replica, and what a write takes.
const tellsLate = 2 * time.Minute

// doubtfulEnd is by how much the end of a run, as its replica counts it, may differ from the true one.
const doubtfulEnd = 3 * time.Second

// lateTicks: a tick that has not succeeded by FinishBy is told, once, by a replica whose write of that the
// service has taken; one that has succeeded in time, or was skipped on purpose, is not. What the
// record says of late ticks does not count.
func lateTicks(l *Log, bad report) {
	if !l.Emits {
		return
	}
	for _, job := range l.index.jobs {
		told := l.lateEvents(job)
		for i, e := range told {
			d := l.definition(e.Replica, job)
			if d == nil || d.FinishBy == 0 {
				bad(e.Time, "%s tells that %s is late, which has to succeed by no time", e.Replica, job)
				continue
			}
			if early := e.Tick.Add(d.FinishBy).Sub(e.Time); early > doubtfulEnd && d.FinishBy <= 4*d.Every && !l.redefined(d, e.Tick, e.Time) {
				bad(e.Time, "%s tells of %s that tick %s is late, %s before it is", e.Replica, job, TimeOfDay(e.Tick), early)
			}
			if l.inTime(d, e.Tick, e.Time) == yes && !l.cutOff(e) {
				bad(e.Time, "%s tells of %s that tick %s is late, which has succeeded in time", e.Replica, job, TimeOfDay(e.Tick))
			}
			if before := l.toldBefore(told[:i], e); before != nil && !l.unansweredAt(e) && !l.cutOff(e) {
				bad(e.Time, "%s tells of %s that tick %s is late, which %s has told at %s", e.Replica, job, TimeOfDay(e.Tick), before.Replica, TimeOfDay(before.Time))
			}
		}
		l.tellsApart(job, told, bad)
		if d := l.sameEverywhere(job); d != nil && d.FinishBy > 0 && len(l.of(job, Corrupted)) == 0 && !l.forgot(job, time.Time{}, l.end()) && !l.forgot("", time.Time{}, l.end()) {
			l.eachLateIsTold(d, told, bad)
		}
	}
}

// tellsApart finds writes that only tell of late ticks and come less than a minute, as replicas know the
// service's clock, after another one.
func (l *Log) tellsApart(job string, told []*Event, bad report) {
	var before, last *Event
	for _, w := range l.writes(job) {
		alone := before != nil && before.Record != nil && w.Record != nil && w.Op != "finish" && sameButTold(before.Record, w.Record)
		before = w
		if !alone || !slices.ContainsFunc(told, func(e *Event) bool { return e.Replica == w.Replica && e.Time.Equal(w.Heard) }) {
			continue
		}
		if last != nil && w.Time.Sub(l.resolved(last)) < time.Minute-doubtfulEnd && !l.forgot(job, last.Time, w.Time) && !l.spoiltBy(job, w.Time) {
			bad(w.Time, "%s only tells of late ticks of %s, %s after %s has", w.Replica, job, w.Time.Sub(last.Time), last.Replica)
		}
		last = w
	}
}

// resolved is when a replica made up its mind to send a write: its machine may have been suspended since.
func (l *Log) resolved(w *Event) time.Time {
	if f := l.frozen(w.Replica, w.Sent.Add(-time.Second), w.Sent); f != nil {
		return f.Time
	}
	return w.Time
}

// sameButTold reports whether a record differs from the one before in no run, no note of one and no outcome.
func sameButTold(a, b *store.Record) bool {
	same := func(f, g store.Outcome) bool { return f.Tick.Equal(g.Tick) && f.Request == g.Request }
	return a.Token == b.Token && a.Run.Status == b.Run.Status && a.Run.Progress.At.Equal(b.Run.Progress.At) && a.Watermark.Equal(b.Watermark) && slices.EqualFunc(a.History, b.History, same)
}

// lateEvents returns what replicas have told of late ticks of a job.
func (l *Log) lateEvents(job string) (all []*Event) {
	for _, e := range l.of(job, Emitted) {
		if e.Op == string(event.Late) {
			all = append(all, e)
		}
	}
	return all
}

// toldBefore returns which of the events before another one has told of its tick, in a write that the service has
// taken and answered; nil if none has.
func (l *Log) toldBefore(told []*Event, e *Event) *Event {
	mine := l.lastWriteOf(e)
	for _, before := range told {
		if before.Tick.Before(e.Tick) || l.spoiltBy(e.Job, e.Time) || l.forgot(e.Job, time.Time{}, e.Time) {
			continue
		}
		for _, w := range between(l.writes(e.Job), before.Time.Add(-time.Minute), before.Time) {
			if w.Replica == before.Replica && !w.Heard.IsZero() && w.Heard.After(before.Time.Add(-time.Millisecond)) && !w.Heard.After(before.Time) &&
				(mine == nil || mine.Time.After(w.Time)) { // else it was suspended before it could tell
				return before
			}
		}
	}
	return nil
}

// lastWriteOf returns the last write of the replica of an event for its job that was answered by then, nil if
// there is none.
func (l *Log) lastWriteOf(e *Event) (last *Event) {
	for _, w := range l.writes(e.Job) {
		if w.Replica == e.Replica && !w.Heard.IsZero() && !w.Heard.After(e.Time) {
			last = w
		}
	}
	return last
}

// unansweredAt reports whether a write for the job of an event, or the read that follows a write which has failed, was given
// up by its replica just before the event: it may have been taken, so the replica tells what another one may have told.
func (l *Log) unansweredAt(e *Event) bool {
	from := e.Time
	if f := l.frozen(e.Replica, e.Time.Add(-doubtfulEnd), e.Time); f != nil {
		if from = f.Time; e.Time.Before(f.End) {
			return true // the time of a write was up while its replica was suspended, which cannot tell whether it was sent
		}
	}
	return slices.ContainsFunc(l.of(e.Job, Request), func(w *Event) bool {
		lost := w.Heard.IsZero() || l.frozen(w.Replica, w.Sent, w.Heard) != nil // its time was up before the answer was looked at
		asks := w.Record != nil || w.Op == "read"                               // after a write, for what has become of it
		return w.Replica == e.Replica && asks && lost && !w.Sent.After(e.Time) && w.Sent.After(from.Add(-doubtfulEnd))
	})
}

// cutOff reports whether the last write of a replica for the job of an event was not taken, as far as it knows, and
// no call after that was answered which says something of the record: it tells of what that write says, and others may have
// run the job since, and told of it.
func (l *Log) cutOff(e *Event) bool {
	lost := false
	for _, w := range l.of(e.Job, Request) {
		switch {
		case w.Replica != e.Replica || w.Sent.After(e.Time) || w.Op == "release":
		case w.Record != nil:
			lost = w.Heard.IsZero() || w.Status == 0 || w.Status >= 500
		case w.Status > 0 && !w.Heard.IsZero() && w.Status < 500:
			lost = false
		}
	}
	return lost
}

// sameEverywhere is what all replicas were told of the ticks of a job, nil if they were not told the same.
func (l *Log) sameEverywhere(job string) (same *Definition) {
	for replica := range l.Fleet {
		d := l.definition(replica, job)
		switch {
		case d == nil || d.Every == 0 || d.EveryReplica || d.Paused:
			return nil
		case same != nil && (same.Every != d.Every || same.FinishBy != d.FinishBy || same.Limits != d.Limits || same.Follows != d.Follows || same.Shards != d.Shards):
			return nil
		}
		same = d
	}
	return same
}

// A verdict is what is known of a tick.
type verdict int

const (
	no verdict = iota
	yes
	perhaps
)

// inTime reports whether a tick of a job has succeeded by FinishBy, as the service knew at a time.
func (l *Log) inTime(d *Definition, tick, at time.Time) verdict {
	by, v := tick.Add(d.FinishBy), no
	for _, r := range l.runs(d.Name) {
		if r.Request != "" || !r.Tick.Equal(tick) || r.Note != "" || r.End.IsZero() || r.End.After(by.Add(doubtfulEnd)) {
			continue
		}
		if v = max(v, perhaps); l.finished(&r, at) && r.End.Before(by.Add(-doubtfulEnd)) && !l.returnedStalled(&r) && r.Cause != "cancelled" && !l.noteHangs(&r) {
			return yes
		}
	}
	return v
}

// noteHangs reports whether a run returned while a note of its progress had no answer: its replica waits for that before it
// counts the run as over.
func (l *Log) noteHangs(r *Event) bool {
	return slices.ContainsFunc(l.writes(r.Job), func(w *Event) bool {
		return w.Op == "progress" && w.Replica == r.Replica && w.Record.Token == r.Token && w.Heard.IsZero() && w.Sent.Before(r.End)
	})
}

// eachLateIsTold finds ticks of a job that were late and that nobody has told.
func (l *Log) eachLateIsTold(d *Definition, told []*Event, bad report) {
	first, healed := l.firstCreated(d.Name), l.healed()
	if first.IsZero() || healed.IsZero() {
		return
	}
	for tick := d.After(first.Add(3 * time.Second)); tick.Add(d.FinishBy).Before(l.end().Add(-Settling)); tick = d.After(tick) {
		if l.inTime(d, tick, l.end()) != no || l.onPurpose(d.Name, tick) || l.mayBePaused(d.Name, tick) {
			continue
		}
		i := slices.IndexFunc(told, func(e *Event) bool { return !e.Tick.Before(tick) })
		if i < 0 {
			if !l.lateInDoubt(d.Name, tick) {
				bad(tick.Add(d.FinishBy), "nobody tells that tick %s of %s is late", TimeOfDay(tick), d.Name)
			}
			continue
		}
		by := tick.Add(d.FinishBy)
		if told[i].Time.Sub(by) > tellsLate && l.calmAround(d, by, by.Add(tellsLate)) && !l.lateInDoubt(d.Name, tick) {
			bad(told[i].Time, "%s tells that tick %s of %s is late, %s after it was", told[i].Replica, TimeOfDay(tick), d.Name, told[i].Time.Sub(by))
		}
	}
}

// firstCreated is when the entry of a job was made, zero if it never was.
func (l *Log) firstCreated(job string) time.Time {
	for _, e := range l.writes(job) {
		if e.Op == "create" {
			return e.Time
		}
	}
	return time.Time{}
}

// onPurpose reports whether a tick was skipped for a pause or by its job, or cancelled by an operator; other invariants
// see to it that such an outcome is true.
func (l *Log) onPurpose(job string, tick time.Time) bool {
	n := l.toldOf(job, tick)
	if n == nil {
		return false
	}
	switch f := n.outcome; f.Status {
	case store.Skipped:
		return f.Token != 0 || f.Reason == "paused"
	case store.Missed:
		return f.Reason == "the schedule changed"
	default:
		return f.Status == store.Cancelled && !strings.HasPrefix(f.Reason, "replaced by the tick of ")
	}
}

// lateInDoubt reports whether the replica that wrote first that a tick is late was killed before it
// could tell, or got no answer, so that it may have told before of what was not written.
func (l *Log) lateInDoubt(job string, tick time.Time) bool {
	for _, w := range l.writes(job) {
		if w.Record != nil && !w.Record.Past.Judged.Before(tick) {
			if f := l.frozen(w.Replica, w.Sent, w.Heard.Add(moment)); f != nil && f.End.After(w.Sent.Add(l.patienceOf(w))) {
				return true // the time of its call was up before it saw the answer
			}
			c, by := l.crashed(w.Replica), w.Heard.Add(time.Second)
			if f := l.frozen(w.Replica, w.Sent, by); f != nil {
				by = f.End.Add(time.Second)
			}
			return w.Heard.IsZero() || w.Replica == Operator || !c.IsZero() && c.Before(by)
		}
	}
	return false
}

// calmAround reports whether replicas were up, and nothing hindered them or the entry of a job, from a
// moment before a time until another one.
func (l *Log) calmAround(d *Definition, from, to time.Time) bool {
	from = from.Add(-2 * unrest)
	if l.touched(d.Name, from, to) || l.others(d.Name, from, to) || l.orderedAround(d.Name, from, to) {
		return false
	}
	up := false
	for _, u := range l.of("", Up) {
		if gone := l.gone(u.Replica); u.Time.After(to) || !gone.IsZero() && gone.Before(from) {
			continue
		}
		if u.Cause != "" || l.replicaHindered(u.Replica, d.Name, from, to) {
			return false
		}
		up = true
	}
	return up
}
