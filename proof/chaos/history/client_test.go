package history_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/soloist-go/soloist/store"
)

// A client calls a store at random, more or less as a replica would: it knows
// what it was answered last, and does not always go by that.
type client struct {
	*history
	session
	store store.Store
	n     int
	dice  *rand.Rand
	far   *distance // nil: the calls take the time that they take

	shortest time.Duration // lease
	made     int           // records so far
	etag     string
	old      string // an ETag before that
	id       string // of the last acquisition
	other    string // of one before that
	mine     bool   // it has it, as far as it knows
}

// newClient makes the client n of a history; all that it does follows from the
// seed and the answers.
func newClient(h *history, s store.Store, n int, plan session) *client {
	c := &client{history: h, session: plan, store: s, n: n, dice: rand.New(rand.NewPCG(plan.seed, uint64(n)))}
	c.shortest, _ = s.Limits()
	c.id, c.other = c.newID(), c.newID()
	if plan.oneWay > 0 {
		c.far = &distance{rand.New(rand.NewPCG(plan.seed, uint64(most+n))), plan.oneWay, int(plan.seed%3) * 8}
	}
	return c
}

func (c *client) run() {
	for range c.calls / c.clients() {
		rest := c.rest()
		if c.lasts > 0 && time.Since(c.start)+rest > c.lasts {
			return
		}
		time.Sleep(rest)
		ctx, cancel := context.WithTimeout(context.Background(), c.wait())
		c.act(ctx)
		cancel()
	}
}

// wait is how long an answer is waited for. In real time one that takes long has
// no meaning.
func (c *client) wait() time.Duration {
	switch {
	case c.crowd > 0 && c.oneIn(10): // it may still be in a queue
		return c.upTo(c.shortest / 20)
	case c.lasts > 0:
		return c.shortest / 2
	}
	return c.shortest / 8
}

// rest lasts long enough now and then for a lease to run out, or nearly so.
func (c *client) rest() time.Duration {
	switch n := c.dice.IntN(12); {
	case n == 0:
		return c.shortest/2 + c.upTo(c.shortest)
	case n < 4:
		return 0
	case c.crowd > 0 && n < 10:
		const together = 40 * time.Millisecond
		return together - time.Since(c.start)%together
	case c.lasts > 0: // it is short enough for few calls only
		return c.upTo(c.shortest / 30)
	}
	return c.upTo(c.shortest / 8)
}

// act makes one call, of a holder rather if it believes to be one.
func (c *client) act(ctx context.Context) {
	seen, etag := call{id: c.id, etag: c.tag(c.etag)}, c.etag
	if c.oneIn(8) && c.old != "" {
		seen.etag, etag = c.tag(c.old), c.old
	}
	if c.oneIn(8) {
		seen.id = c.other
	}
	holder := 35
	if c.mine {
		holder = 75
	}
	switch n := c.dice.IntN(100); {
	case c.etag == "" && n < 60 || n < 2:
		c.create(ctx)
	case c.etag == "" || n < 14:
		c.do(ctx, call{op: "read"}, func() (store.Entry, string, error) {
			e, err := c.store.Read(ctx, c.name)
			return e, "", err
		})
	case n < 18:
		c.end(ctx)
	case n < 24:
		c.endUnchanged(ctx, seen.etag, etag)
	case c.dice.IntN(100) < holder:
		c.hold(ctx, seen, etag)
	default:
		c.acquire(ctx, seen, etag)
	}
}

// do keeps the ETag of an answer.
func (c *client) do(ctx context.Context, what call, f func() (store.Entry, string, error)) error {
	return c.history.do(c.n, what, func() (e store.Entry, checkpoint string, err error) {
		if c.far == nil {
			e, checkpoint, err = f()
		} else {
			e, checkpoint, err = c.far.travel(ctx, f)
		}
		if err == nil && e.ETag != "" && e.ETag != c.etag {
			c.old, c.etag = c.etag, e.ETag
		}
		return e, checkpoint, err
	})
}

// stamped is do for a call that is answered with a stamp.
func (c *client) stamped(ctx context.Context, what call, f func() (store.Revision, error)) error {
	return c.do(ctx, what, func() (store.Entry, string, error) {
		stamp, err := f()
		return store.Entry{Revision: stamp}, "", err
	})
}

