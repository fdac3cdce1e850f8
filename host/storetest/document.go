package storetest

import (
	"context"
	"errors"
	"io/fs"
	"strconv"
	"strings"
	"time"

	"github.com/soloist-go/soloist/store"
)

// documents is about what is kept without a lease, guarded by its ETag alone.
var documents = []property{
	{"Document/missing", documenter, func(c *check) {
		p := c.paper()
		c.want("read of no document", errOf(p.fetch("")), fs.ErrNotExist)
		c.want("read of no document with an ETag", errOf(p.fetch("some-etag")), fs.ErrNotExist)
		c.want("write with an ETag of no document", p.try("some-etag", "late"), store.ErrChanged)
		c.want("read after it", errOf(p.fetch("")), fs.ErrNotExist)
	}},
	{"Document/unchanged", documenter, func(c *check) {
		p := c.paper()
		p.put("first")
		old := p.guard
		d, err := p.fetch(p.guard)
		c.want("read with the present ETag", err, store.ErrUnchanged)
		if len(d.Body) > 0 {
			c.errorf("read with the present ETag: got %d bytes, want none", len(d.Body))
		}
		p.put("second")
		if d, err = p.fetch(old); err != nil || string(d.Body) != "second" || d.ETag != p.guard {
			c.errorf("read with an old ETag: got %q, ETag %s, %v, want %q, %s", d.Body, d.ETag, err, "second", p.guard)
		}
	}},
	{"Document/deleted", documenter | deleter, func(c *check) {
		p := c.paper()
		p.put("first")
		old := p.guard
		if err := c.store.(Deleter).Delete(c.ctx, p.name); err != nil {
			c.notef("documents can not be deleted: %v", err)
			return
		}
		c.want("read after a delete", errOf(p.fetch(old)), fs.ErrNotExist)
		c.want("write after a delete", p.try(old, "late"), store.ErrChanged)
		c.must("create again", p.try("", "first"))
		if p.guard == old {
			c.errorf("a document that was made again got ETag %s, which the one before had", old)
		}
		p.holds("made again")
	}},
	{"Document/apart", documenter, func(c *check) {
		others := []*content{c.paper(), c.paper(), c.paper()}
		name := strings.TrimPrefix(others[0].name, "storetest/.")
		others[1].name, others[2].name = others[0].name+"-2", "storetest-2/."+name
		for i, p := range others {
			p.put(strconv.Itoa(i))
		}
		c.must("create of an entry without the dot", errOf(c.store.Create(c.ctx, "storetest/"+name, []byte(first))))
		for _, p := range others {
			p.holds("beside others")
		}
	}},
	{"Document/counter", documenter, func(c *check) { // no addition gets lost
		p := c.paper()
		p.put("0")
		c.count(p.add)
		d, err := p.fetch("")
		if want := strconv.Itoa(additions); err != nil || string(d.Body) != want {
			c.errorf("the document counts %s, %v, want %s", d.Body, err, want)
		}
	}},
	{"Document/date", documenter, func(c *check) {
		p := c.paper()
		e, _ := c.store.Read(c.ctx, newName())
		look := func(what string, date time.Time, err, want error) {
			c.want(what, err, want)
			if off := time.Since(date).Abs(); date.IsZero() != e.Date.IsZero() || !date.IsZero() && off > tolerance {
				c.errorf("%s: Date %v, where a read of no entry tells %v", what, date, e.Date)
			}
		}
		d, err := p.fetch("")
		look("read of no document", d.Date, err, fs.ErrNotExist)
		s := c.store.(store.Documenter)
		r, err := s.WriteDocument(c.ctx, p.name, "", []byte("first"))
		look("create", r.Date, err, nil)
		d, err = p.fetch("")
		look("read", d.Date, err, nil)
		d, err = p.fetch(r.ETag)
		look("read with the present ETag", d.Date, err, store.ErrUnchanged)
		r, err = s.WriteDocument(c.ctx, p.name, r.ETag, []byte("second"))
		look("write", r.Date, err, nil)
	}},
	{"Context/document", documenter, func(c *check) {
		p, s := c.paper(), c.store.(store.Documenter)
		p.put("first")
		c.promptly("read of a document", func(ctx context.Context) error { return errOf(s.ReadDocument(ctx, p.name, "")) })
		c.promptly("write of a document", func(ctx context.Context) error {
			return errOf(s.WriteDocument(ctx, p.name, p.guard, []byte("late")))
		})
		p.holds("after it")
	}},
}

func (c *check) paper() *content { return c.content(aDocument) }

// fetch reads the document unless it has the ETag.
func (c *content) fetch(etag string) (store.Document, error) {
	return c.store.(store.Documenter).ReadDocument(c.ctx, c.name, etag)
}

// add counts one further. False: another was faster.
func (p *content) add() bool {
	d, err := p.fetch("")
	p.want("read", err, nil)
	n, err := strconv.Atoi(string(d.Body))
	p.want("read of the number", err, nil)
	p.pause() // so that others look at the same document
	_, err = p.write(d.ETag, []byte(strconv.Itoa(n+1)))
	if !errors.Is(err, store.ErrChanged) {
		p.want("add", err, nil)
	}
	return err == nil
}
