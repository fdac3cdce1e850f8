package storetest

import (
	"bytes"
	"context"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/soloist-go/soloist/store"
)

// logs is about bytes that are appended and never changed.
var logs = []property{
	{"Log/missing", appender, func(c *check) {
		l := c.log()
		_, err := l.store.ReadLog(c.ctx, l.name, 0, 10)
		c.want("read of no log", err, fs.ErrNotExist)
		c.want("append to no log", l.store.Append(c.ctx, l.name, 5, []byte("late")), store.ErrChanged)
		c.want("remove of no log", l.store.RemoveLog(c.ctx, l.name), fs.ErrNotExist)
		l.listed("no log")
	}},
	{"Log/kept", appender, func(c *check) {
		l := c.log()
		for _, b := range []string{"x", "a line\n", ofAllKinds(256), "\x00", "\r\n", ofAllKinds(store.MaxAppend)} {
			l.append(b)
			l.holds("after an append")
		}
	}},
	{"Log/parts", appender, func(c *check) { // of a log, by offset and length
		l := c.log()
		l.append("0123")
		l.append("456789")
		for _, part := range []struct {
			offset int64
			n      int
			want   string
		}{{0, 4, "0123"}, {2, 5, "23456"}, {8, 100, "89"}, {9, 1, "9"}, {10, 1, ""}, {11, 5, ""}} {
			got, err := l.store.ReadLog(c.ctx, l.name, part.offset, part.n)
			if err != nil || string(got) != part.want {
				c.errorf("%d bytes from %d: got %q, %v, want %q", part.n, part.offset, got, err, part.want)
			}
		}
	}},
	{"Log/size", appender, func(c *check) {
		l := c.log()
		l.append("first")
		for _, size := range []int64{0, 1, 4, 6, 1000} {
			c.want("append at "+strconv.FormatInt(size, 10), l.store.Append(c.ctx, l.name, size, []byte("late")), store.ErrChanged)
		}
		l.holds("after appends with another size")
		l.append("second")
		c.want("the same append again", l.store.Append(c.ctx, l.name, 5, []byte("second")), store.ErrChanged) // its answer was lost
		l.holds("after an append that was repeated")
	}},
	{"Log/limits", appender, func(c *check) {
		l := c.log()
		l.append("first")
		for _, b := range []string{"", ofAllKinds(store.MaxAppend + 1)} {
			c.want("append of "+strconv.Itoa(len(b))+" bytes", l.store.Append(c.ctx, l.name, 5, []byte(b)), errAny)
		}
		l.holds("after it")
	}},
	{"Log/full", appender, func(c *check) {
		l := c.log()
		part, n := ofAllKinds(store.MaxAppend), store.MaxLog/store.MaxAppend
		for i := range n {
			c.must("append", l.store.Append(c.ctx, l.name, int64(i*len(part)), []byte(part)))
		}
		l.want = strings.Repeat(part, n)
		l.holds("a log that is full")
	}},
	{"Log/own-copy", appender, func(c *check) { // the caller may reuse its bytes
		l := c.log()
		b := []byte("first")
		c.must("append", l.store.Append(c.ctx, l.name, 0, b))
		b[0], l.want = 'x', "first"
		got, err := l.store.ReadLog(c.ctx, l.name, 0, 10)
		c.must("read", err)
		if len(got) > 0 {
			got[0] = 'y'
		}
		l.holds("after the caller changed its bytes")
	}},
	{"Log/list", appender, func(c *check) {
		l := c.log()
		parts := []string{"1", "2026-11-22", "2026-12", "a"}
		for i, part := range slices.Backward(parts) {
			name := store.LogName(l.entry, part)
			c.must("append", l.store.Append(c.ctx, name, 0, bytes.Repeat([]byte("x"), i+1)))
		}
		other := c.log()
		other.entry, other.name = l.entry+"-2", store.LogName(l.entry+"-2", "1")
		other.append("other")
		_, err := c.store.Create(c.ctx, l.entry, []byte(first))
		c.must("create of the entry", err)
		var want []string
		for i, part := range parts {
			want = append(want, part+" "+strconv.Itoa(i+1))
		}
		l.listed("four logs", want...)
		other.listed("one log", "1 5")
		n := 0
		c.must("list", l.store.Logs(c.ctx, l.entry, func(string, int64) bool { n++; return false }))
		if n != 1 {
			c.errorf("stopped at the first: got %d", n)
		}
	}},
	{"Log/remove", appender, func(c *check) {
		l := c.log()
		l.append("first")
		l.append("second")
		c.must("remove", l.store.RemoveLog(c.ctx, l.name))
		_, err := l.store.ReadLog(c.ctx, l.name, 0, 10)
		c.want("read after a remove", err, fs.ErrNotExist)
		c.want("append after a remove", l.store.Append(c.ctx, l.name, 11, []byte("late")), store.ErrChanged)
		l.listed("after a remove")
		l.want = ""
		l.append("again")
		l.holds("made again")
	}},
	{"Log/apart", appender, func(c *check) { // a log is neither an entry nor listed as one
		l := c.log()
		l.append("first")
		_, err := c.store.Read(c.ctx, l.entry)
		c.want("read of the entry", err, fs.ErrNotExist)
		if lister, ok := c.store.(store.Lister); ok {
			app, _, _ := strings.Cut(l.entry, "/")
			c.must("list", lister.List(c.ctx, app, func(name string, _ store.Entry) bool {
				if strings.Contains(name, "/.") || name == l.entry {
					c.errorf("a listing has %s", name)
				}
				return true
			}))
		}
	}},
	{"Log/race", appender, func(c *check) {
		l := c.log()
		for i := range 3 { // the first makes the log
			size := int64(len(l.want))
			winner := c.race(16, store.ErrChanged, func(i int) error {
				return l.store.Append(c.ctx, l.name, size, []byte("by "+strconv.Itoa(i)+"\n"))
			})
			l.want += "by " + strconv.Itoa(winner) + "\n"
			l.holds("round " + strconv.Itoa(i))
		}
	}},
	{"Log/twins", appender | twins, func(c *check) {
		l := c.log()
		far := *l
		far.store = c.other.(store.Appender)
		for range 3 {
			l.append("near\n")
			l.holds("appended") // so a cache has it
			far.want = l.want
			far.holds("appended by another instance")
			far.append("far\n")
			l.want = far.want
			l.holds("appended by the other instance")
		}
	}},
	{"Context/log", appender, func(c *check) {
		l := c.log()
		l.append("first")
		c.promptly("append", func(ctx context.Context) error { return l.store.Append(ctx, l.name, 5, []byte("late")) })
		c.promptly("read of a log", func(ctx context.Context) error {
			_, err := l.store.ReadLog(ctx, l.name, 0, 10)
			return err
		})
		c.promptly("list of logs", func(ctx context.Context) error {
			return l.store.Logs(ctx, l.entry, func(string, int64) bool { return true })
		})
		c.promptly("remove of a log", func(ctx context.Context) error { return l.store.RemoveLog(ctx, l.name) })
		l.holds("after it")
	}},
}

