package storetest

import (
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
		_, err := p.store.ReadDocument(c.ctx, p.name, "")
		c.want("read of no document", err, fs.ErrNotExist)
		_, err = p.store.ReadDocument(c.ctx, p.name, "some-etag")
		c.want("read of no document with an ETag", err, fs.ErrNotExist)
		c.want("write with an ETag of no document", p.put("some-etag", "late"), store.ErrChanged)
		_, err = p.store.ReadDocument(c.ctx, p.name, "")
		c.want("read after it", err, fs.ErrNotExist)
	}},
	{"Document/kept", documenter, func(c *check) {
		p := c.paper()
		for what, body := range map[string]string{
			"text":      "a document",
			"nothing":   "",
			"all bytes": ofAllKinds(256),
			"a zero":    "\x00",
			"space":     " ",
			"newline":   "\r\n",
			"longest":   ofAllKinds(store.MaxDocument),
		} {
			c.must("write of "+what, p.put(p.etag, body))
			p.holds(what, body)
		}
	}},
	{"Document/created", documenter, func(c *check) {
		p := c.paper()
		c.must("create", p.put("", "first"))
		p.holds("created", "first")
		c.want("second create", p.put("", "second"), store.ErrChanged)
		p.holds("after a second create", "first")
	}},
	{"Document/old-etag", documenter, func(c *check) {
		p := c.paper()
		c.must("create", p.put("", "first"))
		old := p.etag
		c.must("write", p.put(old, "second"))
		c.want("the same write again", p.put(old, "second"), store.ErrChanged) // its answer was lost
		c.want("write with an old ETag", p.put(old, "late"), store.ErrChanged)
		p.holds("after it", "second")
	}},
	{"Document/unchanged", documenter, func(c *check) {
		p := c.paper()
		c.must("create", p.put("", "first"))
		old := p.etag
		d, err := p.store.ReadDocument(c.ctx, p.name, p.etag)
		c.want("read with the present ETag", err, store.ErrUnchanged)
		if len(d.Body) > 0 {
			c.errorf("read with the present ETag: got %d bytes, want none", len(d.Body))
		}
		c.must("write", p.put(p.etag, "second"))
		if d, err = p.store.ReadDocument(c.ctx, p.name, old); err != nil || string(d.Body) != "second" || d.ETag != p.etag {
			c.errorf("read with an old ETag: got %q, ETag %s, %v, want %q, %s", d.Body, d.ETag, err, "second", p.etag)
		}
	}},
	{"Document/etags", documenter, func(c *check) { // of the same: it is the write that counts
		p := c.paper()
		seen := map[string]bool{"": true}
		for range 20 {
			c.must("write", p.put(p.etag, "the same"))
			if seen[p.etag] {
				c.fatalf("a write got ETag %q, which is empty or that of an earlier one", p.etag)
			}
			seen[p.etag] = true
		}
	}},
	{"Document/deleted", documenter | deleter, func(c *check) {
		p := c.paper()
		c.must("create", p.put("", "first"))
		old := p.etag
		if err := c.store.(Deleter).Delete(c.ctx, p.name); err != nil {
			c.notef("documents can not be deleted: %v", err)
			return
		}
		_, err := p.store.ReadDocument(c.ctx, p.name, old)
		c.want("read after a delete", err, fs.ErrNotExist)
		c.want("write after a delete", p.put(old, "late"), store.ErrChanged)
		c.must("create again", p.put("", "first"))
		if p.etag == old {
			c.errorf("a document that was made again got ETag %s, which the one before had", old)
		}
		p.holds("made again", "first")
	}},
	{"Document/too-long", documenter, func(c *check) {
		p := c.paper()
		c.want("create of too much", p.put("", ofAllKinds(store.MaxDocument+1)), errAny)
		_, err := p.store.ReadDocument(c.ctx, p.name, "")
		c.want("read after it", err, fs.ErrNotExist)
		c.must("create", p.put("", "first"))
		c.want("write of too much", p.put(p.etag, ofAllKinds(store.MaxDocument+1)), errAny)
		p.holds("after it", "first")
	}},
	{"Document/own-copy", documenter, func(c *check) { // the caller may reuse its bytes
		p := c.paper()
		body := []byte("first")
		r, err := p.store.WriteDocument(c.ctx, p.name, "", body)
		c.must("create", err)
		p.etag, body[0] = r.ETag, 'x'
		d, err := p.store.ReadDocument(c.ctx, p.name, "")
		c.must("read", err)
		if len(d.Body) > 0 {
			d.Body[0] = 'y'
		}
		p.holds("after the caller changed its bytes", "first")
	}},
	{"Document/apart", documenter, func(c *check) {
		one := c.paper()
		name := strings.TrimPrefix(one.name, "storetest/.")
		others := []*paper{one, {check: c, store: one.store, name: one.name + "-2"}, {check: c, store: one.store, name: "storetest-2/." + name}}
		for i, p := range others {
			c.must("create", p.put("", strconv.Itoa(i)))
		}
		_, err := c.store.Create(c.ctx, "storetest/"+name, []byte(first))
		c.must("create of an entry without the dot", err)
		for i, p := range others {
			p.holds("beside others", strconv.Itoa(i))
		}
	}},
	{"Document/race-create", documenter, func(c *check) {
		p := c.paper()
		p.race("")
	}},
	{"Document/race-write", documenter, func(c *check) {
		p := c.paper()
		c.must("create", p.put("", "first"))
		p.race(p.etag)
	}},
	{"Document/counter", documenter, func(c *check) { // no addition gets lost
		const goroutines, rounds = 5, 6
		p := c.paper()
		c.must("create", p.put("", "0"))
		together(goroutines, func(int) {
			for range rounds {
				for !p.add() && c.pause() {
				}
			}
		})
		d, err := p.store.ReadDocument(c.ctx, p.name, "")
		if want := strconv.Itoa(goroutines * rounds); err != nil || string(d.Body) != want {
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
		d, err := p.store.ReadDocument(c.ctx, p.name, "")
		look("read of no document", d.Date, err, fs.ErrNotExist)
		r, err := p.store.WriteDocument(c.ctx, p.name, "", []byte("first"))
		look("create", r.Date, err, nil)
		d, err = p.store.ReadDocument(c.ctx, p.name, "")
		look("read", d.Date, err, nil)
		d, err = p.store.ReadDocument(c.ctx, p.name, r.ETag)
		look("read with the present ETag", d.Date, err, store.ErrUnchanged)
		r, err = p.store.WriteDocument(c.ctx, p.name, r.ETag, []byte("second"))
		look("write", r.Date, err, nil)
	}},
	{"Document/twins", documenter | twins, func(c *check) {
		near := c.paper()
		far := &paper{check: c, store: c.other.(store.Documenter), name: near.name}
		for i := range 3 {
			c.must("write", near.put(near.etag, strconv.Itoa(i)))
			far.etag = near.etag
			near.holds("written", strconv.Itoa(i)) // so a cache has it
			far.holds("written by another instance", strconv.Itoa(i))
			c.must("write of the other", far.put(far.etag, "back"))
			near.etag = far.etag
			near.holds("written by the other instance", "back")
		}
	}},
}

