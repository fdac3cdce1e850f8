package storetest

import (
	"context"
	"errors"
	"io/fs"

	"github.com/soloist-go/soloist/store"
)

// transactions is about writes in one transaction with an effect: both are kept, or neither.
var transactions = []property{
	{"Transact/write", transactor, func(c *check) {
		s := c.saved()
		s.transacts(`{"by":"transaction"}`, nil, "checkpoint")
	}},
	{"Transact/save", transactor, func(c *check) {
		s := c.saved()
		s.transacts(`{"by":"transaction"}`, []byte("next"), "next")
		s.transacts(`{"by":"another"}`, []byte{}, "")
	}},
	{"Transact/unseen", transactor, func(c *check) { // until it is committed
		s := c.saved()
		_, err := s.transact(s.own, s.etag, []byte("next"), func(err error) error {
			s.must("write", err)
			s.unkept("before it is committed")
			return nil
		})
		s.must("transact", err)
	}},
	{"Transact/renewed", transactor, func(c *check) { // until the write, the entry is free for renewals
		s := c.saved()
		_, err := c.transactor(s.own).Transact(c.ctx, func(tx any, write store.TransactionWrite) error {
			s.must("put", c.effect(c.ctx, tx, s.name))
			s.renew("renew in a transaction", s.own, nil)
			return write(c.ctx, s.etag, []byte(late), nil)
		})
		s.must("transact", err)
	}},
	{"Transact/fails", transactor, func(c *check) {
		s := c.saved()
		own := errors.New("of the caller's own")
		_, err := c.transactor(s.own).Transact(c.ctx, func(tx any, _ store.TransactionWrite) error {
			s.must("put", c.effect(c.ctx, tx, s.name))
			return own
		})
		if err != own {
			s.errorf("transact that fails before the write: got error %v, want the caller's as it is", err)
		}
		s.unkept("after a failure before the write")
		_, err = s.transact(s.own, s.etag, []byte("next"), func(error) error { return own })
		if err != own {
			s.errorf("transact that fails after the write: got error %v, want the caller's as it is", err)
		}
		s.unkept("after a failure after the write")
	}},
	{"Transact/panics", transactor, func(c *check) {
		s := c.saved()
		func() {
			defer func() { _ = recover() }()
			_, err := s.transact(s.own, s.etag, []byte("next"), func(error) error { panic("of the caller's own") })
			s.want("transact that panics", err, errAny)
		}()
		s.unkept("after a panic")
	}},
	{"Transact/no-write", transactor, func(c *check) {
		s := c.saved()
		_, err := c.transactor(s.own).Transact(c.ctx, func(tx any, _ store.TransactionWrite) error { return c.effect(c.ctx, tx, s.name) })
		s.want("transact without a write", err, errAny)
		s.unkept("without a write")
	}},
	{"Transact/other", transactor, func(c *check) {
		s := c.saved()
		s.refuses("by another", s.rest, s.etag, store.ErrLost)
	}},
	{"Transact/changed", transactor, func(c *check) {
		s := c.saved()
		old := s.etag
		s.must("save", s.keep(s.own, "checkpoint"))
		s.refuses("with an old ETag", s.own, old, store.ErrChanged)
	}},
	{"Transact/released", transactor, func(c *check) {
		s := c.saved()
		s.release("release", s.own, nil)
		s.refuses("after the release", s.own, s.etag, store.ErrLost)
	}},
	{"Transact/expired", transactor, func(c *check) {
		s := c.expired()
		s.refuses("after the lease has run out", s.own, s.etag, store.ErrLost)
	}},
	{"Transact/expires", transactor, func(c *check) { // it is judged when it writes, not when it begins
		s := c.subject()
		s.acquire(s.own, s.shortest())
		_, err := c.transactor(s.own).Transact(c.ctx, func(tx any, write store.TransactionWrite) error {
			s.must("put", c.effect(c.ctx, tx, s.name))
			s.await(store.Expired)
			return write(c.ctx, s.etag, []byte(late), nil)
		})
		s.want("write past the end of the lease", err, store.ErrLost)
		s.unkept("past the end of the lease")
	}},
	{"Transact/gone", transactor, func(c *check) {
		s := &subject{check: c, store: c.store, name: newName()}
		_, err := s.transact(s.lease(), newID(), nil, asItIs)
		s.wantGoneOrLost("transact of what is not there", err)
		s.want("read after it", errOf(c.store.Read(c.ctx, s.name)), fs.ErrNotExist)
		s.count("of what is not there", 0)
	}},
	{"Transact/context", transactor, func(c *check) {
		s := c.saved()
		s.promptly("transact", func(ctx context.Context) error {
			return errOf(c.transactor(s.own).Transact(ctx, func(any, store.TransactionWrite) error { return nil }))
		})
	}},
}

// late is the record that a transaction writes if it should not.
const late = `{"by":"late"}`

func (c *check) transactor(l store.Lease) store.Transactor { return l.(store.Transactor) }

func asItIs(err error) error { return err }

// transact puts an effect under the name of the entry and writes. f gets the answer to the write.
func (s *subject) transact(l store.Lease, etag string, checkpoint []byte, f func(error) error) (store.Revision, error) {
	return s.transactor(l).Transact(s.ctx, func(tx any, write store.TransactionWrite) error {
		s.must("put", s.effect(s.ctx, tx, s.name))
		return f(write(s.ctx, etag, []byte(late), checkpoint))
	})
}

// transacts is a transaction that is kept: record, checkpoint, ETag and effect.
func (s *subject) transacts(record string, checkpoint []byte, want string) {
	before, err := s.effects(s.ctx, s.name)
	s.must("effects before", err)
	r, err := s.transactor(s.own).Transact(s.ctx, func(tx any, write store.TransactionWrite) error {
		s.must("put", s.effect(s.ctx, tx, s.name))
		return write(s.ctx, s.etag, []byte(record), checkpoint)
	})
	s.must("transact", err)
	if r.ETag == s.etag || r.Date.IsZero() {
		s.errorf("transact: got %+v, want a new ETag and a date", r)
	}
	s.etag = r.ETag
	s.holds("after a transaction", record, want)
	s.count("after a transaction", before+1)
}

// refuses is a transaction that is not kept, with a checkpoint or without, and whether the caller minds that the write is refused
// or not.
func (s *subject) refuses(what string, l store.Lease, etag string, want error) {
	for _, checkpoint := range [][]byte{nil, []byte("next")} {
		for _, f := range []func(error) error{asItIs, func(error) error { return nil }} {
			_, err := s.transact(l, etag, checkpoint, f)
			s.want("transact "+what, err, want)
			s.unkept(what)
		}
	}
}

// unkept checks that nothing of a transaction is there.
func (s *subject) unkept(when string) {
	if e := s.read(); string(e.Record) != first || e.ETag != s.etag {
		s.errorf("%s: got record %s, ETag %s, want those of before: %s, %s", when, e.Record, e.ETag, first, s.etag)
	}
	s.count(when, 0)
}

func (s *subject) count(when string, want int) {
	got, err := s.effects(s.ctx, s.name)
	s.must("effects", err)
	if got != want {
		s.errorf("%s: got %d effects, want %d", when, got, want)
	}
}
