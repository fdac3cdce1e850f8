package cluster_test

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/soloist-go/soloist/store"
)

// A fault stands between a replica and a call of an operation, which apply passes on.
type fault = func(op string, apply func() error) error

// A tap is one replica's way to the store: it counts calls, and can fail them
// or be cut.
type tap struct {
	store.Store
	t     *testing.T
	cut   atomic.Bool // nothing gets through; calls hang
	mu    sync.Mutex
	count map[string]int
	ids   map[string]bool
	whole bool   // its leases take two steps in one call, and have transactions
	deny  string // an entry that may not be read
	// fault stands between the replica and one call; nil: nothing does.
	fault fault
	// date changes the date of each answer, also of an error; nil: nothing does.
	date func(time.Time) time.Time
	// write stands between the store and a record that is written; nil: nothing does.
	write func(record []byte, apply func() error) error
	// before and after get the context of each call, before it is applied and before it is answered. An error of theirs
	// is the answer. Nil: they do nothing.
	before, after func(ctx context.Context, op string) error
}

func (s *tap) through(ctx context.Context, op string, apply func() error) error {
	s.mu.Lock()
	if s.count == nil {
		s.count = map[string]int{}
	}
	s.count[op]++
	fault := s.fault
	s.mu.Unlock()
	if s.cut.Load() {
		<-ctx.Done()
		return ctx.Err()
	}
	if s.before != nil {
		if err := s.before(ctx, op); err != nil {
			return err
		}
	}
	var err error
	if fault != nil {
		err = fault(op, apply)
	} else {
		err = apply()
	}
	if s.after != nil {
		if lost := s.after(ctx, op); lost != nil {
			return lost
		}
	}
	return err
}

// meet sets fault.
func (s *tap) meet(f fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = f
}

// via makes a call through a tap.
func via[T any](ctx context.Context, s *tap, op string, call func() (T, error)) (answer T, err error) {
	err = s.through(ctx, op, func() (err error) { answer, err = call(); return err })
	if s.date != nil {
		switch a := any(&answer).(type) {
		case *store.Entry:
			a.Date = s.date(a.Date)
		case *store.Document:
			a.Date = s.date(a.Date)
		case *store.Revision:
			a.Date = s.date(a.Date)
		}
	}
	return answer, err
}

// counts returns the calls so far by operation and starts anew.
// The reads of operators' orders are apart: they belong to no job.
func (s *tap) counts() map[string]int {
	n, _ := s.countsAndOrders()
	return n
}

// countsAndOrders also returns the number of reads of operators' orders.
func (s *tap) countsAndOrders() (calls map[string]int, orders int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	calls, s.count = s.count, nil
	orders = calls["read document"]
	delete(calls, "read document")
	return calls, orders
}

func (s *tap) Create(ctx context.Context, name string, record []byte) (store.Entry, error) {
	return via(ctx, s, "create", func() (store.Entry, error) { return s.Store.Create(ctx, name, record) })
}

func (s *tap) Read(ctx context.Context, name string) (store.Entry, error) {
	if name == s.deny {
		return store.Entry{}, fs.ErrPermission
	}
	return via(ctx, s, "read", func() (store.Entry, error) { return s.Store.Read(ctx, name) })
}

func (s *tap) Break(ctx context.Context, name string, period time.Duration) error {
	return s.through(ctx, "break", func() error { return s.Store.(store.LeaseBreaker).Break(ctx, name, period) })
}

func (s *tap) BreakUnchanged(ctx context.Context, name, etag string) error {
	return s.through(ctx, "break unchanged", func() error { return s.Store.(store.ConditionalBreaker).BreakUnchanged(ctx, name, etag) })
}

func (s *tap) ReadDocument(ctx context.Context, name, etag string) (store.Document, error) {
	d := s.Store.(store.Documenter)
	return via(ctx, s, "read document", func() (store.Document, error) { return d.ReadDocument(ctx, name, etag) })
}

func (s *tap) WriteDocument(ctx context.Context, name, etag string, body []byte) (store.Revision, error) {
	d := s.Store.(store.Documenter)
	return via(ctx, s, "write document", func() (store.Revision, error) { return d.WriteDocument(ctx, name, etag, body) })
}

