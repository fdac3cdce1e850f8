package storetest

import (
	"context"
	"io/fs"
	"time"

	"github.com/soloist-go/soloist/store"
)

// calls is about a context that is over before the call: an error, soon, and
// nothing done.
var calls = []property{
	{"Context/create", nothing, func(c *check) {
		name := newName()
		c.promptly("create", func(ctx context.Context) error {
			_, err := c.store.Create(ctx, name, []byte(first))
			return err
		})
		_, err := c.store.Read(c.ctx, name)
		c.want("read after it", err, fs.ErrNotExist)
	}},
	{"Context/read", nothing, func(c *check) {
		s := c.subject()
		s.promptly("read", func(ctx context.Context) error {
			_, err := s.store.Read(ctx, s.name)
			return err
		})
	}},
	{"Context/acquire", nothing, func(c *check) {
		s := c.subject()
		s.promptly("acquire", func(ctx context.Context) error {
			_, err := s.own.Acquire(ctx, s.longest(), s.etag)
			return err
		})
		s.state("after it", store.Available)
	}},
	{"Context/renew", nothing, func(c *check) {
		s := c.subject()
		s.expire()
		s.promptly("renew", func(ctx context.Context) error {
			_, err := s.own.Renew(ctx)
			return err
		})
		s.state("after it", store.Expired)
	}},
	{"Context/write", nothing, func(c *check) {
		s := c.subject()
		s.acquire(s.own, s.longest())
		s.promptly("write", func(ctx context.Context) error {
			_, err := s.own.Write(ctx, s.etag, []byte("late"))
			return err
		})
		if e := s.read(); string(e.Record) != first || e.ETag != s.etag {
			c.errorf("after it: got record %s, ETag %s, want %s, %s", e.Record, e.ETag, first, s.etag)
		}
	}},
	{"Context/release", nothing, func(c *check) {
		s := c.subject()
		s.acquire(s.own, s.longest())
		s.promptly("release", s.own.Release)
		s.state("after it", store.Leased)
	}},
	{"Context/save", keeper, func(c *check) {
		s := c.subject()
		s.acquire(s.own, s.longest())
		s.promptly("save", func(ctx context.Context) error {
			_, err := s.own.(store.Checkpointer).Save(ctx, s.etag, []byte("late"), []byte("late"))
			return err
		})
		s.holds("after it", first, "")
	}},
	{"Context/load", keeper, func(c *check) {
		s := c.subject()
		s.acquire(s.own, s.longest())
		s.promptly("load", func(ctx context.Context) error {
			_, err := s.own.(store.Checkpointer).Load(ctx, s.etag)
			return err
		})
	}},
	{"Context/document", documenter, func(c *check) {
		p := c.paper()
		c.must("create", p.put("", "first"))
		c.promptly("read of a document", func(ctx context.Context) error {
			_, err := p.store.ReadDocument(ctx, p.name, "")
			return err
		})
		c.promptly("write of a document", func(ctx context.Context) error {
			_, err := p.store.WriteDocument(ctx, p.name, p.etag, []byte("late"))
			return err
		})
		p.holds("after it", "first")
	}},
	{"Context/break", breaker, func(c *check) {
		s := c.subject()
		s.acquire(s.own, s.longest())
		s.promptly("break", func(ctx context.Context) error {
			return s.store.(store.LeaseBreaker).Break(ctx, s.name, 0)
		})
		s.state("after it", store.Leased)
	}},
}

func (c *check) promptly(what string, call func(context.Context) error) {
	const prompt = 5 * time.Second // a busy machine, not a try of the network
	start := time.Now()
	c.want(what+" with a context that is over", call(ended(c.ctx)), context.Canceled)
	if took := time.Since(start); took > prompt {
		c.errorf("%s took %v, want at most %v", what, took, prompt)
	}
}
