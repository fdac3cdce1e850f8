package storetest

import (
	"context"
	"io/fs"

	"github.com/soloist-go/soloist/store"
)

// removals is about removing an entry: this succeeds only if its lease is free and the entry is unchanged.
var removals = []property{
	{"Remove/missing", remover, func(c *check) {
		s := c.subject()
		c.wantGone("remove", c.store.(store.Remover).Remove(c.ctx, newName(), s.etag))
	}},
	{"Remove/context", remover, func(c *check) {
		s := c.subject()
		s.promptly("remove", func(ctx context.Context) error {
			return s.store.(store.Remover).Remove(ctx, s.name, s.etag)
		})
		s.state("after it", store.Available)
	}},
}

// removed: an entry goes whose lease is over.
func removed(s *subject, state store.LeaseState, old string) {
	want := store.ErrChanged
	if state.Live() {
		want = errAny // either reason is true
	}
	s.want("remove with the old ETag", s.remove(old), want)
	s.untouched("after it", state)
	if state.Live() {
		s.want("remove", s.remove(s.etag), store.ErrLost)
		s.untouched("after it", state)
		s.probe("it", after{state: state})
		return
	}
	s.must("remove", s.remove(s.etag))
	_, err := s.store.Read(s.ctx, s.name)
	s.want("read after it", err, fs.ErrNotExist)
	s.renew("renew after it", s.own, fs.ErrNotExist)
	s.wantGone("remove again", s.remove(s.etag))
}

// remove removes the entry if it still has an ETag.
func (s *subject) remove(etag string) error {
	return s.store.(store.Remover).Remove(s.ctx, s.name, etag)
}
