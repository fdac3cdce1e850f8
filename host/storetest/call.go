package storetest

import (
	"context"
	"io/fs"
	"time"
)

// calls is about a context that is over before the call: an error, soon, and nothing done.
func calls() []property {
	all := []property{
		{"Context/create", nothing, func(c *check) {
			name := newName()
			c.promptly("create", func(ctx context.Context) error { return errOf(c.store.Create(ctx, name, []byte(first))) })
			c.want("read after it", errOf(c.store.Read(c.ctx, name)), fs.ErrNotExist)
		}},
		{"Context/read", nothing, func(c *check) {
			s := c.subject()
			s.promptly("read", func(ctx context.Context) error { return errOf(s.store.Read(ctx, s.name)) })
		}},
	}
	for _, row := range table {
		reach := (*check).leased
		switch row.call {
		case "acquire-own":
			reach = (*check).subject
		case "renew-own":
			reach = (*check).expired
		}
		all = append(all, property{"Context/" + row.call, row.needs, func(c *check) {
			s := reach(c)
			state := s.read().State
			s.promptly(row.call, func(ctx context.Context) error {
				late := *s
				late.check = &check{ctx: ctx, store: c.store}
				return row.do(&late)
			})
			s.untouched("after "+row.call, state)
		}})
	}
	return all
}

func (c *check) promptly(what string, call func(context.Context) error) {
	const prompt = 5 * time.Second // a busy machine, not a try of the network
	start := time.Now()
	c.want(what+" with a context that is over", call(ended(c.ctx)), context.Canceled)
	if took := time.Since(start); took > prompt {
		c.errorf("%s took %v, want at most %v", what, took, prompt)
	}
}
