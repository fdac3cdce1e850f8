package storetest

import (
	"github.com/soloist-go/soloist/store"
)

// lates is about calls that come twice or too late, since their answers or
// they themselves were delayed on the way.
var lates = []property{
	{"Repeat/acquire", nothing, func(c *check) {
		s := c.leased()
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
	{"Handle", nothing, func(c *check) { // the id is the lease, not the handle
		s := c.subject()
		id := newID()
		s.acquire(s.store.Lease(s.name, id), s.longest())
		s.write("write by another handle", s.store.Lease(s.name, id), nil)
		s.renew("renew by another handle", s.store.Lease(s.name, id), nil)
		s.release("release by another handle", s.store.Lease(s.name, id), nil)
	}},
}

// overtaken: who had the lease has no rights under the next holder.
func overtaken(s *subject, _ store.LeaseState, _ string) {
	s.acquire(s.rest, s.longest())
	for _, when := range []string{"before the new holder's write", "after it"} {
		s.oldIsLost(when)
		s.release("old release "+when, s.own, store.ErrLost)
		s.want("old acquire "+when, s.acquireOwn(), store.ErrHeld)
		s.untouched(when, store.Leased)
		s.must("new holder's write", s.put(s.rest))
	}
	s.renew("new holder's renew", s.rest, nil)
	s.release("new holder's release", s.rest, nil)
	s.oldIsLost("after the new holder's release")
}

// oldIsLost checks that own has no rights, even if it knows the present ETag.
func (s *subject) oldIsLost(when string) {
	s.write("old write "+when, s.own, store.ErrLost)
	s.renew("old renew "+when, s.own, store.ErrLost)
	if is[store.Checkpointer](s.own) {
		s.want("old save "+when, s.keep(s.own, "late"), store.ErrLost)
		_, err := s.load(s.own)
		s.want("old load "+when, err, store.ErrLost)
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
