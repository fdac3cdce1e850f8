package storetest

import (
	"time"

	"github.com/soloist-go/soloist/store"
)

// expiries is how long a lease lasts, and what is left of it afterwards.
var expiries = []property{
	{"Expiry/length", nothing, func(c *check) {
		s := c.subject()
		sent := s.acquire(s.own, s.shortest())
		s.stays(store.Leased, sent.Add(s.shortest()))
		s.await(store.Expired)
	}},
	{"Expiry/longest", nothing, func(c *check) { // the store may cut a length in silence
		s := c.subject()
		d := s.longest()
		if !c.virtual {
			d = min(d, max(2*s.shortest(), 10*time.Second))
		}
		sent := s.acquire(s.own, d)
		s.stays(store.Leased, sent.Add(d))
		s.await(store.Expired)
	}},
	{"Expiry/renewed", nothing, func(c *check) {
		s := c.subject()
		d := min(s.shortest()+3*time.Second, s.longest()) // not the shortest: a renewal keeps the length
		sent := s.acquire(s.own, d)
		s.stays(store.Leased, sent.Add(s.shortest()/4))
		sent = time.Now()
		s.renew("renew", s.own, nil)
		s.stays(store.Leased, sent.Add(d))
		s.await(store.Expired)
	}},
	{"Expiry/renewed-longer", nothing, func(c *check) { // a lease of before does not count
		s := c.subject()
		s.acquire(s.own, s.shortest())
		s.must("release", s.own.Release(c.ctx))
		d := min(s.shortest()+3*time.Second, s.longest())
		s.acquire(s.rest, d)
		sent := time.Now()
		s.renew("renew", s.rest, nil)
		s.stays(store.Leased, sent.Add(d))
		s.await(store.Expired)
	}},
	{"Expiry/longer", lengths, func(c *check) { // acquired again, with a new length
		s := c.subject()
		sent := s.acquire(s.own, s.shortest())
		s.acquire(s.own, s.longest())
		s.stays(store.Leased, sent.Add(s.shortest()+s.shortest()/5))
	}},
	{"Expiry/shorter", lengths, func(c *check) {
		s := c.subject()
		sent := s.acquire(s.own, s.longest())
		s.acquire(s.own, s.shortest())
		s.await(store.Expired)
		if took := time.Since(sent); took >= s.longest() {
			c.errorf("expired after %v, want about %v", took, s.shortest())
		}
	}},
	{"Expiry/write-keeps", nothing, func(c *check) { // a write is no renewal, however often
		s := c.subject()
		s.acquire(s.own, s.shortest())
		limit := time.Now().Add(s.longest() + 2*time.Minute)
		var err error
		for err == nil && time.Now().Before(limit) && c.pause() {
			err = s.put(s.own)
		}
		s.want("write past the end of the lease", err, store.ErrLost)
		s.await(store.Expired)
	}},
	{"Expiry/revived", nothing, func(c *check) {
		s := c.expired()
		s.write("write before renewal", s.own, store.ErrLost)
		s.renew("renew", s.own, nil)
		s.state("after renewal", store.Leased)
		s.write("write after renewal", s.own, nil)
		s.release("release", s.own, nil)
	}},
	{"Expiry/taken-expired", nothing, func(c *check) { // the next holder's lease has run out too
		s := c.expired()
		s.acquire(s.rest, s.shortest())
		s.await(store.Expired)
		s.oldIsLost("after the new holder's lease has run out")
		s.renew("new holder's renew", s.rest, nil)
	}},
	{"Expiry/broken", breaker, func(c *check) { // broken to the end of its time
		s := c.subject()
		sent := s.acquire(s.own, s.shortest())
		s.must("break", s.breakLease(-1))
		s.stays(store.Breaking, sent.Add(s.shortest()))
		s.await(store.Broken)
		s.oldIsLost("when its time was up")
		s.acquire(s.rest, s.longest())
	}},
	{"Expiry/broken-sooner", breaker | lengths, func(c *check) {
		s := c.subject()
		sent := s.acquire(s.own, s.longest())
		s.must("break", s.breakLease(-1))
		s.must("break sooner", s.breakLease(s.shortest()))
		s.stays(store.Breaking, sent.Add(s.shortest()))
		s.await(store.Broken)
		if took := time.Since(sent); took >= s.longest() {
			c.errorf("broken after %v, want about %v", took, s.shortest())
		}
	}},
	{"Expiry/broken-later", breaker | lengths, func(c *check) { // a break never extends a lease
		s := c.subject()
		sent := s.acquire(s.own, s.shortest())
		s.must("break", s.breakLease(s.longest()))
		s.await(store.Broken)
		if took := time.Since(sent); took >= s.longest() {
			c.errorf("broken after %v, want about %v", took, s.shortest())
		}
	}},
}
