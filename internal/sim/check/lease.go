package check

import (
	"slices"
	"strings"
	"time"

	"github.com/soloist-go/soloist/store"
)

// The invariants about leases: who may believe what, and until when.

// belief: for one job, the times in which runs of different tokens have a
// living context do not overlap.
//
// A suspended replica believes nothing: nothing of it happens. It may need a
// second to notice, in which a further try may begin. And who takes over an entry that was deleted holds off only
// if it knew the one before.
func belief(l *Log, bad report) {
	for _, job := range l.index.entries {
		var last *Event
		var until time.Time
		for _, r := range l.runs(job) {
			begun, from, to := l.begun(&r), r.Time, l.believed(&r)
			f := l.asleep(&r, to)
			if f == nil && begun.Before(from) { // behind a log that blocked
				f = l.frozen(r.Replica, begun, from)
			}
			// It may be said to begin when the suspension has begun: what does not wait for an answer is not held up.
			alone := f != nil && begun.Before(f.End) && !l.covered(&r, begun)
			if f != nil && !to.After(f.End.Add(noticed)) && (f.Time.After(begun) || r.Try > 1 || alone) {
				to = f.Time
			}
			if !from.Before(to) {
				continue // a repetition that was to begin while it was suspended
			}
			if last != nil && from.Before(until) && r.Token != last.Token && !l.strange(job, last, &r) {
				bad(from, "%s begins while %s goes on until %s", r.name(), last.name(), TimeOfDay(until))
			}
			if last == nil || to.After(until) {
				last, until = &r, to
			}
		}
	}
}

// covered reports whether a run of another token had a living context at a time.
func (l *Log) covered(r *Event, t time.Time) bool {
	return slices.ContainsFunc(l.runs(r.Job), func(o Event) bool {
		return o.Token != r.Token && !o.Time.After(t) && l.believed(&o).After(t)
	})
}

// noticed is how long a replica may need to see that it was suspended.
const noticed = time.Second + slack

// slack is for timers that go by true time, and clocks that do not.
const slack = 15 * time.Millisecond

// strange reports whether the replica of run b, or of its claim, cannot know of
// run a, since the entry was deleted and it had not seen it before. What is run
// by hand knows of nothing before.
func (l *Log) strange(job string, a, b *Event) bool {
	byHand := b.Request != "" && !b.backfills() || b.Record != nil && b.Record.Run.Request != "" && b.backfillOf() == 0
	for _, d := range l.of(job, Deleted) {
		if d.Time.Before(a.Time) || d.Time.After(b.Time) {
			continue
		}
		// Of a holder with a longer lease it knows only if it has read that claim.
		since, claim := time.Time{}, l.claimOf(job, a.Token)
		if own := l.claimOf(job, b.Token); claim != nil && own != nil && claim.Record.Run.Lease > own.Record.Run.Lease {
			since = claim.Time
		}
		knew := false
		for _, e := range l.of(job, Request) {
			if e.Replica == b.Replica && e.OK() && (e.Op == "read" || e.Op == "create") && !e.Heard.IsZero() && e.Heard.Before(d.Time) && !e.Time.Before(since) {
				knew = true
			}
		}
		if !knew || byHand {
			return true
		}
	}
	return false
}

// trust: a run's context ends at the latest when its last renewal that was
// answered was sent, plus the lease, less a hundredth and a sixth of it; on a
// machine that was suspended, a second after it goes on.
func trust(l *Log, bad report) {
	for _, job := range l.index.entries {
		leases := map[string][]*Event{}
		for _, e := range l.of(job, Request) {
			if e.OK() && !e.Heard.IsZero() && (e.Op == "acquire" || e.Op == "renew") {
				leases[e.Lease] = append(leases[e.Lease], e)
			}
		}
		for _, r := range l.runs(job) {
			claim := l.claimOf(job, r.Token)
			if claim == nil {
				continue // claims has something to say
			}
			end := l.believed(&r)
			until := l.trusted(leases[claim.Lease], r.Replica, end)
			if by, beats := l.beatsTo(claim, end); beats {
				until = earlier(until, by)
			}
			f := l.asleep(&r, end)
			if f == nil && l.begun(&r).Before(until) { // perhaps just before the claim, while it was under way, or behind a log that blocked
				f = l.frozen(r.Replica, claim.Sent.Add(-noticed), end)
			}
			until = l.thawedBy(r.Replica, f, until)
			if end.After(until.Add(slack)) {
				bad(end, "the context of %s lives, and its lease could be trusted until %s", r.name(), TimeOfDay(until))
			}
		}
	}
}

