package storetest

import (
	"io/fs"
	"strings"

	"github.com/soloist-go/soloist/store"
)

// records is about a record that is created, and about what is no record.
var records = []property{
	{"Create/kept", nothing, func(c *check) {
		for _, record := range aRecord.kept {
			c.created(record).is("created", record)
		}
	}},
	{"Create/own-copy", nothing, func(c *check) { // the caller may reuse its bytes
		record := []byte("created")
		s := &subject{check: c, store: c.store, name: newName()}
		e, err := c.store.Create(c.ctx, s.name, record)
		c.must("create", err)
		copy(record, "xxxxxxx")
		copy(e.Record, "yyyyyyy")
		s.is("after the caller changed its bytes", "created")
	}},
	{"Record/not-altered", nothing, func(c *check) {
		for _, record := range []string{
			"", " ", " x", "x ", "x\ny", "x\x00y", "x\t", "é", "x\xffy", strings.Repeat("r", store.MaxRecord+1),
		} {
			c.notAltered(record)
		}
	}},
}

func (c *check) created(record string) *subject {
	s := &subject{check: c, store: c.store, name: newName()}
	_, err := c.store.Create(c.ctx, s.name, []byte(record))
	c.must("create with "+clip(record), err)
	return s
}

func (s *subject) is(when, record string) {
	if got := string(s.read().Record); got != record {
		s.errorf("%s: got record %s, want %s", when, clip(got), clip(record))
	}
}

// notAltered offers what is no record. A store may refuse it, or keep it; it
// may not keep something else.
func (c *check) notAltered(record string) {
	s := c.leased()
	_, err := s.own.Write(c.ctx, s.etag, []byte(record))
	want := first
	if err == nil {
		want = record
	}
	s.is("written", want)
	name := newName()
	_, err = c.store.Create(c.ctx, name, []byte(record))
	e, readErr := c.store.Read(c.ctx, name)
	if err != nil {
		c.want("read after a refused create with "+clip(record), readErr, fs.ErrNotExist)
	} else if readErr != nil || string(e.Record) != record {
		c.errorf("created: got %s, error %v, want %s", clip(string(e.Record)), readErr, clip(record))
	}
}