// logbook is a log of its own for one test.
type logbook struct {
	*check
	store       store.Appender
	entry, name string
	want        string // what it has to hold
}

func (c *check) log() *logbook {
	entry := newName()
	return &logbook{check: c, store: c.store.(store.Appender), entry: entry, name: store.LogName(entry, "1")}
}

// append appends at the end.
func (l *logbook) append(b string) {
	l.must("append", l.store.Append(l.ctx, l.name, int64(len(l.want)), []byte(b)))
	l.want += b
}

func (l *logbook) holds(when string) {
	got, err := l.store.ReadLog(l.ctx, l.name, 0, store.MaxLog+1)
	l.must("read "+when, err)
	if string(got) != l.want {
		l.errorf("%s: got %s, want %s", when, clip(string(got)), clip(l.want))
	}
	l.listed(when, "1 "+strconv.Itoa(len(l.want)))
}

// listed checks the logs of the entry: part and size of each.
func (l *logbook) listed(when string, want ...string) {
	var got []string
	l.must("list "+when, l.store.Logs(l.ctx, l.entry, func(name string, size int64) bool {
		part := strings.TrimPrefix(name, store.LogName(l.entry, ""))
		got = append(got, part+" "+strconv.FormatInt(size, 10))
		return true
	}))
	if !slices.Equal(got, want) {
		l.errorf("%s: logs are %q, want %q", when, got, want)
	}
}
