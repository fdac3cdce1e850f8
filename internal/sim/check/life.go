package check

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/store"
)

// The invariants about what the world sees of a cluster.

// fence: a resource that refuses smaller tokens takes whatever a run sends
// while its context lives, but for the second that a machine needs to see that it
// was suspended; and once it has taken a token, none that is smaller.
func fence(l *Log, bad report) {
	for _, job := range l.index.entries {
		runs := l.runs(job)
		var most int64
		for _, e := range l.of(job, Effect) {
			switch e.Note {
			case "accepted":
				if e.Token < most {
					bad(e.Time, "the resource of %s took token %d after %d", job, e.Token, most)
				}
				most = max(most, e.Token)
			case "refused":
				i := slices.IndexFunc(runs, func(r Event) bool {
					return r.Token == e.Token && r.Replica == e.Replica && !r.Time.After(e.Sent) && !l.believed(&r).Before(e.Time)
				})
				if i >= 0 && l.frozen(e.Replica, runs[i].Time.Add(-noticed), e.Time.Add(noticed)) == nil && !l.forgot(job, runs[i].Time, e.Time) {
					bad(e.Time, "the resource refused what %s sent while its context lived", runs[i].name())
				}
			}
		}
	}
}

// checkpoints: what a run loads is what was saved last, and nothing is saved
// that is too large.
func checkpoints(l *Log, bad report) {
	for _, job := range l.index.jobs {
		for _, e := range l.of(job, Said) {
			if e.Note == TookTooMuch {
				bad(e.Time, "%s of %s: %s", e.Replica, job, e.Note)
			}
		}
		events := slices.Concat(l.writes(job), l.of(job, Loaded))
		slices.SortStableFunc(events, func(a, b *Event) int { return a.Time.Compare(b.Time) })
		kept := "0"
		for _, e := range events {
			switch {
			case e.Op == "create":
				kept = "0"
			case e.Op == "save":
				kept = e.Note
			case e.What == Loaded && e.Note != kept && l.claimOf(job, e.Token) != nil && !l.afterCrash(e):
				bad(e.Time, "%s of %s loads %s, and %s was saved", e.Replica, job, e.Note, kept)
			}
		}
	}
}

// storms: a replica sends a bounded number of requests for a job in a second,
// also during an outage and right after it: ten looks at a run that is about
// to be handed over, and what a tick takes, twice where calls fail. A replica also reads the entries of jobs that others follow,
// and writes once for each tick of a backfill that ends beside others.
func storms(l *Log, bad report) {
	const least, reads = 20, 8
	for _, job := range l.index.jobs {
		sent := map[string][]time.Time{}
		for _, e := range l.of(job, Request) {
			if e.Replica != Operator && !l.endsBeside(e) {
				sent[e.Replica] = append(sent[e.Replica], e.Sent)
			}
		}
		for replica, times := range sent {
			most := least
			if l.followed(replica, job) {
				most += reads
			}
			slices.SortFunc(times, time.Time.Compare)
			for i := most; i < len(times); i++ {
				if times[i].Sub(times[i-most]) < time.Second {
					bad(times[i], "%s sends %d requests for %s in a second", replica, most+1, job)
					break
				}
			}
		}
	}
}

// endsBeside reports whether a write is for the end of one of several ticks that are run beside each other.
func (l *Log) endsBeside(e *Event) bool {
	if e.Op != "progress" || e.Record == nil {
		return false
	}
	claim := l.claimOf(e.Job, e.Record.Token)
	return claim != nil && len(claim.ticks()) > 1
}

