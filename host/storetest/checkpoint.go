package storetest

import (
	"strings"
	"time"

	"github.com/soloist-go/soloist/store"
)

// keeps is about the checkpoint: what it may hold, what it outlasts, and that it
// changes together with the record or not at all.
var keeps = []property{
	{"Keep/save", keeper, func(c *check) {
		s := c.leased()
		s.holds("new", first, "")
		for _, next := range []struct{ record, checkpoint string }{
			{"one", "a checkpoint"}, {"two", "another"}, {"two", "a third"}, {"three", "a third"}, {"four", ""}, {"five", "x"},
		} {
			old := s.etag
			stamp, err := s.own.(store.Checkpointer).Save(c.ctx, s.etag, []byte(next.record), []byte(next.checkpoint))
			c.must("save", err)
			if s.etag = stamp.ETag; s.etag == old {
				c.errorf("a save kept ETag %s", old)
			}
			s.holds("saved", next.record, next.checkpoint)
		}
	}},
	{"Keep/write", keeper, func(c *check) {
		s := c.saved()
		s.write("write", s.own, nil)
		s.holds("written", `{"by":"write"}`, "checkpoint")
	}},
	{"Keep/length", keeper, func(c *check) { // a store may leave it out, but not report another
		s := c.leased()
		for _, checkpoint := range []string{"", "a checkpoint", "x", ""} {
			c.must("save", s.keep(s.own, checkpoint))
			if got := s.read().Checkpoint; got != 0 && got != int64(len(checkpoint)) {
				c.errorf("a read tells a checkpoint of %d bytes, want %d or zero", got, len(checkpoint))
			}
		}
	}},
	{"Keep/through", keeper, func(c *check) { // all that happens to a lease
		s := c.saved()
		s.renew("renew", s.own, nil)
		s.holds("renewed", first, "checkpoint")
		s.acquire(s.own, s.longest())
		s.holds("acquired again", first, "checkpoint")
		s.expire()
		s.renew("renew of what ran out", s.own, nil)
		s.acquire(s.own, s.longest()) // room for the look on a slow machine
		s.holds("revived", first, "checkpoint")
	}},
	{"Keep/no-renewal", keeper, func(c *check) { // neither a save nor a load is one
		s := c.subject()
		s.acquire(s.own, s.shortest())
		limit := time.Now().Add(s.longest() + 2*time.Minute)
		var err error
		for err == nil && time.Now().Before(limit) && c.pause() {
			if err = s.keep(s.own, "checkpoint"); err == nil {
				_, err = s.load(s.own)
			}
		}
		s.want("save and load past the end of the lease", err, store.ErrLost)
	}},
	{"Keep/long-record", keeper, func(c *check) {
		s := c.saved()
		record := strings.Repeat("r", store.MaxRecord+1)
		_, err := s.own.(store.Checkpointer).Save(c.ctx, s.etag, []byte(record), []byte("late"))
		if err != nil {
			s.holds("after a refused record", first, "checkpoint")
		}
	}},
	{"Keep/apart", keeper, func(c *check) {
		one, other := c.subject(), c.subject()
		for _, s := range []*subject{one, other} {
			s.acquire(s.own, s.longest())
		}
		c.must("save", one.keep(one.own, "checkpoint"))
		one.holds("saved", first, "checkpoint")
		other.holds("of another entry", first, "")
	}},
}

// outlives: a checkpoint outlives each end of a lease, and only the holder saves or loads.
func outlives(s *subject, state store.LeaseState, _ string) {
	if !state.Live() {
		s.want("save without a lease", s.keep(s.own, "late"), store.ErrLost)
		s.acquire(s.rest, s.longest())
		s.own, s.rest = s.rest, s.own
	}
	s.holds("the next holder", first, "checkpoint")
	s.refused("save by another", store.ErrLost, func() error { return s.keep(s.rest, "late") })
	s.want("load by another", errOf(s.load(s.rest)), store.ErrLost)
	for _, next := range []func() error{
		func() error { return s.keep(s.own, "next") },
		func() error { return s.put(s.own) },
	} {
		old := s.etag
		s.must("next write", next())
		now := s.etag
		s.etag = old
		s.want("save with an old ETag", s.keep(s.own, "late"), store.ErrChanged)
		s.want("load with an old ETag", errOf(s.load(s.own)), store.ErrChanged)
		s.want("late save by another", s.keep(s.rest, "late"), errAny)
		s.etag = now
		s.holds("after it", first, "next")
	}
}

// holds checks record, ETag and checkpoint of an entry that own has leased.
func (s *subject) holds(when, record, checkpoint string) {
	if e := s.read(); string(e.Record) != record || e.ETag != s.etag {
		s.errorf("%s: got record %s, ETag %s, want %s, %s", when, e.Record, e.ETag, record, s.etag)
	}
	got, err := s.load(s.own)
	s.want(when+", load", err, nil)
	if got != checkpoint {
		s.errorf("%s: got checkpoint %s, want %s", when, clip(got), clip(checkpoint))
	}
}

// refused makes a call that has to fail, and to change nothing of what own holds.
func (s *subject) refused(what string, want error, call func() error) {
	before, err := s.load(s.own)
	s.must("load before "+what, err)
	record := string(s.read().Record)
	s.want(what, call(), want)
	s.holds("after "+what, record, before)
}
