package sim

import (
	"encoding/json"
	"strings"
	"sync"

	"github.com/soloist-go/soloist/store"
)

// A reader decodes the records that are written. Most of each is history, of
// which nearly all stood in the one before: a fate is decoded once.
type reader struct {
	mu    sync.Mutex
	fates map[string]store.Fate // by their text
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

// history adds fates to a record. It returns false if the text is not that of
// fates alone.
func (r *reader) history(rec *store.Record, text string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fates == nil {
		r.fates = map[string]store.Fate{}
	}
	rec.History = make([]store.Fate, 0, strings.Count(text, "},{")+1)
	for one := range strings.SplitSeq(text, "},{") {
		fate, ok := r.fates[one]
		if !ok {
			if json.Unmarshal([]byte("{"+one+"}"), &fate) != nil {
				return false
			}
			r.fates[strings.Clone(one)] = fate
		}
		rec.History = append(rec.History, fate)
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
