package web

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/soloist-go/soloist/host/internal/format"
	"github.com/soloist-go/soloist/host/internal/locks"
	"github.com/soloist-go/soloist/store"
)

// A locksAnswer is the locks of the app, and what is done once.
type locksAnswer struct {
	App appInfo `json:"app"`
	locks.Shown
}

// locks answers with the locks.
func (p *pages) locks(w http.ResponseWriter, r *http.Request) {
	text, ok := asked(w, r, parseLocks)
	if !ok {
		return
	}
	reading, note := p.shelf.look(r.Context())
	answer := locksAnswer{App: p.infoFor(r, p.cache.now()), Shown: reading.Matching(text).Shown(mostRows)}
	if note != "" {
		answer.LocksNote = note
	}
	Reply(w, http.StatusOK, answer)
}

// parseLocks reads the parameters of a list of locks.
func parseLocks(values map[string]string) (text string, err error) {
	err = readEach(values, "q", map[string]func(value string) error{"q": func(value string) error { text = value; return nil }})
	return text, err
}

const (
	locksFresh = 10 * time.Second // so long they are not listed again, however many ask, and for each page of a listing
	locksPage  = 5_000            // entries that a page of a listing has
	locksTime  = 2 * time.Minute  // bounds a listing: a page of it can take seconds
	locksWait  = 5 * time.Second  // so long a request waits for it
)

// A lockShelf keeps the last listing of the locks. At most one listing is under way.
type lockShelf struct {
	store  store.Store
	app    string
	begin  func(func())    // begins a listing in the background
	closed context.Context // ends it

	mu      sync.Mutex
	pending chan struct{} // closed when the listing under way is over; nil: none is
	at      time.Time     // when the last one was over; zero: none was yet
	last    locks.Reading
	err     error
}

func newLockShelf(s store.Store, app string, begin func(func()), closed context.Context) *lockShelf {
	return &lockShelf{store: s, app: app, begin: begin, closed: closed}
}

// look returns what is known of the locks, after a wait for a listing if that is due, and why some of
// it is not known. A store that cannot list has none.
func (s *lockShelf) look(ctx context.Context) (r locks.Reading, note string) {
	lister, ok := s.store.(store.Lister)
	if !ok {
		return locks.Reading{}, ""
	}
	if pending := s.refresh(lister); pending != nil {
		await(ctx, pending, locksWait)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.at.IsZero():
		note = "They are being listed, which takes long."
	case s.err != nil:
		note = "They cannot be listed: " + format.Error(s.err)
	}
	return s.last, note
}

// refresh returns the listing to wait for, nil if the last one will do.
func (s *lockShelf) refresh(lister store.Lister) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	fresh := locksFresh * time.Duration(1+s.last.Listed/locksPage)
	if s.pending == nil && (s.at.IsZero() || time.Since(s.at) >= fresh) {
		s.pending = make(chan struct{})
		s.begin(func() { s.list(lister) })
	}
	return s.pending
}

// list outlives the request that began it: others wait for it too.
func (s *lockShelf) list(lister store.Lister) {
	ctx, cancel := context.WithTimeout(s.closed, locksTime)
	defer cancel()
	last, err := locks.Read(ctx, lister, s.app)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last, s.err, s.at = last, err, time.Now()
	close(s.pending)
	s.pending = nil
}