// paper is a document of its own for one test.
type paper struct {
	*check
	store store.Documenter
	name  string
	etag  string // of the last write that the test knows of
}

func (c *check) paper() *paper {
	name := strings.Replace(newName(), "/", "/.", 1)
	return &paper{check: c, store: c.store.(store.Documenter), name: name}
}

// put writes the document and remembers its ETag.
func (p *paper) put(etag, body string) error {
	r, err := p.store.WriteDocument(p.ctx, p.name, etag, []byte(body))
	if err == nil {
		p.etag = r.ETag
	}
	return err
}

// holds checks body and ETag of the document, and that a read with its ETag says so.
func (p *paper) holds(when, body string) {
	d, err := p.store.ReadDocument(p.ctx, p.name, "")
	p.must("read "+when, err)
	if string(d.Body) != body || d.ETag != p.etag {
		p.errorf("%s: got %s, ETag %s, want %s, %s", when, clip(string(d.Body)), d.ETag, clip(body), p.etag)
	}
	_, err = p.store.ReadDocument(p.ctx, p.name, p.etag)
	p.want("read with the present ETag, "+when, err, store.ErrUnchanged)
}

// race lets many write with one ETag.
func (p *paper) race(etag string) {
	etags := make([]string, 16)
	winner := p.check.race(len(etags), store.ErrChanged, func(i int) error {
		r, err := p.store.WriteDocument(p.ctx, p.name, etag, []byte(strconv.Itoa(i)))
		etags[i] = r.ETag
		return err
	})
	p.etag = etags[winner]
	p.holds("written by the winner", strconv.Itoa(winner))
}

// add counts one further. False: another was faster.
func (p *paper) add() bool {
	d, err := p.store.ReadDocument(p.ctx, p.name, "")
	p.want("read", err, nil)
	n, err := strconv.Atoi(string(d.Body))
	p.want("read of the number", err, nil)
	p.pause() // so that others look at the same document
	_, err = p.store.WriteDocument(p.ctx, p.name, d.ETag, []byte(strconv.Itoa(n+1)))
	if err != nil && !errors.Is(err, store.ErrChanged) {
		p.errorf("add: %v", err)
	}
	return err == nil
}
