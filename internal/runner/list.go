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

// listTimeout bounds a listing; what it has not told by then is read by itself.
const listTimeout = 10 * time.Second

// A listing is what one listing of an app has told.
type listing struct {
	entries map[string]store.Entry // by name
	whole   bool                   // an entry that is not in it does not exist
}

// list lists the app of the runners if that is cheaper than to read each entry. It
// returns an empty listing otherwise, and what it has got if the listing fails, for
// example for want of the right to list.
func list(ctx context.Context, runners []*Runner) (all listing) {
	names := map[string]bool{}
	for _, r := range runners {
		if !r.job.EveryReplica {
			names[r.client.Name] = true
		}
	}
	if len(names) < listedFrom {
		return all
	}
	r := runners[0]
	lister, ok := r.client.Store.(store.Lister)
	if !ok {
		return all
	}
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	all.entries = make(map[string]store.Entry, len(names))
	sent, last := r.client.Clock.Elapsed(), time.Time{}
	err := lister.List(ctx, r.replica.App, func(name string, e store.Entry) bool {
		if names[name] && e.ETag != "" {
			all.entries[name] = e
		}
		if !e.Date.Equal(last) { // the same for a whole page
			last = e.Date
			r.client.Clock.Observe(sent, last)
		}
		return true
	})
	all.whole = err == nil
	return all
}

// entry returns what the listing has of an entry, and reads the entry if that is nothing.
func (l listing) entry(ctx context.Context, c *lease.Client) (store.Entry, error) {
	if e, ok := l.entries[c.Name]; ok {
		return e, nil
	}
	if l.whole {
		return store.Entry{}, fs.ErrNotExist
	}
	return c.Read(ctx)
}
