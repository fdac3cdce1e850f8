// Package lease keeps one lease of one entry, from its acquisition to its release: it
// renews the lease, says for how long it can be trusted, and makes the writes that it
// permits. It decides nothing: what to write, and when, comes from internal/runner.
//
// Three questions have their answer here. How long is the lease surely ours? See
// [Session]. Was a write applied whose answer was lost? See write.go. What time is it
// at the service? See [Clock].
package lease

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"github.com/soloist-go/soloist/internal/record"
	"github.com/soloist-go/soloist/store"
)

// A Client reads and creates one entry of the store, and keeps what all leases of that
// entry have in common on one replica.
type Client struct {
	Store  store.Store
	Name   string        // app/job
	Length time.Duration // of a lease
	Beat   time.Duration // of the beats of a run; zero: it sends none. See beat.go
	Clock  *Clock        // shared by all jobs of the replica: each answer makes it better
	Jitter *Jitter

	// Hasty is how long Read waits for an answer until it sends the call again; zero: it sends it
	// once. See Haste.
	Hasty time.Duration
}

// CallTimeout is how long one call to the store may take. Renewals come at thirds of the
// length, so a renewal that hangs leaves time for another one before the trust ends.
func (c *Client) CallTimeout() time.Duration { return c.Length / 6 }

// briefly returns most, or a sixth of the beat if that is less.
func (c *Client) briefly(most time.Duration) time.Duration {
	if c.Beat > 0 {
		return min(most, c.Beat/6)
	}
	return most
}

// leastHaste is the least that Haste returns: calls that take a moment longer than others are not sent twice.
const leastHaste = 500 * time.Millisecond

// Haste returns how long the first sending of a call may take by which a replica replaces the holder
// of the run in rec. If that run beats it is a third of the beat, so that a lost answer does not
// cost more than the beat saves. A second sending has the whole CallTimeout: where the store is far
// away, a short one would never be answered. Nothing is trusted or waited for by the time of a call:
// a beat counts as seen from the answer on, and a lease from the sending that was answered.
func (c *Client) Haste(rec *record.Record) time.Duration {
	beat := rec.Beats()
	if beat == 0 {
		return c.CallTimeout()
	}
	return min(c.CallTimeout(), max(beat/3, leastHaste))
}

// InHaste returns a client whose reads are sent again after Haste, for a replica that follows the run in rec.
func (c *Client) InHaste(rec *record.Record) *Client {
	haste := c.Haste(rec)
	if haste == c.CallTimeout() {
		return c
	}
	hasty := *c
	hasty.Hasty = haste
	return &hasty
}

// Read returns the entry; see [store.Store]. The answer also bounds the service's time,
// even if it is that the entry does not exist. Any other error may come from something
// between here and the store, such as a gateway, and its date from that one's clock.
func (c *Client) Read(ctx context.Context) (store.Entry, error) {
	if c.Hasty > 0 {
		entry, err := c.readWithin(ctx, c.Hasty)
		if ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
			return entry, err
		}
	}
	return c.readWithin(ctx, c.CallTimeout())
}

// listTimeout bounds a listing.
const listTimeout = 10 * time.Second

// List calls f for each entry of an app, over a store that is a [store.Lister], and returns the date of the last answer, zero if
// there is none. Each answer bounds the service's time. List gives up when nothing has come for as long as a call may take.
func (c *Client) List(ctx context.Context, app string, f func(name string, e store.Entry)) (date time.Time, err error) {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	hangs := time.AfterFunc(c.CallTimeout(), cancel)
	defer hangs.Stop()
	sent := c.Clock.Elapsed()
	err = c.Store.(store.Lister).List(ctx, app, func(name string, e store.Entry) bool {
		hangs.Reset(c.CallTimeout())
		if !e.Date.Equal(date) { // the same for a whole page
			date = e.Date
			c.Clock.Observe(sent, date)
		}
		if e.ETag != "" {
			f(name, e)
		}
		return true
	})
	return date, err
}

func (c *Client) readWithin(ctx context.Context, limit time.Duration) (store.Entry, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	sent := c.Clock.Elapsed()
	entry, err := c.Store.Read(ctx, c.Name)
	entry.Revision, err = stamped(entry.Revision, err)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		c.Clock.Observe(sent, entry.Date)
	}
	return entry, err
}

// Create creates the entry; see [store.Store].
func (c *Client) Create(ctx context.Context, record []byte) (store.Entry, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*c.CallTimeout()) // it may have to make the container first
	defer cancel()
	sent := c.Clock.Elapsed()
	entry, err := c.Store.Create(ctx, c.Name, record)
	entry.Revision, err = stamped(entry.Revision, err)
	if err == nil {
		c.Clock.Observe(sent, entry.Date)
	}
	return entry, err
}

// errNoETag is an unclear answer: something other than the store may have answered, a
// proxy for example, so the call may have been applied or not.
var errNoETag = errors.New("the answer has no ETag: it is not from the store")

// stamped turns a success without an ETag into errNoETag. Such a success proves neither
// a claim nor a renewal.
func stamped(s store.Revision, err error) (store.Revision, error) {
	if err == nil && s.ETag == "" {
		return store.Revision{}, errNoETag
	}
	return s, err
}

// Definite reports whether err says that the call was not applied, and that the same
// call would fail again. Another error may mean anything: that the call was applied,
// that it will still be applied, or that it never reached the store.
func Definite(err error) bool {
	return errors.Is(err, store.ErrHeld) || errors.Is(err, store.ErrChanged) || errors.Is(err, store.ErrLost) ||
		errors.Is(err, fs.ErrNotExist)
}

// refused reports whether err is an answer that says that the call was not applied. It
// is wider than Definite: a call that lacked a permission was not applied, but may be
// when it is repeated.
func refused(err error) bool { return Definite(err) || errors.Is(err, fs.ErrPermission) }

// Sleep returns after d, or when ctx ends. It makes no timer if d is zero or less.
func Sleep(ctx context.Context, d time.Duration) {
	if d > 0 {
		WaitFor(ctx, ctx, d)
	}
}
