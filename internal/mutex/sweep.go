package mutex

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"time"

	"github.com/soloist-go/soloist/internal/entry"
	"github.com/soloist-go/soloist/internal/instant"
	"github.com/soloist-go/soloist/internal/swept"
	"github.com/soloist-go/soloist/store"
)

// A Sweeper is a store whose entries can be listed and removed.
type Sweeper interface {
	store.Lister
	store.Remover
}

// Sweep removes the entries of locks, groups and replicas of an app that no caller has used for so long, and
// returns their names without the app. It notes them, so that the next holder need not hold off. An entry
// used meanwhile stays, since the store removes only what is as it was listed.
//
// No token comes twice: a new entry's token is the store's time in microseconds, which is later than each
// claim of the removed entry, and a token grows by one with a claim. Without dates of the store that would
// not hold, so nothing is removed then.
func Sweep(ctx context.Context, s Sweeper, app string, unused time.Duration) (removed []string, err error) {
	type found struct {
		swept.Entry
		etag string
	}
	var old []found
	var gone []swept.Entry
	err = s.List(ctx, app, func(name string, e store.Entry) bool {
		if part := strings.TrimPrefix(name, app+"/"); !e.Date.IsZero() {
			if used, created := lastUse(app, part, &e); e.Date.Sub(used) >= unused {
				old = append(old, found{swept.Entry{Name: part, Created: created}, e.ETag})
			}
		}
		return true
	})
	defer func() { err = errors.Join(err, swept.Note(context.WithoutCancel(ctx), s, app, gone)) }()
	for _, o := range old {
		failed := s.Remove(ctx, app+"/"+o.Name, o.etag)
		switch {
		case failed == nil:
			removed = append(removed, o.Name)
			if !o.Created.IsZero() {
				gone = append(gone, o.Entry)
			}
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

// lastUse returns when an entry was last used, and when it was created. For an entry that must stay, the time
// of the listing is its use. No caller holds off for the entry of a replica, so the date of its creation is
// zero.
func lastUse(app, name string, e *store.Entry) (used, created time.Time) {
	n, ok := entry.Parse(name)
	if !ok || n.Kind != entry.Lock && n.Kind != entry.Group && n.Kind != entry.Member {
		return e.Date, created
	}
	r, err := store.DecodeRecord(e.Record, app, name)
	// Of a run whose lease has not expired by itself, the holder may still trust it.
	if err != nil || e.State.Live() || r.MayRun() && e.State != store.Expired {
		return e.Date, created
	}
	if used = instant.Later(r.Created, instant.Later(r.Run.Claimed, r.Run.Finished)); n.Kind != entry.Member {
		created = r.Created
	}
	return used, created
}
