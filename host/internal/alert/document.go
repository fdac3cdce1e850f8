package alert

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"time"

	"github.com/soloist-go/soloist/store"
)

const (
	schema      = 1
	updateTries = 10              // several replicas may write at the same time
	callTime    = 3 * time.Second // for one call to the store
)

// shared is the document of all replicas as it was read or written last.
type shared struct {
	etag   string
	body   []byte
	last   document
	sentAt time.Duration // when the last read was sent, in elapsed time
}

// update reads the document, lets f change it, and writes it if f has. f may be called
// several times, each time with another document and the store's time of the read.
func (s *shared) update(ctx context.Context, c *Config, f func(d *document, now time.Time) bool) error {
	for try := 1; ; try++ {
		d, now, err := s.read(ctx, c)
		if err != nil {
			return err
		}
		if !f(d, now) {
			s.last = *d
			return nil
		}
		err = s.write(ctx, c, d)
		if err == nil {
			s.last = *d
			return nil
		}
		s.etag = "" // what the store has is not known
		if !errors.Is(err, store.ErrChanged) || try == updateTries {
			return err
		}
		if !sleep(ctx, jittered(time.Duration(try)*100*time.Millisecond)) {
			return context.Cause(ctx)
		}
	}
}

func (s *shared) read(ctx context.Context, c *Config) (*document, time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	s.sentAt = c.Elapsed()
	got, err := c.Store.ReadDocument(ctx, c.App+"/.alerts", s.etag)
	switch {
	case errors.Is(err, store.ErrUnchanged) && s.etag != "":
	case errors.Is(err, fs.ErrNotExist):
		s.etag, s.body = "", nil
	case err != nil:
		return nil, time.Time{}, err
	case got.ETag == "":
		return nil, time.Time{}, errors.New("the answer has no ETag: it is not from the store")
	default:
		s.etag, s.body = got.ETag, got.Body
	}
	now := got.Date
	if now.IsZero() { // the store has no clock
		now = time.Now()
	}
	d, err := decode(s.body, c.App)
	return d, now.Round(0).UTC(), err
}

func (s *shared) write(ctx context.Context, c *Config, d *document) error {
	body, err := d.encode()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	r, err := c.Store.WriteDocument(ctx, c.App+"/.alerts", s.etag, body)
	if err == nil {
		s.etag, s.body = r.ETag, body
	}
	return err
}

// decode reads a document; an empty text is an empty one. It refuses what another program
// has written, which must not be overwritten.
func decode(body []byte, app string) (*document, error) {
	d := &document{Schema: schema, App: app}
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

// jittered is d, shortened at random by up to a quarter.
func jittered(d time.Duration) time.Duration { return d - time.Duration(rand.Int64N(int64(d)/4+1)) }

// sleep waits. It returns false if ctx has ended.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}
