package storetest

import (
	"context"
	"io/fs"

	"github.com/soloist-go/soloist/store"
)

// unchanged is about the end of a lease under a condition: only one whose entry is as it was seen. What comes
// of it in each state of a lease is in the table of outcomes.
var unchanged = []property{
	{"BreakUnchanged/changed", conditional, func(c *check) {
		s := c.subject()
		s.acquire(s.own, s.longest())
		s.spared("leased", s.changed(), store.Leased)
		s.renew("own renew", s.own, nil)
		s.write("own write", s.own, nil)
		s.release("own release", s.own, nil)
	}},
	{"BreakUnchanged/changed-breaking", conditional | breaker, func(c *check) {
		s := c.subject()
		s.acquire(s.own, s.longest())
		old := s.changed()
		c.must("break", s.breakLease(-1))
		s.spared("breaking", old, store.Breaking)
		s.write("own write", s.own, nil)
	}},
	{"BreakUnchanged/changed-expired", conditional, func(c *check) {
		s := c.subject()
		s.acquire(s.own, s.shortest())
		old := s.changed()
		s.await(store.Expired)
		s.spared("expired", old, store.Expired)
		s.renew("own renew", s.own, nil)
	}},
	{"BreakUnchanged/no-etag", conditional, func(c *check) { // a condition that is empty is not met
		s := c.subject()
		s.acquire(s.own, s.longest())
		c.want("break", s.breakUnchanged(""), errAny)
		s.renew("own renew", s.own, nil)
	}},
	{"BreakUnchanged/successor", conditional, func(c *check) {
		s := c.subject()
		s.acquire(s.own, s.longest())
		old := s.changed()
		c.must("break", s.breakUnchanged(s.etag))
		s.oldIsLost("after the break")
		_, err := s.rest.Acquire(c.ctx, s.longest(), old)
		c.want("acquire with the ETag from before", err, store.ErrChanged)
		s.acquire(s.rest, s.longest())
		s.oldIsLost("under the new holder")
		s.write("new holder's write", s.rest, nil)
		s.oldIsLost("after the new holder's write")
		s.renew("new holder's renew", s.rest, nil)
		s.release("new holder's release", s.rest, nil)
	}},
	{"BreakUnchanged/save", conditional | keeper, func(c *check) {
		s := c.subject()
		s.acquire(s.own, s.longest())
		c.must("save", s.keep(s.own, "kept"))
		c.must("break", s.breakUnchanged(s.etag))
		c.want("late save", s.keep(s.own, "late"), store.ErrLost)
		s.acquire(s.rest, s.longest())
		c.want("late save under the new holder", s.keep(s.own, "late"), store.ErrLost)
		if got, err := s.load(s.rest); got != "kept" || err != nil {
			c.errorf("after it: got checkpoint %q, %v, want %q", got, err, "kept")
		}
	}},
	{"BreakUnchanged/repeated", conditional, func(c *check) {
		s := c.subject()
		s.acquire(s.own, s.longest())
		c.must("break", s.breakUnchanged(s.etag))
		c.must("break again", s.breakUnchanged(s.etag))
		s.acquire(s.rest, s.longest())
		s.write("write of a new holder", s.rest, nil)
	}},
	{"BreakUnchanged/late", conditional, func(c *check) {
		s := c.subject()
		s.acquire(s.own, s.longest())
		c.must("break", s.breakUnchanged(s.etag))
		s.acquire(s.rest, s.longest())
		c.must("break before the new holder's write", s.breakUnchanged(s.etag))
		s.write("new holder's write", s.rest, store.ErrLost)
		third, old := s.lease(), s.etag
		s.acquire(third, s.longest())
		s.write("third holder's write", third, nil)
		s.spared("under a holder that has written", old, store.Leased)
		s.renew("third holder's renew", third, nil)
	}},
	{"BreakUnchanged/missing", conditional, func(c *check) {
		name := newName()
		c.wantGone("break", c.store.(store.ConditionalBreaker).BreakUnchanged(c.ctx, name, c.subject().etag))
		_, err := c.store.Read(c.ctx, name)
		c.want("read after it", err, fs.ErrNotExist)
	}},
	{"BreakUnchanged/anew", conditional | deleter, func(c *check) {
		s := c.subject()
		old := s.etag
		c.must("delete", c.store.(Deleter).Delete(c.ctx, s.name))
		c.wantGone("break of none", s.breakUnchanged(old))
		e, err := c.store.Create(c.ctx, s.name, []byte(first))
		c.must("create again", err)
		s.etag = e.ETag
		s.acquire(s.own, s.longest())
		s.spared("made again", old, store.Leased)
		s.write("write", s.own, nil)
	}},
	{"BreakUnchanged/race", conditional, func(c *check) {
		for i := range 12 {
			c.subject().overtake(i)
		}
	}},
	{"BreakUnchanged/context", conditional, func(c *check) {
		s := c.subject()
		s.acquire(s.own, s.longest())
		s.promptly("break", func(ctx context.Context) error {
			return s.store.(store.ConditionalBreaker).BreakUnchanged(ctx, s.name, s.etag)
		})
		s.state("after it", store.Leased)
	}},
	{"BreakUnchanged/twins", conditional | twins, func(c *check) {
		near, far := c.pair()
		near.acquire(near.own, near.longest())
		near.write("write", near.own, nil)
		far.spared("after a write of the other instance", far.etag, store.Leased)
		c.must("break of the other instance's lease", far.breakUnchanged(near.etag))
		near.write("write after the break", near.own, store.ErrLost)
	}},
}

// changed has the holder write, and returns the ETag from before.
func (s *subject) changed() (old string) {
	old = s.etag
	s.must("write", s.put(s.own))
	return old
}

// spared checks that the lease is as it was after a break that has to be refused.
func (s *subject) spared(when, old string, state store.LeaseState) {
	s.want("break, "+when, s.breakUnchanged(old), store.ErrChanged)
	s.state("after a refused break, "+when, state)
}

// overtake has the holder write while many break its lease, all with one ETag. Either the write comes first,
// and no break is done, or it is refused.
func (s *subject) overtake(turn int) {
	const goroutines = 8
	s.acquire(s.own, s.longest())
	seen := s.etag
	errs := make([]error, goroutines)
	writer := turn % goroutines // the order in which they start may be a fixed one
	together(goroutines, func(i int) {
		if i == writer {
			stamp, err := s.own.Write(s.ctx, seen, []byte(first))
			if errs[i] = err; err == nil {
				s.etag = stamp.ETag
			}
			return
		}
		errs[i] = s.breakUnchanged(seen)
	})
	written := errs[writer] == nil
	for i, err := range errs {
		switch {
		case i != writer && written:
			s.want("break after the write", err, store.ErrChanged)
		case i != writer:
			s.want("break before the write", err, nil)
		case !written:
			s.want("write after the break", err, store.ErrLost)
		}
	}
	want := store.Broken
	if written {
		want = store.Leased
	}
	s.state("after the race", want)
	s.unchanged("read after the race", s.read().Revision, nil)
}
