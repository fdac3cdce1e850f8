package soloist

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/soloist-go/soloist/internal/entry"
	"github.com/soloist-go/soloist/internal/lease"
	"github.com/soloist-go/soloist/internal/mutex"
	"github.com/soloist-go/soloist/internal/plan"
	"github.com/soloist-go/soloist/internal/runner"
	"github.com/soloist-go/soloist/internal/supervise"
	"github.com/soloist-go/soloist/store"
)

// A Once is work that is done once for each key, over all replicas: a migration for each version of a
// build, for example. It is claimed as a run of a job is. The first call of a method reads the fields;
// later changes have no effect.
type Once struct {
	// Name says which work it is: printable text, of up to 32 bytes in the entry's name, where
	// lower-case letters, digits and single hyphens count as one byte and all other bytes as four.
	Name string

	// Key is what the work is done once for: printable text of up to 200 bytes. Each key has an
	// entry of its own, which stays: without it the work would be done again.
	Key string

	// Do does the work. Its context ends when the lease is lost or the context of Run ends. If its
	// replica dies, another one begins the work again, so it must be safe to repeat. A panic counts
	// as a failure; what [Skip] returns counts as success. After a failure, [Permanent] gives the
	// work up for this key, and [RetryAfter] makes the pause longer, on all replicas.
	Do func(ctx context.Context, run *Run) error

	// Retry says what follows a failure, on whichever replica: MaxTries is after how many failures,
	// at most 20, the work is given up for this key, zero: never; Backoff is the pause after the
	// first one, and doubles up to five minutes, zero: 10 s. The death of a replica is a failure,
	// and so is the deadline of the context of Run; a stop is none. PauseAfter has no use here.
	Retry Retry

	// These are as for a [Lock]. In a program of package host they may be left empty.
	Store   store.Store
	App     string
	Lease   time.Duration
	Replica string
	Logger  *slog.Logger
	Overrun func(name string, cause error)

	of     *runner.Replica // whose clocks it has, then its own; nil: none
	beside *beside         // the jobs of a scheduler; nil: of none
	once   sync.Once
	made   onceMade
}

// A onceMade is what the first call of a method makes of a Once.
type onceMade struct {
	invalid error
	work    *mutex.Once
	log     *slog.Logger
	trouble *slog.Logger // the same through a queue
}

// maxOnceTries is how many failures a record keeps.
const maxOnceTries = 20

// Run returns nil once the work has been done for the key, by this replica or another one. It does the
// work if no other replica is at it, waits if one is, and tries again as Retry says. If it was done
// before, that costs one call to the store. The error says that the work is given up, that the record
// cannot be used, or why it was not done when ctx ended.
func (o *Once) Run(ctx context.Context) error {
	if err := o.Validate(); err != nil {
		return err
	}
	defer o.beside.enter(o.of)()
	err := o.made.work.Run(ctx, func(ctx context.Context, h *supervise.Handle) error {
		run := newRun(o.made.log, part{name: o.Name, shards: 1}, h)
		run.Request, run.Tick, run.replica = o.Key, time.Time{}, o.of
		return o.Do(ctx, run)
	}, o.teller())
	if err != nil {
		return fmt.Errorf("once %s for %s: %w", quote(o.Name), quote(o.Key), err)
	}
	return nil
}

// Validate returns all that is wrong with the fields, joined, or nil.
func (o *Once) Validate() error {
	o.once.Do(o.prepare)
	return o.made.invalid
}

// Bind gives o what it has not: the store, the app and the replica of a scheduler, its log and its clocks.
func (s *Scheduler) Bind(o *Once) {
	s.once.Do(s.prepare)
	if o.Store == nil {
		o.Store, o.of, o.beside = s.Store, s.core.Replica, &s.core.beside
	}
	setDefault(&o.App, s.App)
	setDefault(&o.Replica, s.Replica)
	if o.Logger == nil {
		o.Logger = s.Logger
	}
	if o.Overrun == nil {
		o.Overrun = s.Overrun
	}
}

func (o *Once) prepare() {
	setDefault(&o.App, "soloist")
	setDefault(&o.Replica, "replica-"+rand.Text()[:8])
	setDefault(&o.Retry.Backoff, defaultBackoff)
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if err := o.check(); err != nil {
		o.made.invalid = fmt.Errorf("once %s: %w", quote(o.Name), err)
		return
	}
	o.made.log = o.Logger.With("once", o.Name, "key", o.Key, "replica", o.Replica)
	r := bareReplica(o.App, o.Replica, o.Store, o.of)
	if o.Overrun != nil {
		r.Overrun = func(_ string, cause error) { o.Overrun(o.Name, cause) }
	}
	o.of = r
	o.made.trouble = hearTrouble(r, o.made.log)
	length, beat := leaseOf(o.Lease, o.Store)
	job := &runner.Job{Name: entry.OfKey(o.Name, o.Key), Task: newTask(o.Logger, part{name: o.Name, shards: 1}, o.Do, 0, HealthCheck{}, 0),
		Policy: plan.Policy{Lease: length, Beat: beat, Spec: "once " + o.Key, CountsByHand: true}}
	o.made.work = &mutex.Once{Slot: runner.New(r, job), Clock: r.Clock, Jitter: lease.NewJitter(o.Replica + job.Name), Length: length, Beat: beat,
		Retry: mutex.Retry{Most: o.Retry.MaxTries, Backoff: o.Retry.Backoff}}
}

// teller returns what logs why the work is not done yet, in one call of Run. The same is logged once.
func (o *Once) teller() func(mutex.Trouble) {
	told := ""
	return func(t mutex.Trouble) {
		level, text, args := slog.LevelInfo, "waiting for what is to be done once", []any{"holder", t.Holder}
		if t.Err != nil {
			level, text, args = slog.LevelWarn, "what is to be done once is not known to be done and will be tried again", []any{"error", t.Err.Error()}
		}
		if t.Failed {
			text = "what is to be done once has failed and will be tried again"
		}
		if said := fmt.Sprint(text, args); said != told {
			told = said
			o.made.trouble.Log(context.Background(), level, text, args...)
		}
	}
}

func (o *Once) check() error {
	errs := checkPlace(o.Store, o.App, o.Replica)
	if err := entry.CheckOnce(o.Name); err != nil {
		errs = append(errs, wrongFor("Name", o.Name, err))
	}
	if err := entry.CheckKey(o.Key); err != nil {
		errs = append(errs, wrongFor("Key", o.Key, err))
	}
	if o.Do == nil {
		errs = append(errs, wrong("Do", "nil", "a function"))
	}
	if n := o.Retry.MaxTries; n < 0 || n > maxOnceTries {
		errs = append(errs, wrong("Retry.MaxTries", n, fmt.Sprintf("0 to %d", maxOnceTries)))
	}
	if o.Retry.PauseAfter != 0 {
		errs = append(errs, wrong("Retry.PauseAfter", o.Retry.PauseAfter, "zero: what is done once is not paused"))
	}
	errs = append(errs, checkDuration("Retry.Backoff", o.Retry.Backoff, time.Millisecond), checkLease(o.Lease, o.Store))
	return errors.Join(errs...)
}
