package storetest

import (
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/soloist-go/soloist/store"
)

// A content is bytes that a store keeps under a guard, which is an ETag or the size of a log.
type content struct {
	*check
	kind
	name  string
	id    string // of the lease, if it needs one
	guard string // of the last write that the test knows of
	has   string // what was written then; of a log, what was appended

	write func(guard string, b []byte) (next string, err error)
	read  func() (b []byte, guard string, err error)
}

// A kind of content. All kinds keep their bytes, and are written under the present guard or not at all.
type kind struct {
	title   string
	needs   need
	open    func(c *content, at store.Store) // sets write and read
	kept    []string                         // what it has to keep
	refused []string                         // what it has to refuse
	wrong   []string                         // guards that are never the present one
}

var (
	aRecord = kind{"Record", nothing, (*content).record, []string{
		"x", `{"a":"b=c, d;%41&<>","e":[1,2],"f":"\\\"\u00e4"}`, ascii(), `"'` + "`",
		"a b c", // no record has two spaces in a row
		"%00%20%zz%", "looks like: a header, c=d; e",
		strings.Repeat("r", store.MaxRecord), strings.Repeat(`"`, store.MaxRecord),
	}, nil, nil}
	aCheckpoint = kind{"Keep", keeper, (*content).checkpoint, append(binary, "", ofAllKinds(store.MaxCheckpoint), strings.Repeat("\x00", store.MaxCheckpoint)),
		[]string{ofAllKinds(store.MaxCheckpoint + 1)}, nil}
	aDocument = kind{"Document", documenter, (*content).document, append(binary, "", ofAllKinds(store.MaxDocument)),
		[]string{ofAllKinds(store.MaxDocument + 1)}, []string{"some-etag"}}
	aLog = kind{"Log", appender, (*content).log, append(binary, "a line\n", ofAllKinds(store.MaxAppend)),
		[]string{"", ofAllKinds(store.MaxAppend + 1)}, []string{"1", "4", "1000"}}
)

var binary = slices.Clip([]string{"text", ofAllKinds(256), "\x00", " ", "\r\n"})

// contents makes a test of each rule for each kind.
func contents() (all []property) {
	for _, k := range []kind{aRecord, aCheckpoint, aDocument, aLog} {
		for _, rule := range []struct {
			name  string
			needs need
			body  func(c *content)
		}{
			{"kept", nothing, (*content).keeps},
			{"too-long", nothing, (*content).refuses},
			{"own-copy", nothing, (*content).copies},
			{"etags", nothing, (*content).changes},
			{"old-etag", nothing, (*content).conditional},
			{"race", nothing, (*content).raced},
			{"twins", twins, (*content).shared},
		} {
			if k.title == aLog.title && rule.name == "etags" || rule.name == "too-long" && len(k.refused) == 0 {
				continue // the guard of a log is its size; what is no record need not be refused
			}
			all = append(all, property{k.title + "/" + rule.name, k.needs | rule.needs, func(c *check) { rule.body(c.content(k)) }})
		}
	}
	return all
}

// content makes an empty one.
func (c *check) content(k kind) *content {
	v := &content{check: c, kind: k, name: newName(), id: newID()}
	switch k.title {
	case aDocument.title:
		v.name = strings.Replace(v.name, "/", "/.", 1)
	case aLog.title:
		v.name, v.guard = store.LogName(v.name, "1"), "0"
	default:
		s := c.subject()
		s.acquire(c.store.Lease(s.name, v.id), s.longest())
		v.name, v.guard = s.name, s.etag
	}
	k.open(v, c.store)
	return v
}

func (c *content) record(at store.Store) {
	c.write = func(guard string, b []byte) (string, error) {
		r, err := at.Lease(c.name, c.id).Write(c.ctx, guard, b)
		return r.ETag, err
	}
	c.read = func() ([]byte, string, error) {
		e, err := at.Read(c.ctx, c.name)
		return e.Record, e.ETag, err
	}
}

func (c *content) checkpoint(at store.Store) {
	c.write = func(guard string, b []byte) (string, error) {
		r, err := at.Lease(c.name, c.id).(store.Checkpointer).Save(c.ctx, guard, []byte(first), b)
		return r.ETag, err
	}
	c.read = func() ([]byte, string, error) {
		b, err := at.Lease(c.name, c.id).(store.Checkpointer).Load(c.ctx, c.guard)
		return b, c.guard, err
	}
}

func (c *content) document(at store.Store) {
	s := at.(store.Documenter)
	c.write = func(guard string, b []byte) (string, error) {
		r, err := s.WriteDocument(c.ctx, c.name, guard, b)
		return r.ETag, err
	}
	c.read = func() ([]byte, string, error) {
		d, err := s.ReadDocument(c.ctx, c.name, "")
		if err == nil {
			c.want("read with the present ETag", errOf(s.ReadDocument(c.ctx, c.name, d.ETag)), store.ErrUnchanged)
		}
		return d.Body, d.ETag, err
	}
}

