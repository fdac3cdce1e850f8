package judge

import (
	"slices"
	"time"

	"github.com/soloist-go/soloist/internal/sim/trace"
	"github.com/soloist-go/soloist/store"
)

// leases: a replica writes only under the lease that it holds, and on the version that it has read; it makes an entry only
// where there is none. A lease id serves one replica and one acquisition.
func leases(w *world, bad report) {
	for _, e := range w.logs {
		exists := false
		owner, used := map[string]string{}, map[string]time.Time{} // used: when it was first named after its acquisition
		for _, q := range e.requests {
			mine, u, o := q.Replica != trace.Operator, used[q.Lease], owner[q.Lease]
			if mine && q.Lease != "" {
				if o != "" && o != q.Replica || q.Op == "acquire" && !u.IsZero() && q.Sent.After(u) {
					bad(q.Time, "%s asks for %s of %s by a lease id that it, or %s, has used", q.Replica, q.Op, e.name, o)
				}
				if owner[q.Lease] = q.Replica; q.Op != "acquire" {
					used[q.Lease] = first(u, q.Sent)
				}
			}
			switch {
			case !q.OK():
			case q.Op == "delete":
				exists = false
			case mine && q.Op == "create" && exists:
				bad(q.Time, "%s makes the entry of %s, which there is", q.Replica, e.name)
			case !mine || q.Op == "create":
				exists = exists || q.Writes()
			case q.Writes() && (q.Lease == "" || !q.Match || !e.held(q)):
				bad(q.Time, "%s writes %s (%s), and does not hold its lease or names no version", q.Replica, e.name, q.Op)
			}
		}
	}
}

// held reports whether the lease that a request names was in force.
func (e *entryLog) held(q *trace.Event) bool {
	return slices.ContainsFunc(e.termsBy[q.Lease], func(t *term) bool { return !q.Time.Before(t.from) && !q.Time.After(t.to) })
}

// releases: no replica releases a lease while a function runs under it, nor while the record says that its run goes on.
func releases(w *world, bad report) {
	for _, e := range w.logs {
		var now *store.Record
		for _, q := range e.requests {
			for _, r := range e.under[q.Lease] {
				switch {
				case q.Op != "release" || q.Replica != r.Replica:
				case r.Time.Before(q.Sent) && r.goesOn(q.Sent):
					bad(q.Sent, "%s releases the lease of %s while its function runs", q.Replica, e.name)
				case q.OK() && now != nil && now.Token == r.Token && now.Run.Status == store.Running && !now.Run.Armed:
					bad(q.Time, "%s releases the lease of %s, and the record says that token %d runs", q.Replica, e.name, now.Token)
				}
			}
			if q.OK() && q.Writes() {
				now = q.Record
			}
		}
	}
}

// closed: what an operator has made of an entry is left alone until it is mended: no replica writes there. An older version of
// the record is one that they cannot know from the right one.
func closed(w *world, bad report) {
	for _, e := range w.logs {
		var spoilt *trace.Event
		next := e.of[trace.Corrupted]
		for _, q := range e.requests {
			for ; len(next) > 0 && !next[0].Time.After(q.Time); next = next[1:] {
				spoilt = next[0]
			}
			switch {
			case !q.OK() || spoilt == nil || !q.Time.After(spoilt.Time):
			case q.Replica == trace.Operator && (q.Op == "delete" || q.Writes()):
				spoilt = nil
			case q.Writes() && spoilt.Note != trace.Older:
				bad(q.Time, "%s writes %s, whose entry is spoilt: %s", q.Replica, e.name, spoilt.Note)
			}
		}
	}
}
