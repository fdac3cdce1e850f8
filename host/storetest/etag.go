package storetest

import (
	"github.com/soloist-go/soloist/store"
)

// etags is which calls change an ETag, and which mind it.
var etags = []property{
	{"ETag/told", nothing, func(c *check) {
		s, name := c.subject(), newName()
		e, err := c.store.Create(c.ctx, name, []byte(first))
		s.told("create", e.Revision, err)
		e, err = c.store.Read(c.ctx, s.name)
		s.told("read", e.Revision, err)
		stamp, err := s.own.Acquire(c.ctx, s.longest(), e.ETag)
		s.told("acquire", stamp, err)
		stamp, err = s.own.Renew(c.ctx)
		s.told("renew", stamp, err)
		stamp, err = s.own.Write(c.ctx, e.ETag, []byte(first))
		s.told("write", stamp, err)
	}},
	{"ETag/told-by-save", keeper, func(c *check) {
		s := c.subject()
		s.acquire(s.own, s.longest())
		stamp, err := s.own.(store.Checkpointer).Save(c.ctx, s.etag, []byte(first), []byte("checkpoint"))
		s.told("save", stamp, err)
	}},
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
		s := c.subject()
		s.acquire(s.own, s.longest())
		s.unchanged("break", s.read().Revision, s.breakLease(-1))
		s.unchanged("read while breaking", s.read().Revision, nil)
		s.unchanged("break at once", s.read().Revision, s.breakLease(0))
		s.unchanged("read after break", s.read().Revision, nil)
	}},
	{"ETag/expiry", nothing, func(c *check) {
		s := c.subject()
		s.expire()
		s.unchanged("read after expiry", s.read().Revision, nil)
		stamp, err := s.own.Renew(c.ctx)
		s.unchanged("renew after expiry", stamp, err)
	}},
	{"ETag/write", nothing, func(c *check) {
		s := c.subject()
		s.acquire(s.own, s.longest())
		seen := map[string]bool{s.etag: true}
		for range 20 { // of the same record: it is the write that counts
			c.must("write", s.put(s.own))
			if seen[s.etag] {
				c.fatalf("a write got ETag %s, which an earlier one had", s.etag)
			}
			seen[s.etag] = true
			s.unchanged("read after write", s.read().Revision, nil)
		}
	}},
	{"ETag/acquire", nothing, func(c *check) {
		s := c.subject()
		old := s.newer()
		_, err := s.rest.Acquire(c.ctx, s.longest(), old)
		c.want("acquire with an old ETag", err, store.ErrChanged)
		s.state("after it", store.Available)
		_, err = s.rest.Acquire(c.ctx, s.longest(), s.etag)
		c.want("acquire with the present ETag", err, nil)
	}},
	{"ETag/acquire-expired", nothing, func(c *check) {
		s := c.subject()
		old := s.newer()
		s.own = s.lease()
		s.expire()
		_, err := s.rest.Acquire(c.ctx, s.longest(), old)
		c.want("acquire of an expired lease with an old ETag", err, store.ErrChanged)
		s.state("after it", store.Expired)
		s.renew("own renew after it", s.own, nil)
	}},
	{"ETag/write-old", nothing, func(c *check) {
		s := c.subject()
		old := s.newer()
		s.acquire(s.rest, s.longest())
		_, err := s.rest.Write(c.ctx, old, []byte("late"))
		c.want("write with an old ETag", err, store.ErrChanged)
		if e := s.read(); string(e.Record) != first || e.ETag != s.etag {
			c.errorf("after it: got record %s, ETag %s, want %s, %s", e.Record, e.ETag, first, s.etag)
		}
		s.write("write with the present ETag", s.rest, nil)
	}},
}

// told checks that a success has an ETag. The scheduler takes one without for the
// answer of something other than the store.
func (s *subject) told(what string, got store.Revision, err error) {
	s.must(what, err)
	if got.ETag == "" {
		s.errorf("%s: no error, and no ETag", what)
	}
}

func (s *subject) unchanged(what string, got store.Revision, err error) {
	s.must(what, err)
	if got.ETag != s.etag {
		s.errorf("%s: got ETag %s, want %s", what, got.ETag, s.etag)
	}
}

// newer writes the same record once, in a hold that is over then, and returns
// the ETag from before.
func (s *subject) newer() (old string) {
	old = s.etag
	s.acquire(s.own, s.longest())
	s.must("write", s.put(s.own))
	s.must("release", s.own.Release(s.ctx))
	return old
}
