package soloist

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/soloist-go/soloist/internal/entry"
	"github.com/soloist-go/soloist/internal/mutex"
	"github.com/soloist-go/soloist/internal/runner"
	"github.com/soloist-go/soloist/internal/supervise"
	"github.com/soloist-go/soloist/store"
)

// A Lock lets one caller of all replicas do something at a time, or as many as it has slots. It is held
// as a job is: under a lease that is renewed, with a claim in a record, and with a fencing token. The
// first call of a method reads the fields; later changes have no effect. Its methods may be called by
// many goroutines.
//
// [Scheduler.Lock] and [Run.Lock] return a Lock of the same store and app. Without a scheduler, set Store.
type Lock struct {
	// Name says which lock it is, and may be data: "tenant-42", an address, a path. It is printable
	// text of up to 512 bytes. The entry of a name that does not fit in 48 bytes, escaped, has a
	// digest of it.
	Name string

	// Store holds leases and records. Nil is an error.
	Store store.Store

	// App is the namespace of the entries, as in a Scheduler. Empty: "soloist".
	App string

	// Slots is how many callers may hold the lock at once, at most 100. If replicas with different
	// numbers are up, the largest number counts. Zero: 1.
	Slots int

	// Lease is how long a dead holder keeps others from the lock, in whole seconds. The
	// store has its limits: 15 to 60 s on Azure. From 1 s on, a shorter one is kept by beats, at a
	// price: see docs/leases.md. Zero: 30 s.
	Lease time.Duration

	// Replica names this process in records and logs. Empty: a random name.
	Replica string

	// Logger receives trouble: a lost lease, a holder that died, a store that does not answer. It may
	// block, as a Scheduler's may. Nil: slog.Default().
	Logger *slog.Logger

	// Overrun is called when a function has not returned a sixth of the lease after its lease was
	// lost. By then the process has to end, since the lock can go to another. Until the function has
	// returned, this Lock takes nothing new. Nil: that is only logged.
	Overrun func(name string, cause error)

	of      *runner.Replica // whose clocks it has, then its own; nil: none
	once    sync.Once
	invalid error
	mutex   *mutex.Mutex
	log     *slog.Logger // of functions that hold the lock
}

// Do waits for the lock until ctx ends, calls f, releases the lock, and returns the error of f. The
// context of f ends with ctx, and with [ErrLost] before the lock can be another's; then Do returns
// ErrLost even if f returns nil. A panic of f is an error. f should pass [Run.Token] to what it writes
// to: the token of a lock grows with each holder, and of several slots each has tokens of its own. Of
// the other methods of the Run, ID is unique for each holder, and Check, Save and Load are as for a job.
//
// A waiting caller looks at the lock after an eighth of the time that its holder has had it already,
// less a random part: after 25 ms at least, after a sixth of the lease at most. Callers of one Lock wait
// in turn, and one of them looks. If they have had the lock one after the other for long, it is left free
// for a moment, so that other replicas see it free. The first holder of a new lock waits up to two
// seconds, so that no token comes twice, also if its ctx ends meanwhile.
//
// If ctx ends first, the error has the cause of that end, and is ErrHeld if another holder was seen. A
// call that has waited behind another one of this Lock, which has seen no holder, says so instead. If
// the store does not answer, Do tries until ctx ends; if it refuses, or the record of the lock cannot be
// used, Do returns that. A Do inside of f with the same lock is an error: it would wait for itself. Two
// locks are the same if store, app and name are; stores that cannot be compared, as a struct with a map
// cannot, all count as one.
func (l *Lock) Do(ctx context.Context, f func(ctx context.Context, run *Run) error) error {
	return l.do(ctx, f, (*mutex.Mutex).Do)
}

// TryDo is Do if the lock is free. If another caller has it, TryDo returns [ErrHeld] at once, also if that
// caller has only the lease so far and has yet to claim. It waits for what is no other caller: a store
// that does not answer, the token of a new lock, and, if an operator has ended the lease of the last
// holder, until that one must have given up. If one slot of several cannot be read and the others are
// held, it returns both errors, and does not wait.
func (l *Lock) TryDo(ctx context.Context, f func(ctx context.Context, run *Run) error) error {
	return l.do(ctx, f, (*mutex.Mutex).TryDo)
}

func (l *Lock) do(ctx context.Context, f func(context.Context, *Run) error, by func(*mutex.Mutex, context.Context, mutex.Work) error) error {
	if err := l.Validate(); err != nil {
		return err
	}
	if f == nil {
		return fmt.Errorf("lock %q: the function is nil", l.Name)
	}
	if ctx.Value(l.heldKey()) != nil {
		return fmt.Errorf("lock %q: it is held by the caller already, and would wait for itself", l.Name)
	}
	return by(l.mutex, ctx, func(ctx context.Context, slot int, h *supervise.Handle) error {
		run := newRun(l.log, part{name: l.Name, shards: 1}, h)
		run.slot = slot
		run.Request, run.Tick = "", time.Time{} // of a manual run, which this is in the record alone
		run.replica = l.of
		return f(context.WithValue(ctx, l.heldKey(), true), run)
	})
}

// Validate returns all that is wrong with the fields of the lock, joined, or nil.
func (l *Lock) Validate() error {
	l.once.Do(l.prepare)
	return l.invalid
}

