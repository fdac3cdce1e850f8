package mutex

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"time"

	"github.com/soloist-go/soloist/internal/entry"
	"github.com/soloist-go/soloist/internal/instant"
	"github.com/soloist-go/soloist/store"
)

// A Sweeper is a store whose entries can be listed and removed.
type Sweeper interface {
	store.Lister
	store.Remover
}

// Sweep removes the entries of locks, groups and replicas of an app that nobody has used for so long,
// and returns their names without the app. One that somebody uses meanwhile stays, since the store
// removes only what is as it was listed.
//
// No token comes twice: that of a new entry is the store's time in microseconds, which is later than
// that of each claim of the one that was removed, and a token grows by one with a claim. Without dates
// of the store that would not hold, so nothing is removed then.
func Sweep(ctx context.Context, s Sweeper, app string, unused time.Duration) (removed []string, err error) {
	type found struct{ name, etag string }
	var old []found
	err = s.List(ctx, app, func(name string, e store.Entry) bool {
		if !e.Date.IsZero() && e.Date.Sub(lastUse(app, name, &e)) >= unused {
			old = append(old, found{name, e.ETag})
		}
		return true
	})
	for _, o := range old {
		failed := s.Remove(ctx, o.name, o.etag)
		switch {
		case failed == nil:
			removed = append(removed, strings.TrimPrefix(o.name, app+"/"))
		case errors.Is(failed, store.ErrLost), errors.Is(failed, store.ErrChanged), errors.Is(failed, fs.ErrNotExist):
			// It is in use, or gone.
		case ctx.Err() != nil:
			return removed, errors.Join(err, failed)
		default: // another one may go
			err = errors.Join(err, failed)
		}
	}
	return removed, err
}

// lastUse returns when an entry was last used. That of one which must stay is the time of the listing.
func lastUse(app, name string, e *store.Entry) time.Time {
	part := strings.TrimPrefix(name, app+"/")
	n, ok := entry.Parse(part)
	if !ok || n.Kind != entry.Lock && n.Kind != entry.Group && n.Kind != entry.Member {
		return e.Date
	}
	r, err := store.DecodeRecord(e.Record, app, part)
	// Of a run whose lease has not expired by itself, the holder may still trust it.
	if err != nil || e.State.Live() || r.MayRun() && e.State != store.Expired {
		return e.Date
	}
	return instant.Later(r.Created, instant.Later(r.Run.Claimed, r.Run.Finished))
}