func (c *content) log(at store.Store) {
	s := at.(store.Appender)
	c.write = func(guard string, b []byte) (string, error) {
		size := number(guard)
		return strconv.Itoa(size + len(b)), s.Append(c.ctx, c.name, int64(size), b)
	}
	c.read = func() ([]byte, string, error) {
		b, err := s.ReadLog(c.ctx, c.name, int64(number(c.guard)-len(c.has)), store.MaxLog+1)
		listed := ""
		c.must("list", s.Logs(c.ctx, entryOf(c.name), func(_ string, size int64) bool {
			listed += strconv.FormatInt(size, 10)
			return true
		}))
		return b, listed, err
	}
}

// try writes, and remembers what it wrote.
func (c *content) try(guard, b string) error {
	next, err := c.write(guard, []byte(b))
	if err == nil {
		c.guard, c.has = next, b
	}
	return err
}

func (c *content) put(b string) { c.must("write of "+clip(b), c.try(c.guard, b)) }

func (c *content) holds(when string) {
	b, guard, err := c.read()
	c.must("read "+when, err)
	if string(b) != c.has || guard != c.guard {
		c.errorf("%s: got %s, ETag or size %s, want %s, %s", when, clip(string(b)), guard, clip(c.has), c.guard)
	}
}

func (c *content) keeps() {
	for _, b := range c.kept {
		c.put(b)
		c.holds("written")
	}
}

func (c *content) refuses() {
	for range 2 { // where nothing was written, and where what was written has to stay
		for _, b := range c.refused {
			c.want("write of "+clip(b), c.try(c.guard, b), errAny)
		}
		if c.has != "" {
			c.holds("after it")
		}
		c.put("first")
	}
}

// copies: the caller may reuse its bytes.
func (c *content) copies() {
	b := []byte("first")
	next, err := c.write(c.guard, b)
	c.must("write", err)
	c.guard, c.has = next, "first"
	for range 3 {
		copy(b, "xxxxx")
		c.holds("after the caller changed its bytes")
		b, _, err = c.read()
		c.must("read", err)
	}
}

// changes: each write changes the ETag, also one of the same bytes.
func (c *content) changes() {
	seen := []string{"", c.guard}
	for range 20 {
		if c.put("the same"); slices.Contains(seen, c.guard) {
			c.fatalf("a write got %q, which an earlier one had", c.guard)
		}
		seen = append(seen, c.guard)
		c.holds("written")
	}
}

// conditional: a write under another guard than the present one is refused.
func (c *content) conditional() {
	none := c.guard
	c.put("first")
	old := c.guard
	c.put("second")
	for _, guard := range append([]string{none, old}, c.wrong...) {
		for _, b := range []string{"second", "late"} { // the answer to the one may have been lost
			c.want("write of "+b+" under "+guard, c.try(guard, b), store.ErrChanged)
			c.holds("after it")
		}
	}
}

// raced lets many write under one guard. The first of documents and logs makes them.
func (c *content) raced() {
	for range 3 {
		next := make([]string, 16)
		winner := c.race(len(next), store.ErrChanged, func(i int) (err error) {
			next[i], err = c.write(c.guard, []byte("by "+strconv.Itoa(i)))
			return err
		})
		c.guard, c.has = next[winner], "by "+strconv.Itoa(winner)
		c.holds("written by the winner")
	}
}

// shared: what one instance writes, the other sees at once.
func (c *content) shared() {
	far := *c
	far.open(&far, c.other)
	one, two := c, &far
	for i := range 4 {
		one.put("round " + strconv.Itoa(i))
		one.holds("written") // so a cache has it
		two.guard, two.has = one.guard, one.has
		two.holds("written by another instance")
		one, two = two, one
	}
}

func number(size string) int {
	n, _ := strconv.Atoi(size)
	return n
}

// entryOf is "app/job" of "app/.log/job/part".
func entryOf(log string) string {
	parts := strings.Split(log, "/")
	return parts[0] + "/" + parts[2]
}

func ascii() string {
	var b strings.Builder
	for r := byte('!'); r <= '~'; r++ {
		b.WriteByte(r)
		b.WriteByte(' ')
	}
	return strings.TrimSpace(b.String())
}

// ofAllKinds returns n bytes.
func ofAllKinds(n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i)
	}
	return string(b)
}

// clip keeps a failure readable.
func clip(b string) string {
	const most = 120
	if len(b) <= most {
		return fmt.Sprintf("%q", b)
	}
	return fmt.Sprintf("%q... (%d bytes)", b[:most], len(b))
}

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
	c.must("create with "+clip(record), errOf(c.store.Create(c.ctx, s.name, []byte(record))))
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
