package history_test

import (
	"context"
	"fmt"
	"io/fs"
	"sync"
	"time"

	"github.com/soloist-go/soloist/store"
)

// A toy is a store of one entry that may have one fault of [faults]. It shows
// now and then, so that most answers are right.
type toy struct {
	fault string

	mu     sync.Mutex
	turns  int
	made   int // ETags
	now    version
	before version // what was written over last
	lease  toyLease
}

type version struct{ etag, record, checkpoint string }

type toyLease struct {
	id     string
	span   time.Duration
	until  time.Time
	broken bool
}

// ill reports whether the fault shows now.
func (s *toy) ill(fault string) bool {
	if s.fault != fault {
		return false
	}
	s.turns++
	return s.turns%2 == 0
}

func (s *toy) state() store.LeaseState {
	live := time.Now().Before(s.lease.until)
	switch {
	case s.lease.id == "":
		return store.Available
	case live && s.lease.broken:
		return store.Breaking
	case live:
		return store.Leased
	case s.lease.broken:
		return store.Broken
	}
	return store.Expired
}

func (s *toy) stamp() store.Revision { return store.Revision{ETag: s.now.etag, Date: time.Now()} }

// put replaces what the entry has.
func (s *toy) put(record, checkpoint string) {
	s.made++
	s.before, s.now = s.now, version{fmt.Sprint("etag ", s.made), record, checkpoint}
}

func (s *toy) Limits() (shortest, longest time.Duration) { return time.Second, time.Minute }

func (s *toy) Create(_ context.Context, _ string, record []byte) (store.Entry, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now.etag != "" && !s.ill("created twice") {
		return store.Entry{}, fs.ErrExist
	}
	s.put(string(record), "")
	s.lease = toyLease{}
	return store.Entry{Revision: s.stamp(), Record: record, State: s.state()}, nil
}

func (s *toy) Read(context.Context, string) (store.Entry, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now.etag == "" {
		return store.Entry{}, fs.ErrNotExist
	}
	e := store.Entry{Revision: s.stamp(), Record: []byte(s.now.record), State: s.state()}
	if s.before.etag != "" && s.ill("stale read") {
		e.ETag, e.Record = s.before.etag, []byte(s.before.record)
	}
	if s.before.etag != "" && s.ill("torn read") {
		e.Record = []byte(s.before.record)
	}
	if e.State == store.Expired && s.ill("expired is told as available") {
		e.State = store.Available
	}
	return e, nil
}

func (s *toy) Break(_ context.Context, _ string, period time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch end := time.Now().Add(period); {
	case s.now.etag == "":
		return fs.ErrNotExist
	case s.lease.id == "":
		return store.ErrLost
	case s.ill("break does nothing"):
		return nil
	case period >= 0 && end.Before(s.lease.until), period > 0 && s.state() == store.Leased && s.ill("break prolongs"):
		s.lease.until = end
	}
	s.lease.broken = true
	return nil
}

func (s *toy) BreakUnchanged(_ context.Context, _, etag string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.now.etag == "":
		return fs.ErrNotExist
	case s.lease.id == "":
		return store.ErrLost
	case etag != s.now.etag && !s.ill("broken with another ETag"):
		return store.ErrChanged
	case s.state() == store.Broken && s.ill("broken but once"):
		return store.ErrLost
	}
	if s.lease.broken = true; !s.ill("broken later") {
		s.lease.until = time.Now()
	}
	if s.ill("refused though broken") {
		return store.ErrChanged
	}
	return nil
}

func (s *toy) Lease(_, id string) store.Lease { return toyHandle{s, id} }

type toyHandle struct {
	*toy
	id string
}

func (h toyHandle) Acquire(_ context.Context, d time.Duration, etag string) (store.Revision, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	state := h.state()
	switch {
	case h.now.etag == "":
		return store.Revision{}, fs.ErrNotExist
	case etag != h.now.etag && !h.ill("acquired with another ETag"):
		return store.Revision{}, store.ErrChanged
	case state == store.Breaking && !h.ill("acquired while it breaks"),
		state == store.Leased && h.id != h.lease.id && !h.ill("two holders"),
		state == store.Expired && h.id != h.lease.id && h.ill("kept after its end"):
		return store.Revision{}, store.ErrHeld
	}
	h.lease = toyLease{id: h.id, span: d, until: time.Now().Add(d)}
	if h.ill("ends early") {
		h.lease.until = time.Now().Add(d / 2)
	}
	if h.ill("acquire changes the ETag") {
		h.put(h.now.record, h.now.checkpoint)
	}
	return h.stamp(), nil
}

func (h toyHandle) Renew(context.Context) (store.Revision, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.now.etag == "":
		return store.Revision{}, fs.ErrNotExist
	case h.lease.id == "", h.id != h.lease.id && !h.ill("renewed by another"), h.lease.broken && !h.ill("renewed though broken"):
		return store.Revision{}, store.ErrLost
	}
	if !h.ill("renewal does nothing") {
		h.lease.until, h.lease.broken = time.Now().Add(h.lease.span), false
	}
	if h.before.etag != "" && h.ill("an older version is back") {
		h.now, h.before = h.before, h.now
	}
	return h.stamp(), nil
}

// guard says whether the entry may be written.
func (h toyHandle) guard(etag string) error {
	switch state := h.state(); {
	case h.now.etag == "":
		return fs.ErrNotExist
	case h.id != h.lease.id && !h.ill("written under an old id"), !state.Live() && !h.ill("written after the end"):
		return store.ErrLost
	case etag != h.now.etag && !h.ill("written with another ETag"):
		return store.ErrChanged
	}
	return nil
}

func (h toyHandle) Write(_ context.Context, etag string, record []byte) (store.Revision, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.guard(etag); err != nil {
		return store.Revision{}, err
	}
	former := h.before.etag
	h.put(string(record), h.now.checkpoint)
	switch stamp := h.stamp(); {
	case h.ill("lost write"):
		h.now, h.before = h.before, h.now
		return stamp, nil
	case h.ill("write stays without effect"):
		h.now.record = h.before.record
	case h.ill("ETag stays"):
		h.now.etag = etag
	case former != "" && h.ill("ETag comes back"):
		h.now.etag = former
	case h.ill("refused though done"):
		return store.Revision{}, store.ErrLost
	case h.ill("done later"):
		after := h.now
		h.now = h.before
		time.AfterFunc(100*time.Millisecond, func() {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.before, h.now = h.now, after
		})
		return stamp, nil
	}
	return h.stamp(), nil
}

func (h toyHandle) Save(_ context.Context, etag string, record, checkpoint []byte) (store.Revision, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.guard(etag); err != nil {
		return store.Revision{}, err
	}
	h.put(string(record), string(checkpoint))
	if h.ill("half a save") {
		h.now.checkpoint = h.before.checkpoint
	}
	return h.stamp(), nil
}

func (h toyHandle) Load(_ context.Context, etag string) ([]byte, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.guard(etag); err != nil {
		return nil, err
	}
	return []byte(h.now.checkpoint), nil
}

func (h toyHandle) Release(context.Context) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.now.etag == "":
		return fs.ErrNotExist
	case h.lease.id == "", h.id != h.lease.id && !h.ill("released by another"):
		return store.ErrLost
	case h.ill("release does nothing"):
		return nil
	}
	h.lease = toyLease{}
	if h.ill("done twice") {
		return store.ErrLost
	}
	return nil
}
