package runner

import (
	"errors"
	"fmt"
	"time"

	"github.com/soloist-go/soloist/store"
)

// A contradiction is an ETag that reads of the entry show and that the store refuses in
// each acquisition. At first other replicas may have changed the entry. Later no change
// explains it, since no ETag comes back: something on the way changes ETags, or answers
// reads from a cache. Without a word of it the job would not run, with all calls answered.
type contradiction struct {
	etag  string
	since time.Time // monotonic: the first refusal
	lasts bool      // for longer than the store and other replicas can explain
}

// refuse adds the refusal of an acquisition at etag, after which the entry is read again.
// A lease that is held says nothing of the ETag: a store may be late to free it.
func (c *contradiction) refuse(etag string, err error, patience time.Duration) {
	switch {
	case errors.Is(err, store.ErrHeld):
	case c.etag != etag:
		*c = contradiction{etag: etag, since: time.Now()}
	default:
		c.lasts = time.Since(c.since) > patience
	}
}

// of returns the trouble with etag, nil if there is none.
func (c *contradiction) of(etag string) error {
	if !c.lasts || c.etag != etag {
		return nil
	}
	return fmt.Errorf("the store refuses to lease the entry at the ETag that its reads show, %.80s: is a cache or a proxy on the way that changes or keeps answers?", etag)
}
