package storetest

import (
	"time"

	"github.com/soloist-go/soloist/store"
)

// combined is about calls that take two steps: both, or neither.
var combined = []property{
	{"Combine/old-etag", combiner, func(c *check) {
		s := c.subject()
		old := s.newer()
		now := s.etag
		s.etag = old
		c.want("acquire and write", s.acquireWrite(s.own), store.ErrChanged)
		s.etag = now
		s.untouched("after it", store.Available)
		s.acquire(s.own, s.longest())
		for what, call := range map[string]func(store.Lease) error{"acquire and write": s.acquireWrite, "write and release": s.writeRelease} {
			s.etag = old
			c.want(what+" by the holder", call(s.own), store.ErrChanged)
			s.etag = now
			s.untouched("after it", store.Leased)
		}
	}},
	{"Combine/second-step", combiner, func(c *check) { // fails, whichever is the first to be checked
		s := c.subject()
		l := s.own.(store.Combiner)
		c.want("acquire, and write a line break", errOf(l.AcquireWrite(c.ctx, s.longest(), s.etag, []byte("a\nb"))), errAny)
		s.untouched("after it", store.Available)
		c.want("acquire for a day, and write", errOf(l.AcquireWrite(c.ctx, 24*time.Hour, s.etag, []byte(first))), errAny)
		s.untouched("after it", store.Available)
		s.acquire(s.own, s.longest())
		c.want("write a line break, and release", errOf(l.WriteRelease(c.ctx, s.etag, []byte("a\nb"))), errAny)
		s.untouched("after it", store.Leased)
	}},
	{"Combine/repeat", combiner, func(c *check) {
		s := c.subject()
		old := s.etag
		c.must("acquire and write", s.acquireWrite(s.own))
		now := s.etag
		s.etag = old
		c.want("the same again", s.acquireWrite(s.own), store.ErrChanged)
		s.etag = now
		s.untouched("after it", store.Leased)
		c.must("write and release", s.writeRelease(s.own))
		if again := s.writeRelease(s.own); again == nil {
			c.errorf("a lease is released twice")
		}
		s.untouched("after it", store.Available)
	}},
	{"Combine/checkpoint", combiner, func(c *check) {
		s := c.saved()
		c.must("write and release", s.writeRelease(s.own))
		c.must("acquire and write", s.acquireWrite(s.own))
		s.holds("after both", first, "checkpoint")
	}},
	{"Combine/length", combiner, func(c *check) {
		s := c.subject()
		sent := time.Now()
		c.must("acquire and write", s.acquireWrite(s.own))
		s.stays(store.Leased, sent.Add(min(s.longest(), 10*time.Second)))
	}},
}

// acquireWrite acquires the lease and writes the first record.
func (s *subject) acquireWrite(l store.Lease) error {
	return s.kept(l.(store.Combiner).AcquireWrite(s.ctx, s.longest(), s.etag, []byte(first)))
}

// writeRelease writes the first record and releases the lease.
func (s *subject) writeRelease(l store.Lease) error {
	return s.kept(l.(store.Combiner).WriteRelease(s.ctx, s.etag, []byte(first)))
}

// kept keeps the ETag of a write, which is another one.
func (s *subject) kept(r store.Revision, err error) error {
	if err == nil && r.ETag == s.etag {
		s.errorf("a write kept ETag %s", r.ETag)
	}
	if err == nil {
		s.etag = r.ETag
	}
	return err
}
