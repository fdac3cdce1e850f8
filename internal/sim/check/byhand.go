package check

import (
	"slices"
	"strings"

	"github.com/soloist-go/soloist/store"
)

// ByHand begins what the caller of a run by hand was told.
const ByHand = "run by hand: "

// byHandTold: whoever asks for a run by hand is told an outcome only once it is written,
// whichever replica is asked.
func byHandTold(l *Log, bad report) {
	for _, job := range l.index.jobs {
		for _, e := range l.of(job, Said) {
			text, ok := strings.CutPrefix(e.Note, ByHand)
			status := store.Status(text)
			if d := l.definition(e.Replica, job); !ok || d == nil || d.EveryReplica || text == "refused" || status == store.Running {
				continue
			}
			// Also a record that is older than one that an operator has put back.
			if !slices.ContainsFunc(l.Events, func(w *Event) bool {
				return w.Job == job && w.Writes() && w.OK() && !w.Time.After(e.Time) && tells(w.Record, e.Request, status)
			}) {
				bad(e.Time, "%s is told that %s of %s is %s, which no record has said", e.Replica, e.Request, job, status)
			}
		}
	}
}

// tells reports whether a record has that outcome of a run by hand.
func tells(r *store.Record, request string, status store.Status) bool {
	return r != nil && (r.Run.Request == request && r.Run.Status == status ||
		slices.ContainsFunc(r.History, func(f store.Outcome) bool { return f.Request == request && f.Status == status }))
}