// Lease checks that an id serves one acquisition, ever.
func (s *tap) Lease(name, id string) store.Lease {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ids[id] {
		s.t.Errorf("the lease id %s serves again", id)
	}
	if s.ids == nil {
		s.ids = map[string]bool{}
	}
	s.ids[id] = true
	l := &tapLease{s.Store.Lease(name, id), s}
	if s.whole {
		return &wholeLease{l}
	}
	return l
}

// A wholeLease has all that a lease may have.
type wholeLease struct{ *tapLease }

func (l *wholeLease) AcquireWrite(ctx context.Context, d time.Duration, etag string, record []byte) (store.Revision, error) {
	sent := context.WithoutCancel(ctx)
	return via(ctx, l.s, "acquire and write", func() (store.Revision, error) {
		return l.Lease.(store.Combiner).AcquireWrite(sent, d, etag, record)
	})
}

func (l *wholeLease) WriteRelease(ctx context.Context, etag string, record []byte) (store.Revision, error) {
	sent := context.WithoutCancel(ctx)
	return via(ctx, l.s, "write and release", func() (store.Revision, error) {
		return l.Lease.(store.Combiner).WriteRelease(sent, etag, record)
	})
}

type tapLease struct {
	store.Lease
	s *tap
}

func (l *tapLease) Acquire(ctx context.Context, d time.Duration, etag string) (store.Revision, error) {
	return via(ctx, l.s, "acquire", func() (store.Revision, error) { return l.Lease.Acquire(ctx, d, etag) })
}

func (l *tapLease) Renew(ctx context.Context) (store.Revision, error) {
	return via(ctx, l.s, "renew", func() (store.Revision, error) { return l.Lease.Renew(ctx) })
}

func (l *tapLease) Write(ctx context.Context, etag string, record []byte) (store.Revision, error) {
	sent := context.WithoutCancel(ctx) // a write that was sent may arrive when its caller waits no more
	return via(ctx, l.s, "write", func() (r store.Revision, err error) {
		write := func() (err error) { r, err = l.Lease.Write(sent, etag, record); return err }
		if l.s.write != nil {
			err = l.s.write(record, write)
		} else {
			err = write()
		}
		return r, err
	})
}

func (l *tapLease) Save(ctx context.Context, etag string, record, checkpoint []byte) (store.Revision, error) {
	s := l.Lease.(store.Checkpointer)
	return via(ctx, l.s, "save", func() (store.Revision, error) { return s.Save(ctx, etag, record, checkpoint) })
}

func (l *tapLease) Load(ctx context.Context, etag string) ([]byte, error) {
	s := l.Lease.(store.Checkpointer)
	return via(ctx, l.s, "load", func() ([]byte, error) { return s.Load(ctx, etag) })
}

// A transaction does what it is to do when it is committed.
type transaction struct{ effects []func() }

// Transact judges the lease at the commit, which is the call that a fault meets.
func (l *wholeLease) Transact(ctx context.Context, f func(any, store.TransactionWrite) error) (store.Revision, error) {
	tx := &transaction{}
	commit := func() (store.Revision, error) { return store.Revision{}, nil }
	err := f(tx, func(_ context.Context, etag string, record, checkpoint []byte) error {
		sent := context.WithoutCancel(ctx)
		commit = func() (store.Revision, error) {
			if checkpoint == nil {
				return l.Lease.Write(sent, etag, record)
			}
			return l.Lease.(store.Checkpointer).Save(sent, etag, record, checkpoint)
		}
		return nil
	})
	if err != nil {
		return store.Revision{}, err
	}
	return via(ctx, l.s, "commit", func() (store.Revision, error) {
		r, err := commit()
		if err == nil {
			for _, effect := range tx.effects {
				effect()
			}
		}
		return r, err
	})
}

func (l *tapLease) Release(ctx context.Context) error {
	return l.s.through(ctx, "release", func() error { return l.Lease.Release(ctx) })
}

// onNth has the n-th call of op go to f.
func onNth(op string, n int64, f func(apply func() error) error) fault {
	var seen atomic.Int64
	return func(got string, apply func() error) error {
		if got == op && seen.Add(1) == n {
			return f(apply)
		}
		return apply()
	}
}

// lose loses the answer to the n-th call of op, which is applied.
func lose(op string, n int64) fault {
	return onNth(op, n, func(apply func() error) error { _ = apply(); return errNetwork })
}

