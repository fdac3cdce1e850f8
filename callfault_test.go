package soloist_test

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/soloist-go/soloist/store"
)

// A faultyStore is a store some of whose calls meet a fault. Before is asked before a call is made, after
// once it has succeeded; an error of either is what the caller gets.
type faultyStore struct {
	store.Store

	mu            sync.Mutex
	before, after func(op, name string) error
}

// meets sets what its calls meet from now on; nil: nothing.
func (s *faultyStore) meets(before, after func(op, name string) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before, s.after = before, after
}

// around makes a call.
func (s *faultyStore) around(op, name string, call func() error) error {
	s.mu.Lock()
	before, after := s.before, s.after
	s.mu.Unlock()
	if before != nil {
		if err := before(op, name); err != nil {
			return err
		}
	}
	err := call()
	if err == nil && after != nil {
		err = after(op, name)
	}
	return err
}

func (s *faultyStore) Read(ctx context.Context, name string) (e store.Entry, err error) {
	err = s.around("read", name, func() (err error) { e, err = s.Store.Read(ctx, name); return err })
	return e, err
}

func (s *faultyStore) Lease(name, id string) store.Lease {
	return &faultyStoreLease{s.Store.Lease(name, id), s, name}
}

type faultyStoreLease struct {
	store.Lease
	s    *faultyStore
	name string
}

func (l *faultyStoreLease) Acquire(ctx context.Context, d time.Duration, etag string) (r store.Revision, err error) {
	err = l.s.around("acquire", l.name, func() (err error) { r, err = l.Lease.Acquire(ctx, d, etag); return err })
	return r, err
}

func (l *faultyStoreLease) Renew(ctx context.Context) (r store.Revision, err error) {
	err = l.s.around("renew", l.name, func() (err error) { r, err = l.Lease.Renew(ctx); return err })
	return r, err
}

func (l *faultyStoreLease) Write(ctx context.Context, etag string, record []byte) (r store.Revision, err error) {
	err = l.s.around("write", l.name, func() (err error) { r, err = l.Lease.Write(ctx, etag, record); return err })
	return r, err
}

// of returns a fault of the calls for one entry.
func of(entry string, err error) func(op, name string) error {
	return func(_, name string) error {
		if strings.HasSuffix(name, "/"+entry) {
			return err
		}
		return nil
	}
}
