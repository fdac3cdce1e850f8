package storetest

import (
	"bytes"
	"slices"
	"time"

	"github.com/soloist-go/soloist/store"
)

// before brings a new entry into a state. Where nothing has to run out, the
// lease is long, so that a slow machine does not run it out.
var before = []struct {
	name   string
	column int // of the table
	state  store.LeaseState
	needs  need
	reach  func(s *subject)
}{
	{"available", 0, store.Available, nothing, func(*subject) {}},
	{"released", 0, store.Available, nothing, func(s *subject) {
		s.acquire(s.own, s.longest())
		s.must("release", s.own.Release(s.ctx))
	}},
	{"leased", 1, store.Leased, nothing, func(s *subject) { s.acquire(s.own, s.longest()) }},
	{"breaking", 2, store.Breaking, breaker, func(s *subject) {
		s.acquire(s.own, s.longest())
		s.must("break", s.breakLease(-1))
	}},
	{"broken", 3, store.Broken, breaker, func(s *subject) {
		s.acquire(s.own, s.longest())
		s.must("break", s.breakLease(0))
	}},
	{"broken-unchanged", 3, store.Broken, conditional, func(s *subject) {
		s.acquire(s.own, s.longest())
		s.must("break", s.breakUnchanged(s.etag))
	}},
	{"expired", 4, store.Expired, nothing, (*subject).expire},
}

// after is what a call in a state comes to: an error, which changes nothing, or
// a new state, in which own or other may be the holder.
type after struct {
	err   error
	state store.LeaseState
	other bool
}

var (
	held, lost           = after{err: store.ErrHeld}, after{err: store.ErrLost}
	leased, leasedToRest = after{state: store.Leased}, after{state: store.Leased, other: true}
	free                 = after{state: store.Available}
	breaking, broken     = after{state: store.Breaking}, after{state: store.Broken}
)

// table is the outcome table of Lease Blob, as far as a Store offers its calls
// (https://learn.microsoft.com/rest/api/storageservices/lease-blob).
var table = []struct {
	call  string
	needs need
	do    func(s *subject) error
	//    available, leased, breaking, broken, expired
	after [5]after
}{
	{"acquire-own", nothing, (*subject).acquireOwn, [5]after{leased, leased, held, leased, leased}},
	{"acquire-other", nothing, (*subject).acquireOther, [5]after{leasedToRest, held, held, leasedToRest, leasedToRest}},
	{"renew-own", nothing, func(s *subject) error { return s.told(s.own.Renew(s.ctx)) }, [5]after{lost, leased, lost, lost, leased}},
	{"renew-other", nothing, func(s *subject) error { return s.told(s.rest.Renew(s.ctx)) }, [5]after{lost, lost, lost, lost, lost}},
	{"release-own", nothing, func(s *subject) error { return s.own.Release(s.ctx) }, [5]after{lost, free, free, free, free}},
	{"release-other", nothing, func(s *subject) error { return s.rest.Release(s.ctx) }, [5]after{lost, lost, lost, lost, lost}},
	{"write-own", nothing, func(s *subject) error { return s.put(s.own) }, [5]after{lost, leased, breaking, lost, lost}},
	{"write-other", nothing, func(s *subject) error { return s.put(s.rest) }, [5]after{lost, lost, lost, lost, lost}},
	{"save-own", keeper, func(s *subject) error { return s.keep(s.own, "checkpoint") }, [5]after{lost, leased, breaking, lost, lost}},
	{"save-other", keeper, func(s *subject) error { return s.keep(s.rest, "checkpoint") }, [5]after{lost, lost, lost, lost, lost}},
	{"load-own", keeper, func(s *subject) error { _, err := s.load(s.own); return err }, [5]after{lost, leased, breaking, lost, lost}},
	{"load-other", keeper, func(s *subject) error { _, err := s.load(s.rest); return err }, [5]after{lost, lost, lost, lost, lost}},
	{"acquire-write-own", combiner, func(s *subject) error { return s.acquireWrite(s.own) }, [5]after{leased, leased, held, leased, leased}},
	{"acquire-write-other", combiner, func(s *subject) error { return s.acquireWrite(s.rest) }, [5]after{leasedToRest, held, held, leasedToRest, leasedToRest}},
	{"write-release-own", combiner, func(s *subject) error { return s.writeRelease(s.own) }, [5]after{lost, free, free, lost, lost}},
	{"write-release-other", combiner, func(s *subject) error { return s.writeRelease(s.rest) }, [5]after{lost, lost, lost, lost, lost}},
	{"break-now", breaker, func(s *subject) error { return s.breakLease(0) }, [5]after{lost, broken, broken, broken, broken}},
	{"break-later", breaker, func(s *subject) error { return s.breakLease(s.longest() / 2) }, [5]after{lost, breaking, breaking, broken, broken}},
	{"break-unchanged", conditional, func(s *subject) error { return s.breakUnchanged(s.etag) }, [5]after{lost, broken, broken, broken, broken}},
}

