package web

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/soloist-go/soloist/host/internal/format"
	"github.com/soloist-go/soloist/host/internal/locks"
	"github.com/soloist-go/soloist/store"
)

const (
	locksFresh = 10 * time.Second // so long they are not listed again, however many ask
	locksTime  = 5 * time.Second  // bounds a listing
)

// A locksAnswer is the locks of the app, and what is done once.
type locksAnswer struct {
	App appInfo `json:"app"`
	locks.Shown
}

// locks answers with the locks.
func (p *pages) locks(w http.ResponseWriter, r *http.Request) {
	text, err := parseLocks(r.URL.Query())
	if err != nil {
		fail(w, http.StatusBadRequest, err.Error())
		return
	}
	reading, err := p.shelf.look(r.Context())
	answer := locksAnswer{App: p.infoFor(r, p.cache.now()), Shown: reading.Matching(text).Shown(mostRows)}
	if err != nil {
		answer.LocksNote = "They cannot be listed: " + format.Line(err.Error())
	}
	Reply(w, http.StatusOK, answer)
}

// parseLocks reads the parameters of a list of locks.
func parseLocks(values url.Values) (text string, err error) {
	for name, all := range values {
		if name != "q" {
			return "", fmt.Errorf("unknown parameter %q: want q", format.Brief(name))
		}
		if len(all) > 1 {
			return "", fmt.Errorf("the parameter q is there %d times: want it once", len(all))
		}
		text = all[0]
	}
	return text, nil
}

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
	if s.at.IsZero() || time.Since(s.at) >= locksFresh {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), locksTime) // others wait for it too
		defer cancel()
		s.last, s.err = locks.Read(ctx, lister, s.app)
		s.at = time.Now()
	}
	return s.last, s.err
}
