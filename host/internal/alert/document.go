package alert

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/soloist-go/soloist/internal/document"
	"github.com/soloist-go/soloist/store"
)

const (
	schema   = 1
	callTime = 3 * time.Second // for one call to the store
)

// shared is the document of all replicas as it was read or written last.
type shared struct {
	document.Copy
	app    string
	last   content
	sentAt time.Duration // when the last read was sent, in elapsed time
}

func newShared(c *Config) *shared {
	s := &shared{app: c.App}
	s.Document = document.Document{Store: c.Store, Name: c.App + "/.alerts", Limit: callTime}
	s.Reads = func() { s.sentAt = c.Elapsed() }
	return s
}

// update reads the document, lets f change it, and writes it if f has. f may be called
// several times, each time with another document and the store's time of the read.
func (s *shared) update(ctx context.Context, f func(d *content, now time.Time) bool) error {
	var d *content
	err := s.Update(ctx, func(body []byte, now time.Time) (_ []byte, err error) {
		if d, err = decode(body, s.app); err != nil || !f(d, now) {
			return nil, err
		}
		return d.encode()
	})
	if err == nil {
		s.last = *d
	}
	return err
}

// decode reads a document; an empty text is an empty one. It refuses what another program
// has written, which must not be overwritten.
func decode(body []byte, app string) (*content, error) {
	d := &content{Schema: schema, App: app}
	if len(body) == 0 {
		return d, nil
	}
	if err := json.Unmarshal(body, d); err != nil {
		return nil, fmt.Errorf("the document of alerts cannot be read: correct or delete %s/.alerts: %w", app, err)
	}
	if d.Schema != schema || d.App != app {
		return nil, fmt.Errorf("%w: it has schema %d and app %.80q", errForeign, d.Schema, d.App)
	}
	for _, i := range d.Incidents {
		if i == nil {
			return nil, errForeign
		}
	}
	return d, nil
}

const (
	askAfter   = 5 * time.Minute // from the last reading of a record to the question whether any replica can still read it
	answerTime = 2 * time.Minute // by then each living replica has read its records
)

// ask is how a replica that cannot read a record, though that is no incident any more, finds out
// whether others still can. It writes a question into the document, and each replica that reads
// the record answers. If none has answered, c is about a new incident.
func (d *content) ask(c *condition) (changed bool) {
	key := c.key()
	asked, open := d.Asked[key]
	switch {
	case open && !c.On && c.Version > asked:
		delete(d.Asked, key)
		d.close(key, c.Version)
		return true
	case open && c.On && c.Version-asked >= answerTime.Milliseconds():
		c.About = max(c.About, asked)
	case !open && c.On && c.About <= d.Closed[key] && c.Version-d.Closed[key] >= askAfter.Milliseconds():
		if d.Asked == nil {
			d.Asked = map[string]int64{}
		}
		d.Asked[key] = c.Version
		return true
	}
	return false
}

// close notes the version of the record up to which messages are sent.
func (d *content) close(key string, version int64) {
	if d.Closed == nil {
		d.Closed = map[string]int64{}
	}
	d.Closed[key] = version
}

// encode returns the document as text. A job and kind of which there was ever an incident stays
// in Closed, so a document that is too large forgets half of those.
func (d *content) encode() ([]byte, error) {
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
func (d *content) forget(n int) {
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
