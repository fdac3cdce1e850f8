// Package lease keeps one lease: from its acquisition to its release, with
// renewals, the time for which it may be trusted, and the writes that it allows.
package lease

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"github.com/soloist-go/soloist/store"
)

// A Client is one entry of the store as one replica sees it.
type Client struct {
	Store  store.Store
	Name   string        // app/job
	Length time.Duration // of a lease
	Clock  *Clock
	Jitter *Jitter
}

// CallTimeout is how long one call to the store may take: a lease's renewals come
// at thirds of it, so that one that hangs leaves time for another.
func (c *Client) CallTimeout() time.Duration { return c.Length / 6 }

// Read returns the entry; see [store.Store].
func (c *Client) Read(ctx context.Context) (store.Entry, error) {
	ctx, cancel := context.WithTimeout(ctx, c.CallTimeout())
	defer cancel()
	sent := c.Clock.Elapsed()
	entry, err := c.Store.Read(ctx, c.Name)
	entry.Revision, err = stamped(entry.Revision, err)
	c.Clock.Observe(sent, entry.Date)
	return entry, err
}

// Create makes the entry; see [store.Store].
func (c *Client) Create(ctx context.Context, record []byte) (store.Entry, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*c.CallTimeout()) // it may have to make the container first
	defer cancel()
	sent := c.Clock.Elapsed()
	entry, err := c.Store.Create(ctx, c.Name, record)
	entry.Revision, err = stamped(entry.Revision, err)
	c.Clock.Observe(sent, entry.Date)
	return entry, err
}

// errNoETag is unclear: something other than the store may have answered, such as
// a proxy, and the call may have been applied or not.
var errNoETag = errors.New("the answer has no ETag: it is not from the store")

// stamped refuses a success without an ETag. It proves neither a claim nor a
// renewal.
func stamped(s store.Revision, err error) (store.Revision, error) {
	if err == nil && s.ETag == "" {
		return store.Revision{}, errNoETag
	}
	return s, err
}

// Definite reports whether err says that the call was not applied and would
// not be if it were repeated.
func Definite(err error) bool {
	return errors.Is(err, store.ErrHeld) || errors.Is(err, store.ErrChanged) || errors.Is(err, store.ErrLost) ||
		errors.Is(err, fs.ErrNotExist)
}

// refused reports whether err is an answer that says that the call was not
// applied. One that failed for a missing permission may be applied when it is
// repeated.
func refused(err error) bool { return Definite(err) || errors.Is(err, fs.ErrPermission) }

// Sleep waits for d or for the end of ctx.
func Sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
