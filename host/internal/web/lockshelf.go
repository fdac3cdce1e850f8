package web

import (
	"context"
	"time"

	"github.com/soloist-go/soloist/host/internal/locks"
	"github.com/soloist-go/soloist/store"
)

const (
	locksFresh = 10 * time.Second // so long they are not listed again, however many ask, and for each page of a listing
	locksPage  = 5_000            // entries that a page of a listing has
	locksTime  = 5 * time.Second  // bounds a listing
)

// A lockShelf keeps what the last listing of the locks has told.
type lockShelf struct {
	store store.Store
	app   string
	turn  chan struct{} // has room for one: who lists, or looks at what follows

	at   time.Time // when it was listed; zero: not yet
	last locks.Reading
	err  error
}

func newLockShelf(s store.Store, app string) *lockShelf {
	return &lockShelf{store: s, app: app, turn: make(chan struct{}, 1)}
}

// look returns what is known of the locks, after a listing if that is due. A store that cannot list
// has none.
func (s *lockShelf) look(ctx context.Context) (locks.Reading, error) {
	lister, ok := s.store.(store.Lister)
	if !ok {
		return locks.Reading{}, nil
	}
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return locks.Reading{}, context.Cause(ctx)
	}
	fresh := locksFresh * time.Duration(1+s.last.Listed/locksPage)
	if s.at.IsZero() || time.Since(s.at) >= fresh {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), locksTime) // others wait for it too
		defer cancel()
		s.last, s.err = locks.Read(ctx, lister, s.app)
		s.at = time.Now()
	}
	return s.last, s.err
}