func (c *client) create(ctx context.Context) {
	record := c.text()
	c.do(ctx, call{op: "create", record: record}, func() (store.Entry, string, error) {
		e, err := c.store.Create(ctx, c.name, []byte(record))
		return e, "", err
	})
}

func (c *client) end(ctx context.Context) {
	period := []time.Duration{-1, 0, c.shortest / 3, 2 * c.shortest}[c.dice.IntN(4)]
	c.do(ctx, call{op: "break", span: period}, func() (store.Entry, string, error) {
		return store.Entry{}, "", c.store.(store.LeaseBreaker).Break(ctx, c.name, period)
	})
}

// endUnchanged breaks the lease of the entry that it has seen.
func (c *client) endUnchanged(ctx context.Context, seen tag, etag string) {
	c.do(ctx, call{op: "break unchanged", etag: seen}, func() (store.Entry, string, error) {
		return store.Entry{}, "", c.store.(store.ConditionalBreaker).BreakUnchanged(ctx, c.name, etag)
	})
}

// acquire takes a new id, as it has to be, unless it repeats an earlier call.
func (c *client) acquire(ctx context.Context, what call, etag string) {
	if !c.oneIn(5) {
		what.id = c.newID()
	}
	what.op, what.span = "acquire", c.shortest+c.upTo(c.shortest/3).Truncate(time.Second)
	lease := c.store.Lease(c.name, what.id)
	both, ok := lease.(store.Combiner)
	if ok = ok && c.oneIn(2); ok {
		what.op, what.record = acquireWrite, c.text()
	}
	err := c.stamped(ctx, what, func() (store.Revision, error) {
		if ok {
			return both.AcquireWrite(ctx, what.span, etag, []byte(what.record))
		}
		return lease.Acquire(ctx, what.span, etag)
	})
	if m := meaning(err); m != nil && m != errUnclear {
		return
	}
	if c.mine = true; what.id != c.id {
		c.other, c.id = c.id, what.id
	}
}

// hold does what a holder may.
func (c *client) hold(ctx context.Context, what call, etag string) {
	l := c.store.Lease(c.name, what.id).(store.Checkpointer)
	lease := c.store.Lease(c.name, what.id)
	both, ok := lease.(store.Combiner)
	var err error
	switch n := c.dice.IntN(100); {
	case ok && n%6 == 0:
		c.mine = false
		what.op, what.record = writeRelease, c.text()
		err = c.stamped(ctx, what, func() (store.Revision, error) { return both.WriteRelease(ctx, etag, []byte(what.record)) })
	case n < 22:
		err = c.stamped(ctx, call{op: "renew", id: what.id}, func() (store.Revision, error) { return lease.Renew(ctx) })
	case n < 55:
		what.op, what.record = "write", c.text()
		err = c.stamped(ctx, what, func() (store.Revision, error) { return lease.Write(ctx, etag, []byte(what.record)) })
	case n < 70:
		what.op, what.record, what.checkpoint = "save", c.text(), c.text()
		err = c.stamped(ctx, what, func() (store.Revision, error) {
			return l.Save(ctx, etag, []byte(what.record), []byte(what.checkpoint))
		})
	case n < 87:
		what.op = "load"
		err = c.do(ctx, what, func() (store.Entry, string, error) {
			checkpoint, err := l.Load(ctx, etag)
			return store.Entry{}, string(checkpoint), err
		})
	default:
		c.mine = false
		c.do(ctx, call{op: "release", id: what.id}, func() (store.Entry, string, error) { return store.Entry{}, "", lease.Release(ctx) })
	}
	if meaning(err) == store.ErrLost {
		c.mine = false
	}
}

// text is a record that nobody writes twice.
func (c *client) text() string {
	c.made++
	return fmt.Sprintf("%d.%d", c.n, c.made)
}

func (c *client) newID() string {
	return fmt.Sprintf("%08x-%04x-4000-8000-%012x", c.dice.Uint32(), c.n, c.dice.Uint32())
}

func (c *client) upTo(d time.Duration) time.Duration {
	return time.Duration(c.dice.Int64N(int64(d) + 1))
}

func (c *client) oneIn(n int) bool { return c.dice.IntN(n) == 0 }
