package storetest

import (
	"strconv"
	"strings"
	"time"

	"github.com/soloist-go/soloist/store"
)

// keeps is about the checkpoint: what it may hold, what it outlasts, and that it
// changes together with the record or not at all.
var keeps = []property{
	{"Keep/new", keeper, func(c *check) {
		s := c.subject()
		s.acquire(s.own, s.longest())
		s.holds("new", first, "")
	}},
	{"Keep/save", keeper, func(c *check) {
		s := c.subject()
		s.acquire(s.own, s.longest())
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
	{"Keep/save-same", keeper, func(c *check) {
		s := c.subject()
		s.acquire(s.own, s.longest())
		seen := map[string]bool{s.etag: true}
		for range 5 { // of the same: it is the save that counts
			c.must("save", s.keep(s.own, "checkpoint"))
			if seen[s.etag] {
				c.fatalf("a save got ETag %s, which an earlier one had", s.etag)
			}
			seen[s.etag] = true
		}
	}},
	{"Keep/write", keeper, func(c *check) {
		s := c.subject()
		s.acquire(s.own, s.longest())
		c.must("save", s.keep(s.own, "checkpoint"))
		s.write("write", s.own, nil)
		s.holds("written", `{"by":"write"}`, "checkpoint")
	}},
	{"Keep/length", keeper, func(c *check) { // a store may leave it out, but not tell another
		s := c.subject()
		s.acquire(s.own, s.longest())
		for _, checkpoint := range []string{"", "a checkpoint", "x", ""} {
			c.must("save", s.keep(s.own, checkpoint))
			if got := s.read().Checkpoint; got != 0 && got != int64(len(checkpoint)) {
				c.errorf("a read tells a checkpoint of %d bytes, want %d or zero", got, len(checkpoint))
			}
		}
	}},
	{"Keep/bytes", keeper, func(c *check) {
		s := c.subject()
		s.acquire(s.own, s.longest())
		for what, checkpoint := range map[string]string{
			"all bytes": ofAllKinds(256),
			"a zero":    "\x00",
			"space":     " ",
			"newline":   "\r\n",
			"longest":   ofAllKinds(store.MaxCheckpoint),
			"zeros":     strings.Repeat("\x00", store.MaxCheckpoint),
		} {
			c.must("save of "+what, s.keep(s.own, checkpoint))
			s.holds(what, first, checkpoint)
		}
	}},
	{"Keep/too-long", keeper, func(c *check) {
		s := c.subject()
		s.acquire(s.own, s.longest())
		c.must("save", s.keep(s.own, "checkpoint"))
		s.refused("save of too much", errAny, func() error {
			_, err := s.own.(store.Checkpointer).Save(c.ctx, s.etag, []byte("late"), []byte(ofAllKinds(store.MaxCheckpoint+1)))
			return err
		})
		record := strings.Repeat("r", store.MaxRecord+1)
		_, err := s.own.(store.Checkpointer).Save(c.ctx, s.etag, []byte(record), []byte("late"))
		if err != nil {
			s.holds("after a refused record", first, "checkpoint")
		}
	}},
	{"Keep/own-copy", keeper, func(c *check) { // the caller may reuse its bytes
		s := c.subject()
		s.acquire(s.own, s.longest())
		record, checkpoint := []byte(first), []byte("checkpoint")
		stamp, err := s.own.(store.Checkpointer).Save(c.ctx, s.etag, record, checkpoint)
		c.must("save", err)
		s.etag, record[0], checkpoint[0] = stamp.ETag, 'x', 'x'
		loaded, err := s.own.(store.Checkpointer).Load(c.ctx, s.etag)
		c.must("load", err)
		if len(loaded) > 0 {
			loaded[0] = 'y'
		}
		s.holds("after the caller changed its bytes", first, "checkpoint")
	}},
	{"Keep/through", keeper, func(c *check) { // all that happens to a lease
		s := c.subject()
		s.acquire(s.own, s.longest())
		c.must("save", s.keep(s.own, "checkpoint"))
		s.renew("renew", s.own, nil)
		s.holds("renewed", first, "checkpoint")
		s.acquire(s.own, s.longest())
		s.holds("acquired again", first, "checkpoint")
		s.expire()
		s.renew("renew of what ran out", s.own, nil)
		s.acquire(s.own, s.longest()) // room for the look on a slow machine
		s.holds("revived", first, "checkpoint")
		s.expire()
		s.acquire(s.rest, s.longest())
		s.own = s.rest
		s.holds("taken over", first, "checkpoint")
		c.must("release", s.own.Release(c.ctx))
		s.own = s.lease()
		s.acquire(s.own, s.longest())
		s.holds("released and acquired", first, "checkpoint")
	}},
	{"Keep/broken", keeper | breaker, func(c *check) {
		s := c.subject()
		s.acquire(s.own, s.longest())
		c.must("save", s.keep(s.own, "checkpoint"))
		c.must("break", s.breakLease(-1))
		s.holds("breaking", first, "checkpoint")
		c.must("break", s.breakLease(0))
		s.want("save under a broken lease", s.keep(s.own, "late"), store.ErrLost)
		s.acquire(s.rest, s.longest())
		s.own = s.rest
		s.holds("broken and acquired", first, "checkpoint")
	}},
	{"Keep/handle", keeper, func(c *check) { // the id is the lease, not the handle
		s := c.subject()
		id := newID()
		s.acquire(s.store.Lease(s.name, id), s.longest())
		c.must("save by another handle", s.keep(s.store.Lease(s.name, id), "checkpoint"))
		s.own = s.store.Lease(s.name, id)
		s.holds("in a third", first, "checkpoint")
	}},
	{"Keep/expired", keeper, func(c *check) {
		s := c.subject()
		s.acquire(s.own, s.longest())
		c.must("save", s.keep(s.own, "checkpoint"))
		s.expire()
		s.want("save under an expired lease", s.keep(s.own, "late"), store.ErrLost)
		s.acquire(s.own, s.longest())
		s.holds("acquired again", first, "checkpoint")
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
	{"Keep/other", keeper, func(c *check) {
		s := c.subject()
		s.acquire(s.own, s.longest())
		c.must("save", s.keep(s.own, "checkpoint"))
		s.refused("save by another", store.ErrLost, func() error { return s.keep(s.rest, "late") })
		_, err := s.load(s.rest)
		s.want("load by another", err, store.ErrLost)
	}},
	{"Keep/old-etag", keeper, func(c *check) {
		s := c.subject()
		s.acquire(s.own, s.longest())
		c.must("save", s.keep(s.own, "checkpoint"))
		now := s.etag
		for _, next := range []func() error{
			func() error { return s.keep(s.own, "checkpoint") },
			func() error { return s.put(s.own) },
		} {
			old := now
			c.must("next", next())
			now = s.etag
			s.etag = old
			s.want("save with an old ETag", s.keep(s.own, "late"), store.ErrChanged)
			_, err := s.load(s.own)
			s.want("load with an old ETag", err, store.ErrChanged)
			s.etag = now
			s.holds("after it", first, "checkpoint")
		}
	}},
	{"Keep/late", keeper, func(c *check) {
		s := c.subject()
		s.acquire(s.own, s.longest())
		c.must("save", s.keep(s.own, "checkpoint"))
		old := s.etag
		s.expire()
		s.acquire(s.rest, s.longest())
		s.own, s.rest = s.rest, s.own
		s.refused("late save", store.ErrLost, func() error { return s.keep(s.rest, "late") })
		_, err := s.load(s.rest)
		s.want("late load", err, store.ErrLost)
		c.must("save of the next", s.keep(s.own, "next"))
		s.refused("later save", errAny, func() error {
			_, err := s.rest.(store.Checkpointer).Save(c.ctx, old, []byte("late"), []byte("late"))
			return err
		})
		s.holds("after all that", first, "next")
	}},
	{"Keep/race", keeper, func(c *check) { // one holder, many calls with one ETag
		s := c.subject()
		s.acquire(s.own, s.longest())
		etags := make([]string, 16)
		winner := c.race(len(etags), store.ErrChanged, func(i int) error {
			n := strconv.Itoa(i)
			stamp, err := s.own.(store.Checkpointer).Save(c.ctx, s.etag, []byte(n), []byte(n))
			etags[i] = stamp.ETag
			return err
		})
		s.etag = etags[winner]
		s.holds("saved by the winner", strconv.Itoa(winner), strconv.Itoa(winner))
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
	{"Keep/deleted", keeper | deleter, func(c *check) {
		s := c.subject()
		s.acquire(s.own, s.longest())
		c.must("save", s.keep(s.own, "checkpoint"))
		c.must("release", s.own.Release(c.ctx))
		c.must("delete", c.store.(Deleter).Delete(c.ctx, s.name))
		e, err := c.store.Create(c.ctx, s.name, []byte(first))
		c.must("create again", err)
		s.etag = e.ETag
		s.acquire(s.rest, s.longest())
		s.own = s.rest
		s.holds("made again", first, "")
	}},
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

// ofAllKinds returns n bytes.
func ofAllKinds(n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i)
	}
	return string(b)
}