// drop loses the n-th call of op before it is applied.
func drop(op string, n int64) fault {
	return onNth(op, n, func(func() error) error { return errNetwork })
}

var errNetwork = errors.New("connection reset")

// fail fails the calls of ops, or all calls if none is named, before they are applied.
// Without an error they look as if they had been: a success that has no ETag.
func fail(err error, ops ...string) fault {
	return func(op string, apply func() error) error {
		if len(ops) == 0 || slices.Contains(ops, op) {
			return err
		}
		return apply()
	}
}

// failWrites fails writes alone, as for a role that allows to read and to lease.
func failWrites(err error) fault { return fail(err, "write", "save") }

var errWrite = errors.New("502 from a proxy: header too large")

// slow delays the calls of op.
func slow(d time.Duration, op string) fault {
	return before(op, func() { time.Sleep(d) })
}

// before calls f before each call of op.
func before(op string, f func()) fault {
	return func(got string, apply func() error) error {
		if got == op {
			f()
		}
		return apply()
	}
}

// after calls f after each call of op, before it is answered.
func after(op string, f func()) fault {
	return func(got string, apply func() error) error {
		err := apply()
		if got == op {
			f()
		}
		return err
	}
}

// inTurn fails the calls of op before they are applied, each with the next of errs, and
// those that follow with the last one. A call whose error is nil is applied.
func inTurn(op string, errs ...error) fault {
	var seen atomic.Int64
	return func(got string, apply func() error) error {
		if got != op {
			return apply()
		}
		if err := errs[min(int(seen.Add(1)), len(errs))-1]; err != nil {
			return err
		}
		return apply()
	}
}

// wholeSeconds leaves out fractions of a second, as HTTP does.
func wholeSeconds(t time.Time) time.Time { return t.Truncate(time.Second) }

// noDate is the date of a store that tells none.
func noDate(time.Time) time.Time { return time.Time{} }

// A faultyStore is a store some of whose calls meet a fault. Before is asked before a call is made, after
// once it has succeeded; an error of either is what the caller gets.
type faultyStore struct {
	store.Store

	mu            sync.Mutex
	before, after func(op, name string) error
}

// meets sets what its calls meet from now on; nil: nothing.
func (s *faultyStore) meets(before, after func(op, name string) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before, s.after = before, after
}

// around makes a call.
func (s *faultyStore) around(op, name string, call func() error) error {
	s.mu.Lock()
	before, after := s.before, s.after
	s.mu.Unlock()
	if before != nil {
		if err := before(op, name); err != nil {
			return err
		}
	}
	err := call()
	if err == nil && after != nil {
		err = after(op, name)
	}
	return err
}

func (s *faultyStore) Read(ctx context.Context, name string) (store.Entry, error) {
	return s.tap(name).Read(ctx, name)
}

func (s *faultyStore) Lease(name, id string) store.Lease { return s.tap(name).Lease(name, id) }

// tap is the way to one entry.
func (s *faultyStore) tap(name string) *tap {
	return &tap{Store: s.Store, fault: func(op string, apply func() error) error { return s.around(op, name, apply) }}
}

// of returns a fault of the calls for one entry.
func of(entry string, err error) func(op, name string) error {
	return func(_, name string) error {
		if strings.HasSuffix(name, "/"+entry) {
			return err
		}
		return nil
	}
}

// cutOffAfter fails each call of op, applied or not, and for so long afterwards all
// other calls, as a gateway does that blocks the sender of what it dislikes.
func cutOffAfter(op string, applied bool, block time.Duration) fault {
	var mu sync.Mutex // renewals and writes come from several goroutines
	var until time.Time
	return func(got string, apply func() error) error {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case time.Now().Before(until):
			return errNetwork
		case got != op:
			return apply()
		case applied:
			_ = apply()
		}
		until = time.Now().Add(block)
		return errNetwork
	}
}

// refusedAfterWrite fails each write, and refuses the read after it.
func refusedAfterWrite() fault {
	var wrote atomic.Bool
	return func(op string, apply func() error) error {
		switch {
		case op == "write":
			wrote.Store(true)
			return errNetwork
		case op == "read" && wrote.CompareAndSwap(true, false):
			return fs.ErrPermission
		}
		return apply()
	}
}