// shutdown: a replica that is asked to stop begins nothing new, is gone when
// its grace is over or its runs have returned, whichever is later, and the time
// for their outcome; and then nothing is heard of it.
func shutdown(l *Log, bad report) {
	const outcome = 90 * time.Second // a long lease, and two tries to release it
	asked, gone, latest := map[string]*Event{}, map[string]time.Time{}, map[string]time.Time{}
	for _, e := range l.Events {
		switch e.What {
		case Stop:
			asked[e.Replica] = e
		case Gone:
			gone[e.Replica] = e.Time
		case Ran:
			if e.End.After(latest[e.Replica]) {
				latest[e.Replica] = e.End
			}
		}
	}
	for _, e := range l.Events {
		stop, end := asked[e.Replica], gone[e.Replica]
		crash := l.crashed(e.Replica)
		if stop == nil || !crash.IsZero() && !e.began().Before(crash) {
			continue
		}
		if e.What == Request && e.Op == "acquire" && e.Sent.After(stop.Time) {
			bad(e.Sent, "%s acquires %s, and was asked to stop at %s", e.Replica, e.Job, TimeOfDay(stop.Time))
		}
		if t := e.Sent; !end.IsZero() && (t.After(end) || e.What == Ran && e.Time.After(end)) {
			bad(e.Time, "%s is gone since %s, and there is %s of %s", e.Replica, TimeOfDay(end), e.What, e.Job)
		}
		if e != stop || !crash.IsZero() {
			continue
		}
		by := stop.End.Add(outcome)
		if t := latest[e.Replica].Add(outcome); t.After(by) {
			by = t
		}
		if f := l.frozen(e.Replica, stop.Time, by); f != nil && f.End.Add(outcome).After(by) {
			by = f.End.Add(outcome)
		}
		if end.IsZero() || end.After(by) {
			bad(stop.Time, "%s is asked to stop and is gone at %s, which should be by %s", e.Replica, TimeOfDay(end), TimeOfDay(by))
		}
	}
}

// failClosed: an entry that a newer program has made is not touched, its job
// does not run, and each replica says so.
func failClosed(l *Log, bad report) {
	events := l.of(Foreign, Request)
	if !slices.ContainsFunc(events, func(e *Event) bool { return e.Writes() && e.OK() && e.Replica == Operator }) {
		return
	}
	for _, e := range events {
		if e.Replica != Operator && e.Op != "read" && !(e.Op == "create" && !e.OK()) {
			bad(e.Time, "%s sends a %s for the entry of a newer program", e.Replica, e.Op)
		}
	}
	for _, e := range l.of(Foreign, Ran) {
		bad(e.Time, "%s begins", e.name())
	}
	for replica := range l.Fleet {
		told := slices.ContainsFunc(l.of(Foreign, Said), func(e *Event) bool { return e.Replica == replica })
		read := slices.ContainsFunc(events, func(e *Event) bool {
			return e.Replica == replica && !e.Heard.IsZero() && e.OK() && e.Cause != string(Applied500) && !l.asked(replica, e.Heard) &&
				l.frozen(replica, e.Sent, e.Heard) == nil // or it comes when nobody waits for it any more
		})
		if read && !told && l.crashed(replica).IsZero() {
			bad(l.end(), "%s does not say that it leaves %s alone", replica, Foreign)
		}
	}
}

// asked reports whether a replica had been asked to stop at t.
func (l *Log) asked(replica string, t time.Time) bool {
	return slices.ContainsFunc(l.of("", Stop), func(e *Event) bool { return e.Replica == replica && e.Time.Before(t) })
}

