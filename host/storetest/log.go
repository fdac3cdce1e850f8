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
		c.want("read of no log", errOf(l.store.ReadLog(c.ctx, l.name, 0, 10)), fs.ErrNotExist)
		c.want("append to no log", l.store.Append(c.ctx, l.name, 5, []byte("late")), store.ErrChanged)
		c.want("remove of no log", l.store.RemoveLog(c.ctx, l.name), fs.ErrNotExist)
		l.listed("no log")
	}},
	{"Log/parts", appender, func(c *check) { // of a log, by offset and length
		l := c.log()
		l.put("0123")
		l.put("456789")
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
	{"Log/full", appender, func(c *check) {
		l := c.log()
		part, n := ofAllKinds(store.MaxAppend), store.MaxLog/store.MaxAppend
		for i := range n {
			c.must("append", l.store.Append(c.ctx, l.name, int64(i*len(part)), []byte(part)))
		}
		l.guard, l.has = strconv.Itoa(store.MaxLog), strings.Repeat(part, n)
		l.holds("a log that is full")
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
		other.put("other")
		c.must("create of the entry", errOf(c.store.Create(c.ctx, l.entry, []byte(first))))
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
		l.put("first")
		l.put("second")
		c.must("remove", l.store.RemoveLog(c.ctx, l.name))
		c.want("read after a remove", errOf(l.store.ReadLog(c.ctx, l.name, 0, 10)), fs.ErrNotExist)
		c.want("append after a remove", l.store.Append(c.ctx, l.name, 11, []byte("late")), store.ErrChanged)
		l.listed("after a remove")
		c.must("append", l.try("0", "again"))
		l.holds("made again")
	}},
	{"Log/apart", appender, func(c *check) { // a log is neither an entry nor listed as one
		l := c.log()
		l.put("first")
		c.want("read of the entry", errOf(c.store.Read(c.ctx, l.entry)), fs.ErrNotExist)
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
	{"Context/log", appender, func(c *check) {
		l := c.log()
		l.put("first")
		c.promptly("append", func(ctx context.Context) error { return l.store.Append(ctx, l.name, 5, []byte("late")) })
		c.promptly("read of a log", func(ctx context.Context) error { return errOf(l.store.ReadLog(ctx, l.name, 0, 10)) })
		c.promptly("list of logs", func(ctx context.Context) error {
			return l.store.Logs(ctx, l.entry, func(string, int64) bool { return true })
		})
		c.promptly("remove of a log", func(ctx context.Context) error { return l.store.RemoveLog(ctx, l.name) })
		l.holds("after it")
	}},
}

// logbook is a log of its own for one test.
type logbook struct {
	*content
	store store.Appender
	entry string
}

func (c *check) log() *logbook {
	l := c.content(aLog)
	return &logbook{l, c.store.(store.Appender), entryOf(l.name)}
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