// told checks that a call of a lease returns the ETag that the entry had. The scheduler assumes that a success without an
// ETag was not answered by the store.
func (s *subject) told(r store.Revision, err error) error {
	if err == nil && r.ETag != s.etag {
		s.errorf("told is ETag %q, want %q", r.ETag, s.etag)
	}
	return err
}

func (s *subject) acquireOwn() error {
	return s.told(s.own.Acquire(s.ctx, s.longest(), s.etag))
}

func (s *subject) acquireOther() error {
	return s.told(s.rest.Acquire(s.ctx, s.longest(), s.etag))
}

func (s *subject) put(l store.Lease) error {
	stamp, err := l.Write(s.ctx, s.etag, []byte(first))
	if err == nil {
		s.etag = stamp.ETag
	}
	return err
}

// each makes a test of each state: the body gets an entry in it, and an ETag from before its last write.
func each(prefix string, needs need, body func(s *subject, state store.LeaseState, old string), states ...store.LeaseState) (all []property) {
	for _, b := range before {
		if len(states) > 0 && !slices.Contains(states, b.state) {
			continue
		}
		all = append(all, property{prefix + b.name, b.needs | needs, func(c *check) {
			s := c.subject()
			old := s.newer()
			b.reach(s)
			body(s, b.state, old)
		}})
	}
	return all
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

// outcomes makes a test of each cell, and one of a second release in each state
// that knows a first.
func outcomes() []property {
	var all []property
	for _, b := range before {
		for _, row := range table {
			all = append(all, property{"Outcome/" + b.name + "/" + row.call, b.needs | row.needs, func(c *check) {
				s := c.subject()
				b.reach(s)
				s.untouched("before the call", b.state)
				s.cell(row.call, row.do, row.after[b.column], b.state)
			}})
		}
		if b.column > 0 {
			all = append(all, property{"Outcome/" + b.name + "/release-twice", b.needs, func(c *check) {
				s := c.subject()
				b.reach(s)
				s.release("first release", s.own, nil)
				s.cell("second release", func(s *subject) error { return s.own.Release(s.ctx) }, lost, store.Available)
			}})
		}
	}
	return all
}

// untouched checks that an entry has the first record, the known ETag and a state.
func (s *subject) untouched(when string, state store.LeaseState) {
	if e := s.read(); e.State != state || string(e.Record) != first || e.ETag != s.etag {
		s.errorf("%s: got %s, record %s, ETag %s, want %s, %s, %s", when, e.State, e.Record, e.ETag, state, first, s.etag)
	}
}

// cell makes the call and then finds out whether the entry is in the state that
// it should be in; an error should have left it in the state before.
func (s *subject) cell(call string, do func(*subject) error, want after, before store.LeaseState) {
	s.want(call, do(s), want.err)
	if want.err != nil {
		want.state = before
	}
	s.untouched("after "+call, want.state)
	s.probe(call, want)
}

// probe finds out who holds the lease from what own and other may do. Nothing
// is asked here that has a cell of its own: a store that differs in one cell
// should fail in that one.
func (s *subject) probe(call string, want after) {
	may := func(holder bool, ok bool) error {
		if holder && ok {
			return nil
		}
		return store.ErrLost
	}
	s.write("own write after "+call, s.own, may(!want.other, want.state.Live()))
	s.write("other write after "+call, s.rest, may(want.other, want.state.Live()))
	renewable := want.state == store.Leased || want.state == store.Expired
	s.renew("own renew after "+call, s.own, may(!want.other, renewable))
	if want.other {
		s.renew("other renew after "+call, s.rest, nil)
	}
}

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
		long := bytes.Repeat([]byte("x"), store.MaxRecord+1)
		c.want("acquire, and write too much", errOf(l.AcquireWrite(c.ctx, s.longest(), s.etag, long)), errAny)
		s.untouched("after it", store.Available)
		c.want("acquire for a day, and write", errOf(l.AcquireWrite(c.ctx, 24*time.Hour, s.etag, []byte(first))), errAny)
		s.untouched("after it", store.Available)
		s.acquire(s.own, s.longest())
		c.want("write too much, and release", errOf(l.WriteRelease(c.ctx, s.etag, long)), errAny)
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
	{"Combine/record", combiner, func(c *check) {
		s := c.subject()
		l := s.own.(store.Combiner)
		c.must("acquire and write", s.kept(l.AcquireWrite(s.ctx, s.longest(), s.etag, []byte("a"))))
		if got := string(s.read().Record); got != "a" {
			c.errorf("acquire and write has left the record %s", got)
		}
		c.must("write and release", s.kept(l.WriteRelease(s.ctx, s.etag, []byte("b"))))
		if got := string(s.read().Record); got != "b" {
			c.errorf("write and release has left the record %s", got)
		}
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
