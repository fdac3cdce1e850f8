package mutex

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"time"

	"github.com/soloist-go/soloist/internal/instant"
	"github.com/soloist-go/soloist/internal/record"
	"github.com/soloist-go/soloist/internal/swept"
	"github.com/soloist-go/soloist/store"
)

// A Sweeper is a store whose entries can be listed and removed.
type Sweeper interface {
	store.Lister
	store.Remover
}

// Sweep removes the entries of locks, groups and replicas of an app that no caller has used for so long, and
// returns their names without the app. It notes that first, so that the next holder need not hold off. An entry
// used meanwhile stays, since the store removes only what is as it was listed.
//
// No token comes twice: a new entry's token is the store's time in microseconds, which is later than each
// claim of the removed entry, and a token grows by one with a claim. Without dates of the store that would
// not hold, so nothing is removed then.
func Sweep(ctx context.Context, s Sweeper, app string, unused time.Duration) (removed []string, err error) {
	type found struct{ name, etag string }
	var old []found
	var since time.Time // none of them was used after that
	err = s.List(ctx, app, func(name string, e store.Entry) bool {
		name = strings.TrimPrefix(name, app+"/")
		if limit := e.Date.Add(-unused); !e.Date.IsZero() && !lastUse(app, name, &e).After(limit) {
			old, since = append(old, found{name, e.ETag}), instant.Later(since, limit)
		}
		return true
	})
	if len(old) == 0 {
		return nil, err
	}
	if failed := swept.Note(ctx, s, app, since); failed != nil {
		return nil, errors.Join(err, failed)
	}
	for _, o := range old {
		failed := s.Remove(ctx, app+"/"+o.name, o.etag)
		switch {
		case failed == nil:
			removed = append(removed, o.name)
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

// lastUse returns when an entry was last used. For an entry that must stay, that is the time of the listing.
func lastUse(app, name string, e *store.Entry) time.Time {
	if !swept.Removes(name) {
		return e.Date
	}
	r, err := record.Decode(e.Record, app, name)
	// Of a run whose lease has not expired by itself, the holder may still trust it.
	if err != nil || e.State.Live() || r.MayRun() && e.State != store.Expired {
		return e.Date
	}
	return instant.Later(r.Created, instant.Later(r.Run.Claimed, r.Run.Finished))
}