// A heldKey is the key of a context whose function holds a lock. The store is nil if it cannot be
// compared: then all such locks of one app and name count as the same.
type heldKey struct {
	app, name string
	store     any
}

func (l *Lock) heldKey() heldKey {
	if !reflect.ValueOf(l.Store).Comparable() {
		return heldKey{l.App, l.Name, nil}
	}
	return heldKey{l.App, l.Name, l.Store}
}

// prepare fills in defaults, checks the fields and makes the slots.
func (l *Lock) prepare() {
	setDefault(&l.App, "soloist")
	setDefault(&l.Replica, "replica-"+rand.Text()[:8])
	setDefault(&l.Slots, 1)
	if l.Logger == nil {
		l.Logger = slog.Default()
	}
	if l.invalid = l.check(); l.invalid != nil {
		return
	}
	l.log = l.Logger.With("lock", l.Name, "replica", l.Replica)
	r := bareReplica(l.App, l.Replica, l.Store, l.of)
	if l.Overrun != nil {
		r.Overrun = func(_ string, cause error) { l.Overrun(l.Name, cause) }
	}
	l.of = r
	hearTrouble(r, l.log)
	l.mutex = newSlots(r, entry.Lock, l.Name, l.Slots, orDefault(l.Lease, defaultLease))
}

func (l *Lock) check() error {
	errs := checkPlace(l.Store, l.App, l.Replica)
	if err := entry.Check(l.Name); err != nil {
		errs = append(errs, wrongFor("Name", l.Name, err))
	}
	if l.Slots < 1 || l.Slots > entry.MaxSlots {
		errs = append(errs, wrong("Slots", l.Slots, fmt.Sprintf("zero, or 1 to %d", entry.MaxSlots)))
	}
	if err := errors.Join(append(errs, checkLease(l.Lease, l.Store))...); err != nil {
		return fmt.Errorf("lock %s: %w", quote(l.Name), err)
	}
	return nil
}

// Lock returns the lock of that name, in the store and the app of the scheduler. Slots and Lease may be
// set before its first use.
func (s *Scheduler) Lock(name string) *Lock {
	s.once.Do(s.prepare)
	return &Lock{Name: name, Store: s.Store, App: s.App, Replica: s.Replica, Logger: s.Logger, Overrun: s.Overrun, of: s.core.Replica}
}

// Lock returns the lock of that name, in the store and the app of the run, as [Scheduler.Lock] does. Its
// lease and its token are its own. Give Do the context of the run, so that its function ends with the
// run. If no Scheduler made the run, Do returns an error: there is no store.
func (r *Run) Lock(name string) *Lock {
	l := &Lock{Name: name, Logger: r.Log, of: r.replica}
	if of := r.replica; of != nil {
		l.Store, l.App, l.Replica, l.Overrun = of.Store, of.App, of.Name, of.Overrun
	}
	return l
}

// minUnused is the least time after which a lock counts as unused. It is much longer than any lease.
const minUnused = 10 * time.Minute

// Sweep removes the entries of locks of an app that no caller has held for so long, at least ten minutes,
// so that locks which are used once do not pile up, and returns their names. What [Run.Save] has put
// there goes with them. It is safe while replicas are up. A lock that is used again starts with a
// larger token than it ever had. Entries of jobs, singletons and [Once] stay. A document of the app notes how far the
// sweep goes; in a store without documents the first use of a process that knew a lock can take one lease longer.
//
// The store has to implement [store.Lister] and [store.Remover]. If the error is not nil, some entries
// may be removed.
func Sweep(ctx context.Context, backend store.Store, app string, unused time.Duration) (removed []string, err error) {
	s, ok := backend.(mutex.Sweeper)
	switch {
	case backend == nil:
		return nil, wrong("Store", "nil", "a place for leases and records")
	case !ok:
		return nil, errors.New("the store cannot remove entries: it does not implement store.Lister and store.Remover")
	case !appRule.MatchString(app):
		return nil, wrong("App", quote(app), "a lower-case letter or digit, then up to 62 of them or hyphens")
	case unused < minUnused:
		return nil, wrong("the time for which a lock was not used", unused, fmt.Sprintf("%s or more", minUnused))
	}
	return mutex.Sweep(ctx, s, app, unused)
}

// A beside counts what is under way in addition to the jobs of a scheduler, in the same store, each by its
// own replica. Jobs that wait for it ask the store nothing, so their replica knows of no outage. Its
// methods may be called on nil.
type beside struct {
	mu      sync.Mutex
	all     []*runner.Replica
	reached bool // a replica that has left was answered
}

// enter notes that r is under way until leave is called.
func (b *beside) enter(r *runner.Replica) (leave func()) {
	if b == nil {
		return func() {}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.all = append(b.all, r)
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.reached = b.reached || r.Health().Reached
		i := slices.Index(b.all, r)
		b.all = slices.Delete(b.all, i, i+1)
	}
}

// storage returns why the store does not answer one of them, and whether it has ever answered.
func (b *beside) storage() (trouble error, reached bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	reached = b.reached
	for _, r := range b.all {
		h := r.Health()
		reached = reached || h.Reached
		if h.Storage != nil {
			trouble = h.Storage
		}
	}
	return trouble, reached
}
