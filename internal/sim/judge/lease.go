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
	for _, name := range w.names {
		e := w.entries[name]
		ids(e, bad)
		exists := false
		for _, q := range e.requests {
			switch mine := q.Replica != trace.Operator; {
			case !q.OK():
			case q.Op == "delete":
				exists = false
			case !mine:
				exists = exists || q.Writes()
			case q.Op == "create" && exists:
				bad(q.Time, "%s makes the entry of %s, which there is", q.Replica, name)
			case q.Op == "create":
				exists = true
			case q.Writes() && (q.Lease == "" || !q.Match || !e.held(q)):
				bad(q.Time, "%s writes %s (%s), and does not hold its lease or names no version", q.Replica, name, q.Op)
			}
		}
	}
}

// held reports whether the lease that a request names was in force.
func (e *entryLog) held(q *trace.Event) bool {
	return slices.ContainsFunc(e.find.terms[q.Lease], func(t *term) bool { return !q.Time.Before(t.from) && !q.Time.After(t.to) })
}

func ids(e *entryLog, bad report) {
	owner, used := map[string]string{}, map[string]time.Time{} // used: when it was first named after its acquisition
	for _, q := range e.requests {
		if q.Lease == "" || q.Replica == trace.Operator {
			continue
		}
		if o := owner[q.Lease]; o != "" && o != q.Replica {
			bad(q.Time, "%s uses the lease id of %s for %s", q.Replica, o, e.name)
		}
		owner[q.Lease] = q.Replica
		u := used[q.Lease]
		if q.Op == "acquire" && !u.IsZero() && q.Sent.After(u) {
			bad(q.Time, "%s acquires %s again by an id that it has used", q.Replica, e.name)
		}
		if q.Op != "acquire" && (u.IsZero() || q.Sent.Before(u)) {
			used[q.Lease] = q.Sent
		}
	}
}

// releases: no replica releases a lease while a function runs under it, nor while the record says that its run goes on.
func releases(w *world, bad report) {
	for _, name := range w.names {
		e := w.entries[name]
		var now *store.Record
		for _, q := range e.requests {
			if q.Op == "release" && q.Replica != trace.Operator {
				for _, r := range e.find.under[q.Lease] {
					if r.Replica == q.Replica && r.Time.Before(q.Sent) && (r.End.IsZero() || r.End.After(q.Sent)) {
						bad(q.Sent, "%s releases the lease of %s while its function runs", q.Replica, name)
					} else if r.Replica == q.Replica && q.OK() && now != nil && now.Token == r.Token && now.Run.Status == store.Running && !now.Run.Armed {
						bad(q.Time, "%s releases the lease of %s, and the record says that token %d runs", q.Replica, name, now.Token)
					}
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
	for _, name := range w.names {
		e, next := w.entries[name], 0
		var spoilt *trace.Event
		for _, q := range e.requests {
			for all := e.of[trace.Corrupted]; next < len(all) && !all[next].Time.After(q.Time); next++ {
				spoilt = all[next]
			}
			switch {
			case !q.OK() || spoilt == nil || !q.Time.After(spoilt.Time):
			case q.Replica == trace.Operator && (q.Op == "delete" || q.Writes()):
				spoilt = nil
			case q.Writes() && spoilt.Note != trace.Older:
				bad(q.Time, "%s writes %s, whose entry is spoilt: %s", q.Replica, name, spoilt.Note)
			}
		}
	}
}
