package storetest

import (
	"context"
	"crypto/rand"
	"errors"
	"io/fs"
	"strings"
	"time"

	"github.com/soloist-go/soloist/store"
)

// lives is about how entries come and go, and what the calls return about them.
var lives = []property{
	{"Create/entry", nothing, func(c *check) {
		name := newName()
		made, err := c.store.Create(c.ctx, name, []byte(first))
		c.must("create", err)
		got, err := c.store.Read(c.ctx, name)
		c.must("read", err)
		for what, e := range map[string]store.Entry{"create": made, "read": got} {
			if string(e.Record) != first || e.State != store.Available || e.ETag == "" || e.ETag != made.ETag {
				c.errorf("%s told %+v, want record %s, available, one ETag", what, e, first)
			}
		}
	}},
	{"Missing", nothing, missing},
	{"Missing/break", breaker, func(c *check) {
		c.want("break", c.store.(store.LeaseBreaker).Break(c.ctx, newName(), 0), fs.ErrNotExist)
	}},
	{"Missing/keep", keeper, func(c *check) {
		there := c.subject()
		gone := &subject{check: c, store: c.store, name: newName(), etag: there.etag}
		c.wantGoneOrLost("save", gone.keep(gone.lease(), "checkpoint"))
		c.wantGoneOrLost("load", errOf(gone.load(gone.lease())))
		c.want("read after all that", errOf(c.store.Read(c.ctx, gone.name)), fs.ErrNotExist)
	}},
	{"Missing/delete", deleter, func(c *check) {
		c.want("delete", c.store.(Deleter).Delete(c.ctx, newName()), fs.ErrNotExist)
	}},
	{"Delete/leased", deleter, func(c *check) {
		s := c.leased()
		s.want("delete", c.store.(Deleter).Delete(c.ctx, s.name), store.ErrLost)
		s.write("own write", s.own, nil)
	}},
	{"Delete/again", deleter, func(c *check) {
		c.recreated(func(name, _ string) error { return c.store.(Deleter).Delete(c.ctx, name) })
	}},
	{"Remove/again", remover, func(c *check) {
		c.recreated(func(name, etag string) error { return c.store.(store.Remover).Remove(c.ctx, name, etag) })
	}},
	{"Apart", nothing, func(c *check) {
		job := strings.TrimPrefix(newName(), "storetest/")
		c.apart("storetest/"+job, "storetest/"+job+"-2", "storetest-2/"+job, "storetest/."+job)
	}},
	{"Apart/long", nothing, func(c *check) { // a store may cut names, in silence
		app, job := longPart(), longPart()
		c.apart(app+"/"+job, app+"/"+job[:62]+"-", app[:62]+"-/"+job)
	}},
	{"Limits", nothing, limits},
	{"Date", nothing, dates},
}

// again creates the entry a second time, which has to change nothing.
func again(s *subject, state store.LeaseState, _ string) {
	s.want("second create", errOf(s.store.Create(s.ctx, s.name, []byte("second"))), fs.ErrExist)
	s.untouched("after a second create", state)
	s.probe("it", after{state: state})
}

func missing(c *check) {
	there := c.subject() // for an ETag that is well formed
	app, _, _ := strings.Cut(newName(), "/")
	for _, name := range []string{newName(), app + strings.ToLower(newID()) + "/job"} {
		l := c.store.Lease(name, newID())
		c.want("read", errOf(c.store.Read(c.ctx, name)), fs.ErrNotExist)
		c.wantGone("acquire", errOf(l.Acquire(c.ctx, there.shortest(), there.etag)))
		c.want("renew", errOf(l.Renew(c.ctx)), fs.ErrNotExist)
		c.wantGone("write", errOf(l.Write(c.ctx, there.etag, []byte(first))))
		c.want("release", l.Release(c.ctx), fs.ErrNotExist)
		c.want("read after all that", errOf(c.store.Read(c.ctx, name)), fs.ErrNotExist)
	}
}

// recreated: nothing from before the end of an entry is worth anything.
func (c *check) recreated(end func(name, etag string) error) {
	s := c.subject()
	old := s.newer()
	s.expire()
	last := s.etag
	s.must("end", end(s.name, s.etag))
	c.want("read after it", errOf(c.store.Read(c.ctx, s.name)), fs.ErrNotExist)
	if is[store.ConditionalBreaker](c.store) {
		s.wantGone("break of none", s.breakUnchanged(last))
	}
	e, err := c.store.Create(c.ctx, s.name, []byte(first))
	c.must("create again", err)
	if s.etag = e.ETag; e.ETag == old || e.ETag == last {
		c.errorf("made again: got ETag %s, which the one before had", e.ETag)
	}
	for _, old := range []string{old, last} {
		c.want("acquire with the old ETag", errOf(s.rest.Acquire(c.ctx, s.shortest(), old)), store.ErrChanged)
		if is[store.Remover](c.store) {
			c.want("remove with the old ETag", s.remove(old), store.ErrChanged)
		}
	}
	s.renew("old renew", s.own, store.ErrLost)
	s.untouched("after it", store.Available)
	s.acquire(s.rest, s.longest())
	if is[store.ConditionalBreaker](c.store) {
		c.want("break with the old ETag", s.breakUnchanged(last), store.ErrChanged)
	}
	if is[store.Checkpointer](s.rest) {
		s.own = s.rest
		s.holds("made again", first, "")
	}
}

