package storetest

import (
	"github.com/soloist-go/soloist/store"
)

// etags is which calls change an ETag, and which mind it.
var etags = []property{
	{"ETag/lease-calls", nothing, func(c *check) {
		s := c.subject()
		for _, l := range []store.Lease{s.own, s.own} { // the second time it holds it already
			stamp, err := l.Acquire(c.ctx, s.longest(), s.etag)
			s.unchanged("acquire", stamp, err)
		}
		stamp, err := s.own.Renew(c.ctx)
		s.unchanged("renew", stamp, err)
		s.unchanged("read while leased", s.read().Revision, nil)
		c.must("release", s.own.Release(c.ctx))
		s.unchanged("read after release", s.read().Revision, nil)
	}},
	{"ETag/break", breaker, func(c *check) {
		s := c.leased()
		s.unchanged("break", s.read().Revision, s.breakLease(-1))
		s.unchanged("read while breaking", s.read().Revision, nil)
		s.unchanged("break at once", s.read().Revision, s.breakLease(0))
		s.unchanged("read after break", s.read().Revision, nil)
	}},
	{"ETag/expiry", nothing, func(c *check) {
		s := c.expired()
		s.unchanged("read after expiry", s.read().Revision, nil)
		stamp, err := s.own.Renew(c.ctx)
		s.unchanged("renew after expiry", stamp, err)
	}},
}

// unchanged checks that a success tells the known ETag. The scheduler takes one without an ETag for the answer
// of something other than the store.
func (s *subject) unchanged(what string, got store.Revision, err error) {
	s.must(what, err)
	if got.ETag != s.etag {
		s.errorf("%s: got ETag %s, want %s", what, got.ETag, s.etag)
	}
}

// conditions: a lease is acquired for what was seen.
func conditions(s *subject, state store.LeaseState, old string) {
	_, err := s.rest.Acquire(s.ctx, s.longest(), old)
	s.want("acquire with an old ETag", err, store.ErrChanged)
	s.untouched("after it", state)
	s.probe("it", after{state: state})
	s.acquire(s.own, s.longest())
}

// newer writes the same record once, and a checkpoint if there may be one, under a lease that is over then. It
// returns the ETag from before.
func (s *subject) newer() (old string) {
	l := s.lease()
	old = s.etag
	s.acquire(l, s.longest())
	if is[store.Checkpointer](l) {
		s.must("save", s.keep(l, "checkpoint"))
	} else {
		s.must("write", s.put(l))
	}
	s.must("release", l.Release(s.ctx))
	return old
}
