package storetest

import (
	"github.com/soloist-go/soloist/store"
)

// lates is about calls that come twice or too late, since their answers or
// they themselves were delayed on the way.
var lates = []property{
	{"Repeat/acquire", nothing, func(c *check) {
		s := c.subject()
		s.acquire(s.own, s.longest())
		s.acquire(s.own, s.longest())
		s.write("write", s.own, nil)
		s.release("release", s.own, nil)
		s.state("after one release", store.Available)
	}},
	{"Repeat/acquire-after-write", nothing, func(c *check) {
		s := c.subject()
		old := s.etag
		s.acquire(s.own, s.longest())
		s.write("write", s.own, nil)
		_, err := s.own.Acquire(c.ctx, s.longest(), old)
		c.want("acquire with the ETag from before", err, store.ErrChanged)
		s.write("write after it", s.own, nil)
	}},
	{"Repeat/write", nothing, func(c *check) {
		s := c.subject()
		old := s.etag
		s.acquire(s.own, s.longest())
		c.must("write", s.put(s.own))
		_, err := s.own.Write(c.ctx, old, []byte(first))
		c.want("the same write again", err, store.ErrChanged)
	}},
	{"Orphan/release", nothing, func(c *check) { // the acquire's answer was lost
		s := c.subject()
		s.acquire(s.own, s.longest())
		s.release("release under an id that did not", s.rest, store.ErrLost)
		s.release("release", s.own, nil)
		s.acquire(s.rest, s.longest())
	}},
	{"Handle", nothing, func(c *check) { // the id is the lease, not the handle
		s := c.subject()
		id := newID()
		s.acquire(s.store.Lease(s.name, id), s.longest())
		s.write("write by another handle", s.store.Lease(s.name, id), nil)
		s.renew("renew by another handle", s.store.Lease(s.name, id), nil)
		s.release("release by another handle", s.store.Lease(s.name, id), nil)
	}},
	{"Late/release", nothing, func(c *check) {
		s := c.subject()
		s.handOver()
		s.release("late release", s.own, store.ErrLost)
		s.write("holder's write", s.rest, nil)
	}},
	{"Late/release-expired", nothing, func(c *check) {
		s := c.subject()
		s.expire()
		s.acquire(s.rest, s.longest())
		s.release("late release", s.own, store.ErrLost)
		s.write("holder's write", s.rest, nil)
	}},
	{"Late/renew", nothing, func(c *check) {
		s := c.subject()
		s.handOver()
		s.renew("late renew", s.own, store.ErrLost)
		s.write("holder's write", s.rest, nil)
	}},
	{"Late/write", nothing, func(c *check) {
		s := c.subject()
		s.handOver()
		s.write("late write with the present ETag", s.own, store.ErrLost)
		if e := s.read(); string(e.Record) != first || e.ETag != s.etag {
			c.errorf("after it: got record %s, ETag %s, want %s, %s", e.Record, e.ETag, first, s.etag)
		}
		s.write("holder's write", s.rest, nil)
	}},
	{"Late/acquire-held", nothing, func(c *check) {
		s := c.subject()
		s.handOver()
		_, err := s.own.Acquire(c.ctx, s.longest(), s.etag)
		c.want("late acquire", err, store.ErrHeld)
		s.write("holder's write", s.rest, nil)
	}},
	{"Late/acquire-written", nothing, func(c *check) {
		s := c.subject()
		old := s.etag
		s.handOver()
		s.write("holder's write", s.rest, nil)
		s.release("holder's release", s.rest, nil)
		_, err := s.own.Acquire(c.ctx, s.longest(), old)
		c.want("late acquire", err, store.ErrChanged)
		s.state("after it", store.Available)
	}},
}

// handOver lets own have the lease and give it up, and other take it.
func (s *subject) handOver() {
	s.acquire(s.own, s.longest())
	s.must("release", s.own.Release(s.ctx))
	s.acquire(s.rest, s.longest())
}
