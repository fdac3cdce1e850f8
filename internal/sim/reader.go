package sim

import (
	"encoding/json"
	"strings"
	"sync"

	"github.com/soloist-go/soloist/store"
)

// A reader decodes the records that are written. Most of each is history, of
// which nearly all stood in the one before: an outcome is decoded once.
type reader struct {
	mu       sync.Mutex
	outcomes map[string]store.Outcome // by their text
}

// record returns the record that a write writes, nil if it is none.
func (r *reader) record(text string) *store.Record {
	head, rest, _ := strings.Cut(text, `,"history":[{`)
	if history, ok := strings.CutSuffix(rest, "}]}"); ok && head != "{" {
		rec := decode(head + "}")
		if rec != nil && rec.History == nil && r.history(rec, history) {
			return rec
		}
	}
	return decode(text)
}

// history adds outcomes to a record. It returns false if the text is not that of
// outcomes alone.
func (r *reader) history(rec *store.Record, text string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.outcomes) > 100_000 {
		clear(r.outcomes) // a year has more
	}
	if r.outcomes == nil {
		r.outcomes = map[string]store.Outcome{}
	}
	rec.History = make([]store.Outcome, 0, strings.Count(text, "},{")+1)
	for one := range strings.SplitSeq(text, "},{") {
		outcome, ok := r.outcomes[one]
		if !ok {
			if json.Unmarshal([]byte("{"+one+"}"), &outcome) != nil {
				return false
			}
			r.outcomes[strings.Clone(one)] = outcome
		}
		rec.History = append(rec.History, outcome)
	}
	return true
}

// decode is what encoding/json makes of a record, nil if it makes nothing.
func decode(text string) *store.Record {
	rec := new(store.Record)
	if json.Unmarshal([]byte(text), rec) != nil {
		return nil
	}
	return rec
}
