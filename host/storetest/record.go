package storetest

import (
	"fmt"
	"io/fs"
	"strings"

	"github.com/soloist-go/soloist/store"
)

// records is about what a record may hold.
var records = []property{
	{"Record/kept", nothing, func(c *check) {
		for what, record := range map[string]string{
			"one byte":          "x",
			"JSON":              `{"a":"b=c, d;%41&<>","e":[1,2],"f":"\\\"\u00e4"}`,
			"all of ASCII":      ascii(),
			"quotes":            `"'` + "`",
			"spaces inside":     "a b c", // no record has two in a row
			"percent":           "%00%20%zz%",
			"looks like header": "a: b, c=d; e",
			"longest":           strings.Repeat("r", store.MaxRecord),
			"longest, quoted":   strings.Repeat(`"`, store.MaxRecord),
		} {
			c.kept(what, record)
		}
	}},
	{"Record/not-altered", nothing, func(c *check) {
		for what, record := range map[string]string{
			"empty":      "",
			"space":      " ",
			"leading":    " x",
			"trailing":   "x ",
			"newline":    "x\ny",
			"zero":       "x\x00y",
			"tab at end": "x\t",
			"accent":     "é",
			"not UTF-8":  "x\xffy",
			"too long":   strings.Repeat("r", store.MaxRecord+1),
		} {
			c.notAltered(what, record)
		}
	}},
	{"Record/own-copy", nothing, func(c *check) { // the caller may reuse its bytes
		name, record := newName(), []byte("created")
		e, err := c.store.Create(c.ctx, name, record)
		c.must("create", err)
		copy(record, "xxxxxxx")
		if len(e.Record) > 0 {
			e.Record[0] = 'y'
		}
		e, err = c.store.Read(c.ctx, name)
		c.must("read", err)
		if got, want := string(e.Record), "created"; got != want {
			c.errorf("after the caller changed its bytes: got record %q, want %q", got, want)
		}
	}},
	{"Record/own-copy-written", nothing, func(c *check) {
		s := c.subject()
		s.acquire(s.own, s.longest())
		record := []byte("written")
		_, err := s.own.Write(c.ctx, s.etag, record)
		c.must("write", err)
		copy(record, "xxxxxxx")
		for _, who := range []string{"the writer", "a reader"} {
			e := s.read()
			if got, want := string(e.Record), "written"; got != want {
				c.errorf("after %s changed its bytes: got record %q, want %q", who, got, want)
			}
			copy(e.Record, "yyyyyyy")
		}
	}},
}

func ascii() string {
	var b strings.Builder
	for r := byte('!'); r <= '~'; r++ {
		b.WriteByte(r)
		b.WriteByte(' ')
	}
	return strings.TrimSpace(b.String())
}

// kept creates and writes a record, and reads it back.
func (c *check) kept(what, record string) {
	s := &subject{check: c, store: c.store, name: newName()}
	_, err := c.store.Create(c.ctx, s.name, []byte(record))
	c.must("create with "+what, err)
	if got := string(s.read().Record); got != record {
		c.errorf("%s, created: got %s, want %s", what, clip(got), clip(record))
	}
	s = c.subject()
	s.acquire(s.own, s.longest())
	_, err = s.own.Write(c.ctx, s.etag, []byte(record))
	c.must("write of "+what, err)
	if got := string(s.read().Record); got != record {
		c.errorf("%s, written: got %s, want %s", what, clip(got), clip(record))
	}
}

// notAltered offers what is no record. A store may refuse it, or keep it; it
// may not keep something else.
func (c *check) notAltered(what, record string) {
	s := c.subject()
	s.acquire(s.own, s.longest())
	_, err := s.own.Write(c.ctx, s.etag, []byte(record))
	want := first
	if err == nil {
		want = record
	}
	if got := string(s.read().Record); got != want {
		c.errorf("%s, written with error %v: got %s, want %s", what, err, clip(got), clip(want))
	}
	name := newName()
	_, err = c.store.Create(c.ctx, name, []byte(record))
	e, readErr := c.store.Read(c.ctx, name)
	if err != nil {
		c.want(what+", read after a refused create", readErr, fs.ErrNotExist)
	} else if readErr != nil || string(e.Record) != record {
		c.errorf("%s, created: got %s, error %v, want %s", what, clip(string(e.Record)), readErr, clip(record))
	}
}

// clip keeps a failure readable.
func clip(record string) string {
	const most = 120
	if len(record) <= most {
		return fmt.Sprintf("%q", record)
	}
	return fmt.Sprintf("%q... (%d bytes)", record[:most], len(record))
}
