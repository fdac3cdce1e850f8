package runner

import (
	"context"
	"io/fs"
	"time"

	"github.com/soloist-go/soloist/internal/lease"
	"github.com/soloist-go/soloist/store"
)

// listedFrom is from how many entries on one listing takes the place of a read of each.
// The Blob service bills a listing about like twelve reads of properties.
const listedFrom = 12

// listTimeout bounds a listing; what it has not returned by then is read by itself.
const listTimeout = 10 * time.Second

// A listing is what one listing of an app has returned.
type listing struct {
	entries map[string]store.Entry // by name
	whole   bool                   // an entry that is not in it does not exist
	date    time.Time              // the store's, of its last entry, or the earliest that it can be; zero: not known
}

// list calls f for each entry of an app, over the store of a client, whose type is a
// store.Lister. It gives up when nothing has come for as long as a call may take.
func list(ctx context.Context, app string, c *lease.Client, f func(name string, e store.Entry)) (all listing) {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	hangs := time.AfterFunc(c.CallTimeout(), cancel)
	defer hangs.Stop()
	sent := c.Clock.Elapsed()
	err := c.Store.(store.Lister).List(ctx, app, func(name string, e store.Entry) bool {
		hangs.Reset(c.CallTimeout())
		if !e.Date.Equal(all.date) { // the same for a whole page
			all.date = e.Date
			c.Clock.Observe(sent, all.date)
		}
		if e.ETag != "" {
			f(name, e)
		}
		return true
	})
	// Without entries there is no date, and the wall clock may be fast.
	if lo, _, known := c.Clock.Now(); known && all.date.IsZero() {
		all.date = lo
	}
	all.whole = err == nil
	return all
}

// missing is the answer for an entry that a whole listing does not have. It has the date of the
// listing, from which a new entry starts.
func (l *listing) missing() (store.Entry, error) {
	return store.Entry{Revision: store.Revision{Date: l.date}}, fs.ErrNotExist
}

// entry returns what the listing has of an entry, and reads the entry if that is nothing.
func (l *listing) entry(ctx context.Context, c *lease.Client) (store.Entry, error) {
	if e, ok := l.entries[c.Name]; ok {
		return e, nil
	}
	if l.whole {
		return l.missing()
	}
	return c.Read(ctx)
}