// thawedBy is when a replica sees that the trust in a lease has ended: where its machine was suspended when that was so, a
// second after it goes on. A suspension that comes later is no excuse. Last is the last one that may count.
func (l *Log) thawedBy(replica string, last *Event, until time.Time) time.Time {
	if last == nil {
		return until
	}
	for _, f := range l.index.freezes[replica] {
		if !f.Time.After(until.Add(slack)) && !f.Time.After(last.End) && f.End.Add(noticed).After(until) {
			until = f.End.Add(noticed)
		}
	}
	return until
}

// trusted is until when a lease can be trusted by what was heard until t.
func (l *Log) trusted(answers []*Event, replica string, t time.Time) (until time.Time) {
	var span time.Duration
	for _, e := range answers {
		if e.Op == "acquire" {
			span = e.Span
		}
		if e.Replica != replica || e.Heard.After(t) {
			continue
		}
		d := span - span/100 - span/6
		d -= time.Duration(int64(d) / 1_000_000 * l.Drift[replica])
		if u := e.Sent.Add(d); u.After(until) {
			until = u
		}
	}
	return until
}

// holders: what is written is written by the holder of the lease, on the
// version that it has seen: each write names a lease id and an ETag, and the
// service takes only those with the id of the lease that is active.
func holders(l *Log, bad report) {
	for _, job := range l.index.entries {
		var t tenure
		made := false
		for _, e := range l.of(job, Request) {
			creates := e.Op == "create" || e.Replica == Operator
			if e.Writes() && !creates && (e.Lease == "" || !e.Match) {
				bad(e.Time, "%s sends a %s of %s without lease id or ETag", e.Replica, e.Op, job)
			}
			if !e.OK() {
				continue
			}
			switch {
			case e.Op == "delete":
				made, t = false, tenure{}
			case e.Writes() && creates && made && e.Replica != Operator:
				bad(e.Time, "%s made the entry of %s that there was", e.Replica, job)
			case e.Writes() && creates:
				made = true
			case e.Writes() && !t.holds(e):
				bad(e.Time, "the %s of %s by %s is taken, and its lease does not hold", e.Op, job, e.Replica)
			}
			t.follow(e)
		}
	}
}

// A tenure is the time that the service gave to one lease id.
type tenure struct {
	id    string
	span  time.Duration
	until time.Time
}

func (t *tenure) holds(e *Event) bool {
	return e.Lease != "" && e.Lease == t.id && e.Time.Before(t.until)
}

// follow lets one request that was granted have its effect.
func (t *tenure) follow(e *Event) {
	switch e.Op {
	case "acquire":
		*t = tenure{e.Lease, e.Span, e.Time.Add(e.Span)}
	case "renew":
		t.until = e.Time.Add(t.span)
	case "release":
		*t = tenure{}
	case "replace":
		t.until = e.Time
	case "break":
		if e.Span == 0 {
			t.until = e.Time
		}
	}
}

// identities: a lease id is used by one replica for one job, and for one
// acquisition: once it was used for anything else, it is not acquired again.
func identities(l *Log, bad report) {
	owner := map[string]*Event{}
	for _, job := range l.index.entries {
		used := map[string]time.Time{}
		for _, e := range l.of(job, Request) {
			if e.Lease != "" && e.Op != "acquire" && (used[e.Lease].IsZero() || e.Sent.Before(used[e.Lease])) {
				used[e.Lease] = e.Sent
			}
		}
		for _, e := range l.of(job, Request) {
			if e.Lease == "" {
				continue
			}
			if owner[e.Lease] == nil {
				owner[e.Lease] = e
			}
			if o := owner[e.Lease]; o.Replica != e.Replica || o.Job != e.Job {
				bad(e.Time, "%s of %s uses the lease id of %s of %s", e.Replica, e.Job, o.Replica, o.Job)
			}
			if u := used[e.Lease]; e.Op == "acquire" && !u.IsZero() && e.Sent.After(u) {
				bad(e.Time, "%s acquires %s again under the id of a lease that it had", e.Replica, job)
			}
		}
	}
}

