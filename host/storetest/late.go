package storetest

import (
	"context"
	"io/fs"
	"time"

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
		c.want("acquire with the ETag from before", errOf(s.own.Acquire(c.ctx, s.longest(), old)), store.ErrChanged)
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
		s.want("old load "+when, errOf(s.load(s.own)), store.ErrLost)
	}
}

// conditions: a lease is acquired for what was seen.
func conditions(s *subject, state store.LeaseState, old string) {
	s.want("acquire with an old ETag", errOf(s.rest.Acquire(s.ctx, s.longest(), old)), store.ErrChanged)
	s.untouched("after it", state)
	s.probe("it", after{state: state})
	s.acquire(s.own, s.longest())
}

// unchanged is about the end of a lease under a condition: only one whose entry is as it was seen. What comes
// of it in each state of a lease is in the table of outcomes.
var unchanged = []property{
	{"BreakUnchanged/no-etag", conditional, func(c *check) { // a condition that is empty is not met
		s := c.leased()
		c.want("break", s.breakUnchanged(""), errAny)
		s.renew("own renew", s.own, nil)
	}},
	{"BreakUnchanged/late", conditional, func(c *check) {
		s := c.leased()
		c.must("break", s.breakUnchanged(s.etag))
		s.acquire(s.rest, s.longest())
		c.must("break before the new holder's write", s.breakUnchanged(s.etag))
		s.write("new holder's write", s.rest, store.ErrLost)
		third, old := s.lease(), s.etag
		s.acquire(third, s.longest())
		s.write("third holder's write", third, nil)
		s.want("break under a holder that has written", s.breakUnchanged(old), store.ErrChanged)
		s.renew("third holder's renew", third, nil)
	}},
	{"BreakUnchanged/missing", conditional, func(c *check) {
		name := newName()
		c.wantGone("break", c.store.(store.ConditionalBreaker).BreakUnchanged(c.ctx, name, c.subject().etag))
		c.want("read after it", errOf(c.store.Read(c.ctx, name)), fs.ErrNotExist)
	}},
	{"BreakUnchanged/race", conditional, func(c *check) {
		for i := range 12 {
			c.subject().overtake(i)
		}
	}},
	{"BreakUnchanged/twins", conditional | twins, func(c *check) {
		near, far := c.pair()
		near.acquire(near.own, near.longest())
		near.write("write", near.own, nil)
		far.want("break after a write of the other instance", far.breakUnchanged(far.etag), store.ErrChanged)
		c.must("break of the other instance's lease", far.breakUnchanged(near.etag))
		near.write("write after the break", near.own, store.ErrLost)
	}},
}

// spared: the lease of an entry that has changed is not broken.
func spared(s *subject, state store.LeaseState, old string) {
	s.want("break", s.breakUnchanged(old), store.ErrChanged)
	s.untouched("after a refused break", state)
	s.probe("it", after{state: state})
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
	s.untouched("after the race", want)
}

// calls is about a context that is over before the call: an error, soon, and nothing done.
func calls() []property {
	all := []property{
		{"Context/create", nothing, func(c *check) {
			name := newName()
			c.promptly("create", func(ctx context.Context) error { return errOf(c.store.Create(ctx, name, []byte(first))) })
			c.want("read after it", errOf(c.store.Read(c.ctx, name)), fs.ErrNotExist)
		}},
		{"Context/read", nothing, func(c *check) {
			s := c.subject()
			s.promptly("read", func(ctx context.Context) error { return errOf(s.store.Read(ctx, s.name)) })
		}},
	}
	for _, row := range table {
		reach := (*check).leased
		switch row.call {
		case "acquire-own":
			reach = (*check).subject
		case "renew-own":
			reach = (*check).expired
		}
		all = append(all, property{"Context/" + row.call, row.needs, func(c *check) {
			s := reach(c)
			state := s.read().State
			s.promptly(row.call, func(ctx context.Context) error {
				late := *s
				late.check = &check{ctx: ctx, store: c.store}
				return row.do(&late)
			})
			s.untouched("after "+row.call, state)
		}})
	}
	return all
}

func (c *check) promptly(what string, call func(context.Context) error) {
	const prompt = 5 * time.Second // a busy machine, not a try of the network
	start := time.Now()
	c.want(what+" with a context that is over", call(ended(c.ctx)), context.Canceled)
	if took := time.Since(start); took > prompt {
		c.errorf("%s took %v, want at most %v", what, took, prompt)
	}
}
