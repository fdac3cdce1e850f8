package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/soloist-go/soloist/store"
)

// lists is about a listing: that it tells what a read of each entry tells.
var lists = []property{
	{"List/none", lister, func(c *check) {
		c.shelf(0).lists("an app without entries")
	}},
	{"List/order", lister, func(c *check) {
		sh := c.shelf(7)
		sh.lists("seven entries")
		var all []string
		c.must("list", sh.store.List(c.ctx, sh.app, func(name string, _ store.Entry) bool {
			all = append(all, name)
			return len(all) < 3
		}))
		if want := sh.names[:3]; !slices.Equal(all, want) {
			c.errorf("stopped after three: got %v, want %v", all, want)
		}
	}},
	{"List/apart", lister, func(c *check) { // apps whose names begin like another
		sh := c.shelf(2)
		for _, app := range []string{sh.app + "-2", sh.app[:len(sh.app)-1]} {
			_, err := c.store.Create(c.ctx, app+"/job", []byte(first))
			c.must("create in "+app, err)
		}
		sh.lists("beside other apps")
	}},
	{"List/hidden", lister, func(c *check) {
		sh := c.shelf(2)
		_, err := c.store.Create(c.ctx, sh.app+"/.hidden", []byte(first))
		c.must("create of an entry with a dot", err)
		if d, ok := c.store.(store.Documenter); ok {
			_, err = d.WriteDocument(c.ctx, sh.app+"/.document", "", []byte("text"))
			c.must("write of a document", err)
		}
		sh.lists("beside names with a dot")
	}},
	{"List/records", lister, func(c *check) {
		sh := c.shelf(0)
		for i, record := range []string{"x", `{"a":"b=c, d;%41&<>]]>","e":[1,2],"f":"\\\"\u00e4"}`, ascii(), "a b c", strings.Repeat("r", store.MaxRecord)} {
			name := fmt.Sprintf("%s/job-%d", sh.app, i)
			_, err := c.store.Create(c.ctx, name, []byte(record))
			c.must("create", err)
			sh.names = append(sh.names, name)
		}
		sh.lists("records of all kinds")
	}},
	{"List/states", lister, func(c *check) {
		sh := c.shelf(3)
		one := sh.subject(0)
		one.acquire(one.own, one.longest())
		two := sh.subject(1)
		two.expire()
		sh.lists("an expired lease, and a longer one")
		c.must("release", one.own.Release(c.ctx))
		sh.lists("a lease that was released")
	}},
	{"List/broken", lister | breaker, func(c *check) {
		sh := c.shelf(2)
		for i, period := range []time.Duration{-1, 0} {
			s := sh.subject(i)
			s.acquire(s.own, s.longest())
			c.must("break", s.breakLease(period))
		}
		sh.lists("a lease that ends, and one that has ended")
	}},
	{"List/written", lister, func(c *check) {
		sh := c.shelf(2)
		s := sh.subject(0)
		s.acquire(s.own, s.longest())
		for range 3 {
			c.must("write", s.put(s.own))
			sh.lists("after a write")
		}
	}},
	{"List/checkpoints", lister | keeper, func(c *check) {
		sh := c.shelf(2)
		s := sh.subject(1)
		s.acquire(s.own, s.longest())
		c.must("save", s.keep(s.own, "a checkpoint"))
		sh.lists("an entry with a checkpoint")
	}},
	{"List/deleted", lister | deleter, func(c *check) {
		sh := c.shelf(3)
		c.must("delete", c.store.(Deleter).Delete(c.ctx, sh.names[1]))
		sh.names = slices.Delete(sh.names, 1, 2)
		sh.lists("after a delete")
	}},
	{"List/context", lister, func(c *check) {
		sh := c.shelf(2)
		c.promptly("list", func(ctx context.Context) error {
			return sh.store.List(ctx, sh.app, func(string, store.Entry) bool { return true })
		})
		ctx, cancel := context.WithCancelCause(c.ctx)
		told := 0
		_ = sh.store.List(ctx, sh.app, func(string, store.Entry) bool { told++; cancel(errors.New("enough")); return true })
		if told == 0 {
			c.errorf("a list whose context ends during the first entry told nothing")
		}
	}},
	{"List/twins", lister | twins, func(c *check) {
		sh := c.shelf(2)
		far := *sh
		far.store = c.other.(store.Lister)
		far.lists("made by another instance")
		s := sh.subject(0)
		s.acquire(s.own, s.longest())
		s.write("write", s.own, nil)
		far.lists("written by another instance")
	}},
}

// shelf is an app of its own for one test.
type shelf struct {
	*check
	store store.Lister
	app   string
	names []string // of its entries, in order
}

// shelf makes an app with n entries, the last one first.
func (c *check) shelf(n int) *shelf {
	sh := &shelf{check: c, store: c.store.(store.Lister), app: strings.Replace(newName(), "/", "-", 1)}
	for i := range n {
		sh.names = append(sh.names, fmt.Sprintf("%s/job-%d", sh.app, i))
	}
	for _, name := range slices.Backward(sh.names) {
		_, err := c.store.Create(c.ctx, name, []byte(first))
		c.must("create", err)
	}
	return sh
}

// subject is one entry of the shelf.
func (sh *shelf) subject(i int) *subject {
	s := &subject{check: sh.check, store: sh.check.store, name: sh.names[i]}
	s.etag, s.own, s.rest = s.read().ETag, s.lease(), s.lease()
	return s
}

// lists checks that a listing tells of each entry what a read tells.
func (sh *shelf) lists(when string) {
	var names []string
	sh.must("list of "+when, sh.store.List(sh.ctx, sh.app, func(name string, got store.Entry) bool {
		names = append(names, name)
		want, err := sh.check.store.Read(sh.ctx, name)
		sh.must("read of what is listed", err)
		if got.ETag != want.ETag || got.State != want.State || string(got.Record) != string(want.Record) || got.Checkpoint != want.Checkpoint || got.Date.IsZero() != want.Date.IsZero() {
			sh.errorf("%s: %s is listed as ETag %s, %s, record %s, %d bytes, Date %v, and read as ETag %s, %s, record %s, %d bytes, Date %v", when, name,
				got.ETag, got.State, clip(string(got.Record)), got.Checkpoint, got.Date, want.ETag, want.State, clip(string(want.Record)), want.Checkpoint, want.Date)
		}
		return true
	}))
	if !slices.Equal(names, sh.names) {
		sh.errorf("%s: listed are %v, want %v", when, names, sh.names)
	}
}
