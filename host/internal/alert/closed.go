package alert

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/soloist-go/soloist/store"
)

// close notes the version of the record up to which messages are sent.
func (d *document) close(key string, version int64) {
	if d.Closed == nil {
		d.Closed = map[string]int64{}
	}
	d.Closed[key] = version
}

// encode returns the document as text. A job and kind of which there was ever an incident stays
// in Closed, so a document that is too large forgets half of those.
func (d *document) encode() ([]byte, error) {
	body, err := json.Marshal(d)
	for try := 0; err == nil && len(body) > store.MaxDocument && try < 5; try++ {
		d.forget((len(d.Closed) + 1) / 2)
		body, err = json.Marshal(d)
	}
	if err == nil && len(body) > store.MaxDocument {
		err = fmt.Errorf("the document of alerts has more than %d bytes", store.MaxDocument)
	}
	return body, err
}

// forget removes up to so many entries of Closed, those with the smallest versions, but none of
// an incident whose end still has to be sent.
func (d *document) forget(n int) {
	d.Forgot++
	waits := map[string]bool{}
	for _, i := range d.Incidents {
		waits[keyOf(i.Job, i.Kind)] = true
	}
	keys := slices.SortedFunc(maps.Keys(d.Closed), func(a, b string) int {
		return cmp.Or(cmp.Compare(d.Closed[a], d.Closed[b]), cmp.Compare(a, b))
	})
	for _, key := range keys[:n] {
		if !waits[key] {
			delete(d.Closed, key)
		}
	}
}
