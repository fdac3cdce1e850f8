package document

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/soloist-go/soloist/internal/ontime"
	"github.com/soloist-go/soloist/store"
)

// Several replicas may write at the same time.
const (
	updateTries = 10
	updatePause = 200 * time.Millisecond // at most, before the second try; longer before each further one
)

// A Copy is a document as it was read or written last. It is for one goroutine at a time.
type Copy struct {
	Document
	Reads func() // called before each read; nil: nothing is

	etag string
	body []byte
}

// Read returns the content, which is not transferred again if it has not changed, and the store's time, or this machine's if
// the store has no clock.
func (c *Copy) Read(ctx context.Context) (body []byte, now time.Time, err error) {
	if c.Reads != nil {
		c.Reads()
	}
	got, err := c.Document.Read(ctx, c.etag)
	switch {
	case errors.Is(err, store.ErrUnchanged) && c.etag != "":
	case err != nil:
		return nil, now, err
	default:
		c.etag, c.body = got.ETag, got.Body
	}
	if now = got.Date; now.IsZero() {
		now = time.Now()
	}
	return c.body, now.Round(0).UTC(), nil
}

// Update reads the document, has f change it, and writes it. f is given what Read returns, and returns the new content; nil: it
// stays as it is. If another one writes at the same time, it is called again.
func (c *Copy) Update(ctx context.Context, f func(body []byte, now time.Time) ([]byte, error)) error {
	for try := 1; ; try++ {
		body, now, err := c.Read(ctx)
		if err == nil {
			body, err = f(body, now)
		}
		if err != nil || body == nil {
			return err
		}
		r, err := c.Write(ctx, c.etag, body)
		if err == nil {
			c.etag, c.body = r.ETag, body
			return nil
		}
		c.etag = "" // what the store has is not known
		if !errors.Is(err, store.ErrChanged) || try == updateTries {
			return err
		}
		if !ontime.Sleep(ctx, rand.N(time.Duration(try)*updatePause)) {
			return context.Cause(ctx)
		}
	}
}