// audit: each change of the holder is logged once: by who claimed, that the run
// started, or why not; and its end.
func audit(l *Log, bad report) {
	for _, job := range l.index.jobs {
		said := map[int64][]*Event{} // by token; 0: of any
		for _, e := range l.of(job, Said) {
			said[0] = append(said[0], e)
			if e.Token != 0 {
				said[e.Token] = append(said[e.Token], e)
			}
		}
		count := func(replica, text string, token int64, from time.Time) (n int) {
			for _, e := range between(said[token], from, forever) {
				if e.Replica == replica && strings.HasPrefix(e.Note, text) {
					n++
				}
			}
			return n
		}
		for _, e := range l.claimed(job) {
			if !l.crashed(e.Replica).IsZero() || l.dropped(e.Replica) {
				continue
			}
			token := e.Record.Token
			started := count(e.Replica, "run started", token, e.Sent)
			ended := count(e.Replica, "run ended", token, e.Sent) + count(e.Replica, "the outcome was ", token, e.Sent) // refused, or not confirmed
			barred := count(e.Replica, "the run may not begin", token, e.Sent)
			lost := count(e.Replica, "the lease was lost before the run began", token, e.Sent) + barred
			excused := count(e.Replica, "the claim was not confirmed", 0, e.Sent) + givenUp(said[token], e)
			t := l.termOf(job, token)
			if l.cancelled(job, t, l.end()) || l.cancelledWhole(job, t) || l.mayBeReplaced(t) {
				excused += ended
			} else {
				barred = 0 // what was cancelled before it began has an outcome, and nothing else has
			}
			tries, ticks := 0, map[time.Time]bool{} // a claim may have several ticks of a backfill
			for _, r := range t.tries {
				tries++
				ticks[r.Tick] = true
			}
			switch {
			case started == 0 && excused == 0:
				bad(e.Time, "%s claims %s with token %d, and does not say what of it", e.Replica, job, token)
			case started-lost != tries:
				bad(e.Time, "%s says %d times that the run of %s with token %d started, and it did %d times", e.Replica, started, job, token, tries)
			case tries > 0 && (ended < len(ticks) || ended > len(ticks)+barred), ended > len(e.ticks()):
				bad(e.Time, "%s says %d times that the run of %s with token %d ended", e.Replica, ended, job, token)
			}
		}
	}
}

// givenUp is how often a replica says, among what is said of its token, that it has given a claim up before the run began.
func givenUp(said []*Event, claim *Event) (n int) {
	for _, e := range between(said, claim.Sent, forever) {
		if e.Replica == claim.Replica && !strings.HasPrefix(e.Note, "the lease was lost") && strings.Contains(e.Note, " before the run began") {
			n++
		}
	}
	return n
}

// dropped reports whether a replica logged more than its log took.
func (l *Log) dropped(replica string) bool {
	return slices.ContainsFunc(l.of("", Said), func(e *Event) bool {
		return e.Replica == replica && strings.HasPrefix(e.Note, "lines were dropped")
	})
}

// liveness: when all faults are over, all ticks that were due have their outcomes
// within a few minutes, singletons run, and nobody has anything to complain
// about.
func liveness(l *Log, bad report) {
	healed := l.healed()
	if healed.IsZero() {
		return
	}
	for _, job := range l.index.jobs {
		for _, e := range l.of(job, Said) {
			if why, ok := strings.CutPrefix(e.Note, "health: "); ok && job != Foreign && !l.yields(job, why) && !l.denied(e) {
				bad(e.Time, "%s says that %s is %s", e.Replica, job, why)
			}
		}
		d := l.latest(job)
		if d == nil || job == Foreign {
			continue
		}
		by := l.settled()
		if d.Every == 0 {
			if d.brief() && d.rest() > time.Minute { // a slow call may end the run, and then its replica rests
				continue
			}
			if !slices.ContainsFunc(l.runs(job), func(r Event) bool { return r.Time.Before(by) && !l.believed(&r).Before(by.Add(-time.Minute)) }) {
				bad(by, "%s does not run", job)
			}
			continue
		}
		if l.heldUp(job, by) {
			continue // it has failed too often since all jobs were resumed, or one that it follows has
		}
		last, through := l.ledger(job, by)
		if through.IsZero() && l.Zero != nil && d.count(healed, by) == 0 { // nobody has to look before the next tick
			continue
		}
		if through.IsZero() || d.count(through, healed) > 0 && !l.worksOff(job, d, by) {
			bad(by, "%s: ticks up to %s are without an outcome: %s", job, TimeOfDay(healed), describe(last))
		}
	}
}