// longPart returns a part of a name that is as long as may be.
func longPart() string { return (strings.ToLower(rand.Text()) + strings.Repeat("x", 63))[:63] }

// apart: what happens to one entry happens to no other, however alike the names.
func (c *check) apart(names ...string) {
	id := newID()
	var all []*subject
	for _, name := range names {
		s := &subject{check: c, store: c.store, name: name}
		e, err := c.store.Create(c.ctx, s.name, []byte("record of "+s.name))
		c.must("create "+s.name, err)
		s.etag, s.own = e.ETag, c.store.Lease(s.name, id)
		all = append(all, s)
	}
	one := all[0]
	one.acquire(one.own, one.longest())
	one.write("write", one.own, nil)
	for _, s := range all[1:] {
		e := s.read()
		if got, want := string(e.Record), "record of "+s.name; got != want || e.State != store.Available || e.ETag != s.etag {
			c.errorf("%s: got %+v, want it untouched", s.name, e)
		}
		s.write("write to "+s.name+" under the lease of "+one.name, s.own, store.ErrLost)
	}
}

func limits(c *check) {
	s := c.subject()
	if s.shortest() <= 0 || s.longest() < s.shortest() {
		c.fatalf("limits: got %v to %v", s.shortest(), s.longest())
	}
	for _, d := range []time.Duration{-s.longest(), 0, s.shortest() / 2, s.longest() + time.Second, 10 * s.longest()} {
		c.want("acquire for "+d.String(), errOf(s.own.Acquire(c.ctx, d, s.etag)), errAny)
		s.state("after acquire for "+d.String(), store.Available)
	}
	for _, d := range []time.Duration{s.shortest(), s.longest()} {
		s.acquire(s.own, d)
		s.release("release", s.own, nil)
	}
}

// tolerance is how far a Date may be from this machine's time.
const tolerance = 5 * time.Second

// dates: the two clocks need not agree better than machines with NTP do, and a
// service may cut its own to seconds.
func dates(c *check) {
	var last time.Time
	told := false
	look := func(what string, d time.Time, err error) {
		c.must(what, err)
		if d.IsZero() {
			return
		}
		told = true
		if off := time.Since(d).Abs(); off > tolerance {
			c.errorf("%s: Date %v is %v away from this machine's time, want at most %v", what, d, off, tolerance)
		}
		if d.Before(last) {
			c.errorf("%s: Date %v is before %v of the call before", what, d, last)
		}
		last = d
	}
	name := newName()
	none, err := c.store.Read(c.ctx, name)
	if !errors.Is(err, fs.ErrNotExist) {
		c.errorf("read of no entry: got %v, want fs.ErrNotExist", err)
	}
	look("read of no entry", none.Date, nil)
	e, err := c.store.Create(c.ctx, name, []byte(first))
	look("create", e.Date, err)
	if none.Date.IsZero() != e.Date.IsZero() {
		c.errorf("a Date is told of an entry (%v) but not of none (%v), or the other way round", e.Date, none.Date)
	}
	l := c.store.Lease(name, newID())
	shortest, _ := c.store.Limits()
	for range 5 {
		e, err = c.store.Read(c.ctx, name)
		look("read", e.Date, err)
		st, err := l.Acquire(c.ctx, shortest, e.ETag)
		look("acquire", st.Date, err)
		st, err = l.Renew(c.ctx)
		look("renew", st.Date, err)
		st, err = l.Write(c.ctx, e.ETag, []byte(first))
		look("write", st.Date, err)
		c.pause()
	}
	if !told {
		c.notef("the store tells no Date")
	}
}

// removals is about removing an entry: this succeeds only if its lease is free and the entry is unchanged.
var removals = []property{
	{"Remove/missing", remover, func(c *check) {
		s := c.subject()
		c.wantGone("remove", c.store.(store.Remover).Remove(c.ctx, newName(), s.etag))
	}},
	{"Remove/context", remover, func(c *check) {
		s := c.subject()
		s.promptly("remove", func(ctx context.Context) error {
			return s.store.(store.Remover).Remove(ctx, s.name, s.etag)
		})
		s.state("after it", store.Available)
	}},
}

// removed: an entry goes whose lease is over.
func removed(s *subject, state store.LeaseState, old string) {
	want := store.ErrChanged
	if state.Live() {
		want = errAny // either reason is true
	}
	s.want("remove with the old ETag", s.remove(old), want)
	s.untouched("after it", state)
	if state.Live() {
		s.want("remove", s.remove(s.etag), store.ErrLost)
		s.untouched("after it", state)
		s.probe("it", after{state: state})
		return
	}
	s.must("remove", s.remove(s.etag))
	s.want("read after it", errOf(s.store.Read(s.ctx, s.name)), fs.ErrNotExist)
	s.renew("renew after it", s.own, fs.ErrNotExist)
	s.wantGone("remove again", s.remove(s.etag))
}

// remove removes the entry if it still has an ETag.
func (s *subject) remove(etag string) error {
	return s.store.(store.Remover).Remove(s.ctx, s.name, etag)
}
