package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/soloist-go/soloist/store"
)

// lists is about a listing: that it agrees with a read of each entry.
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
			c.must("create in "+app, errOf(c.store.Create(c.ctx, app+"/job", []byte(first))))
		}
		sh.lists("beside other apps")
	}},
	{"List/hidden", lister, func(c *check) {
		sh := c.shelf(2)
		c.must("create of an entry with a dot", errOf(c.store.Create(c.ctx, sh.app+"/.hidden", []byte(first))))
		if d, ok := c.store.(store.Documenter); ok {
			c.must("write of a document", errOf(d.WriteDocument(c.ctx, sh.app+"/.document", "", []byte("text"))))
		}
		sh.lists("beside names with a dot")
	}},
	{"List/records", lister, func(c *check) {
		sh := c.shelf(0)
		for i, record := range []string{"x", `{"a":"b=c, d;%41&<>]]>","e":[1,2],"f":"\\\"\u00e4"}`, ascii(), "a b c", strings.Repeat("r", store.MaxRecord)} {
			name := fmt.Sprintf("%s/job-%d", sh.app, i)
			c.must("create", errOf(c.store.Create(c.ctx, name, []byte(record))))
			sh.names = append(sh.names, name)
		}
		sh.lists("records of all kinds")
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
		s := &subject{check: c, store: c.store, name: sh.names[0]}
		s.etag = s.read().ETag
		l := s.lease()
		s.acquire(l, s.longest())
		s.write("write", l, nil)
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
	sh := &shelf{check: c, store: c.store.(store.Lister), app: newApp()}
	for i := range n {
		sh.names = append(sh.names, fmt.Sprintf("%s/job-%d", sh.app, i))
	}
	for _, name := range slices.Backward(sh.names) {
		c.must("create", errOf(c.store.Create(c.ctx, name, []byte(first))))
	}
	return sh
}

// listed: an entry is listed as it is, in each state, after a write under its lease, and after the lease.
func listed(s *subject, state store.LeaseState, _ string) {
	sh := &shelf{check: s.check, store: s.store.(store.Lister), app: strings.TrimSuffix(s.name, "/job"), names: []string{s.name}}
	sh.lists("in the state")
	if state.Live() {
		s.must("write", s.put(s.own))
		sh.lists("after a write")
		s.must("release", s.own.Release(s.ctx))
		sh.lists("after a release")
	}
}

// lists checks that a listing agrees with a read of each entry.
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