// heldUp reports whether a job, or one that it follows, has paused itself: nothing settles its ticks then.
func (l *Log) heldUp(job string, at time.Time) bool {
	if last, _ := l.ledger(job, at); last != nil && !last.Orders.Paused.At.IsZero() {
		return true
	}
	d := l.latest(job)
	return d != nil && slices.ContainsFunc(d.Before(), func(before string) bool { return l.heldUp(before, at) })
}

// worksOff reports whether a job that runs all its missed ticks is at it at a
// time: up to a hundred runs take longer than the cluster has to settle.
func (l *Log) worksOff(job string, d *Definition, at time.Time) bool {
	return d.Missed == soloist.RunAll && slices.ContainsFunc(l.runs(job), func(r Event) bool {
		return r.Time.Before(at) && r.Time.After(at.Add(-time.Minute))
	})
}

// ledger is the record of a job as it is at a time, and up to when its ticks
// have outcomes. What an entry said is gone with it, and the next look makes one
// that begins anew.
func (l *Log) ledger(job string, at time.Time) (last *store.Record, through time.Time) {
	var written time.Time
	for _, e := range l.writes(job) {
		if e.Record != nil && !e.Time.After(at) {
			last, through, written = e.Record, e.Record.Watermark, e.Time
		}
	}
	for _, e := range l.of(job, Deleted) {
		if e.Time.After(written) && !e.Time.After(at) {
			last, through = nil, e.Time
		}
	}
	return last, through
}

func describe(r *store.Record) string {
	if r == nil {
		return "there is no record"
	}
	return string(r.Run.Status) + " " + TimeOfDay(r.Run.Tick) + "/" + strconv.Itoa(r.Run.Attempt) + ", settled through " + TimeOfDay(r.Watermark)
}

func (l *Log) healed() time.Time {
	for _, e := range l.of("", Healed) {
		return e.Time
	}
	return time.Time{}
}

// settled is when everything due has its outcome, after all faults are over.
func (l *Log) settled() time.Time {
	for _, e := range l.of("", Healed) {
		if e.End.After(e.Time.Add(Settling)) {
			return e.End
		}
	}
	return l.healed().Add(Settling)
}

// yields reports whether a job is told as broken since the last definition is
// that of an aborted deploy: it is left alone until a tick is overdue for long.
func (l *Log) yields(job, why string) bool {
	if why != "broken" {
		return false
	}
	var last *Event // of the aborted deploy; nil: another definition is in force
	for _, w := range l.writes(job) {
		switch {
		case l.visits(w.Replica):
			last = w
		case last != nil && (w.Record == nil || w.Record.Definition.Spec != last.Record.Definition.Spec): // not a question of an older replica
			last = nil
		}
	}
	d := l.latest(job)
	return last != nil && d != nil && d.Every > 0 && d.count(last.Time, l.settled().Add(-Patience)) == 0
}

// denied reports whether a replica says that it may not write an entry, which it
// says until a write of it succeeds, and whether it was refused one.
func (l *Log) denied(said *Event) bool {
	d := l.definition(said.Replica, said.Job)
	return strings.Contains(said.Cause, "not write it") && slices.ContainsFunc(l.of(said.Job, Request), func(e *Event) bool {
		decides := e.Op == "claim" || e.Op == "settle"
		brief := decides && e.Heard.IsZero() && (e.beats() > 0 || d != nil && d.brief()) // it waits for a short time alone
		return e.Replica == said.Replica && (e.Cause == string(ReadOnly) || e.Cause == string(Denied) || brief)
	})
}

// visits reports whether a replica is of an aborted deploy.
func (l *Log) visits(replica string) bool {
	return slices.ContainsFunc(l.of("", Up), func(u *Event) bool { return u.Replica == replica && u.Cause == Aborted })
}

// latest is the definition of a job on the replica that came up last, to stay.
func (l *Log) latest(job string) (d *Definition) {
	for _, e := range l.of("", Up) {
		if one := l.definition(e.Replica, job); one != nil && e.Cause != Aborted {
			d = one
		}
	}
	return d
}
