package storetest

import (
	"context"
	"io/fs"

	"github.com/soloist-go/soloist/store"
)

// removals is about the end of an entry: only one that nobody has, and that is as it was seen, goes.
var removals = []property{
	{"Remove/free", remover, func(c *check) {
		s := c.subject()
		s.must("remove", s.remove(s.etag))
		_, err := c.store.Read(c.ctx, s.name)
		c.want("read after it", err, fs.ErrNotExist)
		s.wantGone("remove again", s.remove(s.etag))
	}},
	{"Remove/missing", remover, func(c *check) {
		s := c.subject()
		c.wantGone("remove", c.store.(store.Remover).Remove(c.ctx, newName(), s.etag))
	}},
	{"Remove/leased", remover, func(c *check) {
		s := c.subject()
		s.acquire(s.own, s.longest())
		s.want("remove", s.remove(s.etag), store.ErrLost)
		s.write("own write", s.own, nil)
		s.release("own release", s.own, nil)
		s.must("remove after the release", s.remove(s.etag))
	}},
	{"Remove/expired", remover, func(c *check) {
		s := c.subject()
		s.expire()
		s.must("remove", s.remove(s.etag))
		s.renew("renew after it", s.own, fs.ErrNotExist)
	}},
	{"Remove/changed", remover, func(c *check) {
		s := c.subject()
		old := s.etag
		s.acquire(s.own, s.longest())
		s.write("own write", s.own, nil)
		s.release("own release", s.own, nil)
		s.want("remove with the old ETag", s.remove(old), store.ErrChanged)
		s.write("write after it", s.own, store.ErrLost) // the entry is there
	}},
	{"Remove/anew", remover, func(c *check) {
		s := c.subject()
		old := s.etag
		s.must("remove", s.remove(old))
		e, err := c.store.Create(c.ctx, s.name, []byte(first))
		c.must("create again", err)
		if e.ETag == old {
			c.errorf("made again: got the ETag %s that it had", e.ETag)
		}
		s.want("remove with the old ETag", s.remove(old), store.ErrChanged)
	}},
	{"Remove/checkpoint", remover | keeper, func(c *check) {
		s := c.subject()
		s.acquire(s.own, s.longest())
		c.must("save", s.keep(s.own, "a checkpoint"))
		s.release("own release", s.own, nil)
		s.must("remove", s.remove(s.etag))
		e, err := c.store.Create(c.ctx, s.name, []byte(first))
		c.must("create again", err)
		s.etag = e.ETag
		s.acquire(s.rest, s.longest())
		if checkpoint, err := s.load(s.rest); err != nil || checkpoint != "" {
			c.errorf("made again: got the checkpoint %q, %v", checkpoint, err)
		}
	}},
	{"Remove/context", remover, func(c *check) {
		s := c.subject()
		s.promptly("remove", func(ctx context.Context) error {
			return s.store.(store.Remover).Remove(ctx, s.name, s.etag)
		})
		s.state("after it", store.Available)
	}},
}

// remove removes the entry if it still has an ETag.
func (s *subject) remove(etag string) error {
	return s.store.(store.Remover).Remove(s.ctx, s.name, etag)
}