// releases: a lease is released after its run has returned, and after the
// record says what became of it.
func releases(l *Log, bad report) {
	for _, job := range l.index.entries {
		var now *store.Record
		for _, e := range l.of(job, Request) {
			if e.Writes() && e.OK() {
				now = e.Record
			}
			if e.Op != "release" {
				continue
			}
			claim := l.claimUnder(e)
			if claim == nil || claim.Replica != e.Replica {
				continue
			}
			for _, r := range l.termOf(job, claim.Record.Token).tries {
				if !r.Time.After(e.Sent) && (r.End.IsZero() || r.End.After(e.Sent)) {
					bad(e.Sent, "the lease of %s is released, and it runs until %s", r.name(), TimeOfDay(r.End))
				}
			}
			if e.OK() && now != nil && now.Token == claim.Record.Token && now.Run.Finished.IsZero() && (ahead(claim) || !l.unconfirmed(job, claim, e.Time)) {
				bad(e.Time, "%s released the lease of %s, token %d, whose record says %s", e.Replica, job, now.Token, now.Run.Status)
			}
		}
	}
}

// writesBetween reports whether a write was sent under the lease of two requests between them.
func (l *Log) writesBetween(a, b *Event) bool {
	return slices.ContainsFunc(l.of(a.Job, Request), func(e *Event) bool {
		return e.Writes() && e.Lease == a.Lease && e.Sent.After(a.Sent) && e.Sent.Before(b.Sent)
	})
}

// claimUnder is the last claim under the lease of a request before it, nil if there is none.
func (l *Log) claimUnder(e *Event) *Event {
	for _, c := range slices.Backward(between(l.claimed(e.Job), time.Time{}, e.Time.Add(1))) {
		if c.Lease == e.Lease {
			return c
		}
	}
	return nil
}

// unconfirmed reports whether the claimer ran nothing and did not know by a time that its claim was
// applied: it says so, a minute later at most, or it has read the entry before the claim arrived.
func (l *Log) unconfirmed(job string, claim *Event, by time.Time) bool {
	t := l.termOf(job, claim.Record.Token)
	if t == nil || len(t.tries) > 0 {
		return false
	}
	says := func(e *Event) bool {
		return e.Replica == claim.Replica && !e.Time.Before(claim.Sent) && !e.Time.After(by.Add(time.Minute)) && strings.HasPrefix(e.Note, "the claim was not confirmed")
	}
	reads := func(e *Event) bool {
		return e.Replica == claim.Replica && e.Op == "read" && e.OK() && !e.Heard.IsZero() && e.Sent.After(claim.Sent) && e.Time.Before(claim.Time)
	}
	return slices.ContainsFunc(l.of(job, Said), says) || slices.ContainsFunc(l.of(job, Request), reads)
}

// letGo: a lease is not renewed once its holder knows that the outcome is written,
// or that there was nothing to run, unless the next tick is so near that it keeps the lease
// for that. Neither its log nor anything else keeps it. A member entry is held for as long as its
// replica is up.
func letGo(l *Log, bad report) {
	for _, job := range l.index.entries {
		if isMember(job) {
			continue
		}
		written := map[string]*Event{}
		for _, e := range l.of(job, Request) {
			w := written[e.Lease]
			switch {
			case e.Op == "settle" || e.Op == "take back" || e.Op == "finish" && e.Record != nil && !e.Record.Run.Finished.IsZero():
				if e.OK() && !e.Heard.IsZero() && e.Cause == "" {
					written[e.Lease] = e
				}
			case e.Op == "renew" && w != nil && e.Sent.After(l.keptUntil(w).Add(time.Duration(w.Record.Run.Lease)/6)) && l.frozen(e.Replica, w.Sent, e.Sent) == nil && !l.writesBetween(w, e):
				bad(e.Sent, "%s renews the lease of %s, and wrote the %s at %s", e.Replica, job, w.Op, TimeOfDay(w.Time))
			}
		}
	}
}
