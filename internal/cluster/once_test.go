package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/store"
)

// One replica does the work for a key, and the others return once it is done. Afterwards it is done,
// for a new replica too, which then makes one call. Goroutines may share a Once. What Skip returns counts as done.
func TestOnceIsDoneOnceForKey(t *testing.T) {
	inCluster(t, func(c *cluster) {
		begin := time.Now()
		c.migrated("v1", soloist.Retry{}, taking(time.Minute), c.replicas("a", "b", "c", "d")...)
		c.wantRuns(1)
		run := c.all()[0]
		if took := time.Since(begin); took < time.Minute || time.Since(run.end) > 10*time.Second {
			t.Errorf("all return after %s, %s after the end", took, time.Since(run.end))
		}
		if run.ID() != "migrate@v1" || run.Job != "migrate" || !run.Tick.IsZero() {
			t.Errorf("got %+v", run.Run)
		}
		late := c.replica("e")
		c.migrated("v1", soloist.Retry{}, nil, late)
		if n := late.tap.counts(); len(n) != 1 || n["read"] != 1 {
			t.Errorf("that it is done costs %v", n)
		}
		shared := c.migration(late, "v2", taking(time.Minute))
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() { c.ok(shared.Run(c.t.Context())) })
		}
		all.Wait()
		c.wantRuns(2)
		for range 2 {
			c.migrated("v3", soloist.Retry{}, meeting(soloist.Skip("the schema is up to date")), late, c.replica("f"))
		}
		c.wantRuns(3)
		late.wantLines(0, "failed")
	})
}

// A failure is tried again after the pause, which doubles, by whichever replica looks first; a replica
// that comes new counts the tries of the others, and keeps the pause that the work has asked for. That holds
// for one try, and does not shorten the Backoff.
func TestOnceIsTriedAgainAfterFailure(t *testing.T) {
	locked := errors.New("the database is locked")
	asking := func(d time.Duration) error { return soloist.RetryAfter(locked, d) }
	for name, tt := range map[string]struct {
		errs   []error
		pauses []time.Duration
	}{
		"failures": {[]error{locked, locked, locked, locked},
			[]time.Duration{time.Minute, 2 * time.Minute, 4 * time.Minute, 5 * time.Minute}},
		"asks for a pause": {[]error{asking(20 * time.Minute), asking(time.Second), asking(0), asking(-time.Hour)},
			[]time.Duration{20 * time.Minute, 2 * time.Minute, 4 * time.Minute, 5 * time.Minute}},
	} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			do, retry := meeting(tt.errs...), soloist.Retry{Backoff: time.Minute}
			c.migrate(c.within(30*time.Second), "v1", retry, do, c.replica("a")) // a does not come back
			c.migrated("v1", retry, do, c.replicas("b", "c")...)
			runs := c.succession(5)
			for i, want := range tt.pauses {
				if got := runs[i+1].start.Sub(runs[i].end); got < want || got > want+2*time.Second {
					t.Errorf("try %d begins %s after the one before, want %s", i+2, got, want)
				}
			}
			var got []string
			for _, outcome := range c.outcomes(c.onlyEntry("soloist")) {
				got = append(got, strings.Fields(outcome)[0])
			}
			if want := []string{"failed", "failed", "failed", "failed", "succeeded"}; !slices.Equal(got, want) {
				t.Errorf("the outcomes %q", got)
			}
		})
	}
}

// After MaxTries, or a failure for good, the work is given up by all replicas, those that come later too, and each
// says why. The next key is work of its own. The record has no room for twenty outcomes with long errors.
func TestOnceIsGivenUpEverywhere(t *testing.T) {
	exists := errors.New("the column exists")
	for name, tt := range map[string]struct {
		most int
		err  error
		want string
		runs int
	}{
		"after three failures": {3, exists, "failed 3 times", 3},
		"after one failure":    {1, exists, "it has failed on ", 1},
		"for good":             {0, fmt.Errorf("migrate: %w", soloist.Permanent(exists)), "the column exists", 1},
		"long errors":          {20, errors.New(strings.Repeat("relation already exists; ", 30)), "failed 20 times", 20},
		"escaped errors":       {20, errors.New(strings.Repeat("失敗", 100)), "failed 20 times", 20},
	} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			do := func(context.Context, *soloist.Run) error { return tt.err }
			retry := soloist.Retry{MaxTries: tt.most, Backoff: time.Second}
			all := c.replicas("a", "b", "myapp-deployment-7d9f8b6c5d-x2k4p")
			errs := c.migrate(c.t.Context(), "v1", retry, do, all...)
			errs = append(errs, c.migrate(c.t.Context(), "v1", retry, do, append(all, c.replica("d"))...)...)
			for _, err := range errs {
				wantError(t, err, `"migrate"`, `"v1"`, tt.want, "not tried again", tt.err.Error()[:12])
			}
			c.wantRuns(tt.runs)
			c.migrated("v2", retry, nil, all...)
		})
	}
}

// Work that is too long for its context would else be tried for ever; a panic too. A pause beyond all measure leaves a record
// that can be read.
func TestDeadlineAndPanicOfOnceAreFailures(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a, retry := c.replica("a"), soloist.Retry{MaxTries: 2, Backoff: time.Second}
		wantError(t, c.migrate(c.within(time.Minute), "v1", retry, taking(time.Hour), a)[0], context.DeadlineExceeded.Error())
		panics := func(context.Context, *soloist.Run) error { panic("out of ink") }
		wantError(t, c.migrate(c.t.Context(), "v1", retry, panics, a)[0], "failed 2 times", "out of ink")
		never := meeting(soloist.RetryAfter(errors.New("never"), math.MaxInt64))
		for _, r := range c.replicas("a", "b") {
			errs := c.migrate(c.within(time.Hour), "v2", soloist.Retry{}, never, r)
			wantError(t, errs[0], "failed on a: never", context.DeadlineExceeded.Error())
		}
		c.wantRuns(3)
	})
}

// Work that has lost its lease is done again, here or elsewhere: Run does not end for that, and waits for
// what the others make of it.
func TestOnceLost(t *testing.T) {
	for _, broken := range []bool{true, false} {
		inCase(t, fmt.Sprint("broken: ", broken), func(t *testing.T, c *cluster) {
			a, b := c.replica("a"), c.replica("b")
			retry := soloist.Retry{Backoff: time.Second}
			time.AfterFunc(5*time.Second, func() {
				if broken {
					c.ok(c.store.Break(context.Background(), "soloist/"+c.onlyEntry("soloist"), 0))
					return
				}
				a.meets(fail(errNetwork))
				time.AfterFunc(2*D, func() { a.meets(nil) })
				c.migrated("v1", retry, nil, b)
			})
			c.migrated("v1", retry, taking(20*time.Second), a)
			c.succession(2)
		})
	}
}

// A stop in the work is no failure, whatever the work says of it: another replica goes on at once, without a pause, and
// it counts for no limit, also once the work has failed after that.
func TestStopOfOnceIsNoFailure(t *testing.T) {
	inCluster(t, func(c *cluster) {
		retry := soloist.Retry{MaxTries: 2, Backoff: time.Hour}
		for i := range 5 {
			ctx, cancel := context.WithCancel(c.t.Context())
			time.AfterFunc(30*time.Second, cancel)
			begin := time.Now()
			errs := c.migrate(ctx, "v1", retry, func(ctx context.Context, _ *soloist.Run) error {
				if i%2 == 0 {
					return soloist.Permanent(pause(ctx, time.Minute))
				}
				return pause(ctx, time.Minute)
			}, c.replica(fmt.Sprint("r", i)))
			if took := time.Since(begin); !errors.Is(errs[0], context.Canceled) || took > 30*time.Second {
				t.Errorf("got %v after %s", errs[0], took)
			}
		}
		c.migrated("v1", retry, meeting(errors.New("the database is locked")), c.replica("b"))
		c.wantRuns(7)
	})
}

// A claim whose work does not begin is no try, if its replica can take it back before another one settles it.
func TestOnceThatDidNotBeginIsNoTry(t *testing.T) {
	for name, meet := range map[string]func(*replica){
		"no answer for 3 s":        func(r *replica) { r.meets(awayFrom("write", 3*time.Second)) },
		"no answer for two leases": func(r *replica) { r.meets(awayFrom("write", 2*D)) },
		"suspended before it begins": func(r *replica) {
			var machine suspended
			r.on(&machine).meets(after("write", sync.OnceFunc(func() { machine.slept.Store(int64(2 * D)) })))
		},
	} {
		inCase(t, name, func(_ *testing.T, c *cluster) {
			a := c.replica("a")
			meet(a)
			c.migrated("v1", soloist.Retry{MaxTries: 1}, nil, a)
			c.wantRuns(1)
		})
	}
}

// A holder that was cut off may go on. A replica that gives the work up because of that has written so before: nothing
// succeeds afterwards.
func TestOnceIsGivenUpOnlyByItsRecord(t *testing.T) {
	for _, cut := range []time.Duration{2 * time.Second, time.Minute} {
		inCase(t, fmt.Sprint("cut off for ", cut), func(t *testing.T, c *cluster) {
			a, b := c.replica("a"), c.replica("b")
			run := func(r *replica) error {
				do := func(context.Context, *soloist.Run) error { time.Sleep(50 * time.Second); return nil }
				return c.migrate(c.within(10*time.Minute), "v1", soloist.Retry{MaxTries: 1}, do, r)[0]
			}
			ended := make(chan error)
			go func() { ended <- run(a) }()
			time.Sleep(5 * time.Second)
			a.tap.cut.Store(true)
			time.AfterFunc(cut, func() { a.tap.cut.Store(false) })
			err := run(b)
			rec := c.record(c.onlyEntry("soloist"))
			<-ended
			time.Sleep(10 * time.Minute)
			later := c.record(rec.Job)
			gaveUp, status := err != nil, later.Run.Status
			if gaveUp != (cut == time.Minute) || gaveUp == (status == event.Succeeded) || status != rec.Run.Status {
				t.Errorf("got %v while the record said %s, and it says %s in the end", err, rec.Run.Status, status)
			}
		})
	}
}

// While another replica is at it, or the pause after a failure lasts, the end of the context says
// what Run waits for.
func TestContextEndsWhileOnceWaits(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a, b := c.replica("a"), c.replica("b")
		retry, ended := soloist.Retry{Backoff: 2 * time.Minute}, make(chan error)
		go func() {
			ended <- c.migrate(c.within(11*time.Minute), "v1", retry, func(ctx context.Context, _ *soloist.Run) error {
				return errors.Join(pause(ctx, 10*time.Minute), errors.New("out of paper"))
			}, a)[0]
		}()
		time.Sleep(10 * time.Second)
		errs := c.migrate(c.within(time.Minute), "v1", retry, nil, b)
		wantError(t, errs[0], `once "migrate" for "v1"`, "a runs it", context.DeadlineExceeded.Error())
		b.wantLines(1, "waiting", "holder=a", "once=migrate", "key=v1")
		until(10*time.Minute + 10*time.Second)
		errs = append(c.migrate(c.within(5*time.Second), "v1", retry, nil, b), <-ended)
		b.wantLines(1, "will be tried again", "out of paper")
		for _, err := range errs {
			wantError(t, err, "failed on a", "out of paper", context.DeadlineExceeded.Error())
		}
		c.wantRuns(1)
	})
}

// What was not begun is not told as a failure that is tried again, least of all at the end.
func TestOnceTellsWhatWasNotBegun(t *testing.T) {
	for name, tt := range map[string]struct {
		meets fault
		lines int
	}{
		"reads are refused":   {fail(fs.ErrPermission), 0},
		"nothing is answered": {fail(errNetwork), 0},
		"writes are refused":  {failWrites(fs.ErrPermission), 1},
	} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			a := c.replica("a").meets(tt.meets)
			errs := c.migrate(c.within(time.Hour), "v1", soloist.Retry{}, nil, a)
			wantError(t, errs[0], context.DeadlineExceeded.Error())
			time.Sleep(time.Second) // the log has a queue
			a.wantLines(0, "has failed")
			if len(a.log.lines("level=WARN")) == 0 {
				t.Error("nothing is told")
			}
			a.wantLines(tt.lines, "will be tried again")
			a.wantLines(tt.lines, "not known to be done", "grant it write access")
			c.wantRuns(0)
		})
	}
}

// A log that blocks does not keep Run waiting.
func TestOnceLogBlocks(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a, release := c.blocked("")
		time.AfterFunc(time.Hour, release)
		begin := time.Now()
		c.ok(c.migration(a, "v1", meeting(errors.New("not yet"))).Run(c.t.Context()))
		if took := time.Since(begin); took > time.Minute {
			t.Errorf("Run returned after %s", took)
		}
		time.Sleep(2 * time.Hour)
	})
}

// Work that is done once needs no scheduler. What is set is kept by Bind.
func TestOnceWithoutScheduler(t *testing.T) {
	inCluster(t, func(c *cluster) {
		o := &soloist.Once{Name: "migrate", Key: "v1", Store: c.store, Do: c.watch("a", nil)}
		c.ok(errors.Join(o.Validate(), o.Run(c.t.Context()), o.Run(c.t.Context())))
		c.wantRuns(1)
		own := &soloist.Once{Name: "migrate", Key: "v2", Store: c.store, App: "own", Replica: "me", Lease: D, Do: taking(0)}
		other := c.replica("a")
		other.Store = &local.Memory{}
		other.Bind(own)
		if err := own.Run(c.t.Context()); err != nil || own.App != "own" || own.Replica != "me" {
			t.Error(err, own.App, own.Replica)
		}
		c.onlyEntry("own")
	})
}

// swept sweeps, and checks which entries that removes.
func (c *cluster) swept(unused time.Duration, want ...string) {
	c.t.Helper()
	if got, err := soloist.Sweep(c.t.Context(), c.store, "soloist", unused); err != nil || !slices.Equal(got, want) {
		c.t.Fatalf("removed %q, %v, want %q", got, err, want)
	}
}

// holds takes a lock for so long, and returns the token. A replica that is killed may lose it.
func (c *cluster) holds(r *replica, l *soloist.Lock, d time.Duration) (token int64) {
	err := l.Do(c.t.Context(), func(ctx context.Context, run *soloist.Run) error {
		token = run.Token
		_ = pause(ctx, d)
		return nil
	})
	if err != nil && c.t.Context().Err() == nil && !r.tap.cut.Load() {
		c.t.Errorf("the lock %s: %v", l.Name, err)
	}
	return token
}

// wantWait takes a lock, and checks for how long that waits.
func (c *cluster) wantWait(r *replica, l *soloist.Lock, least, most time.Duration) {
	c.t.Helper()
	begin := time.Now()
	c.holds(r, l, 0)
	if took := time.Since(begin); took < least || took > most {
		c.t.Errorf("the lock is taken after %s, want %s to %s", took, least, most)
	}
}

// diesAndIsDeleted has a replica that holds a lock die, and its entry deleted: it may go on.
func (c *cluster) diesAndIsDeleted(r *replica, lock string) {
	c.t.Helper()
	r.kill()
	c.ok(c.store.Break(c.t.Context(), "soloist/0-lock-"+lock, 0))
	c.ok(c.store.Delete(c.t.Context(), "soloist/0-lock-"+lock))
}

// Locks that are used once and never again must not pile up, and what is in use must stay.
func TestSweep(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.start("a", work("0 * * * *", time.Second))
		once := c.migration(a, "v1", nil)
		c.ok(once.Run(c.t.Context()))
		for _, name := range []string{"old", "Old/2", "held", "used"} {
			c.holds(a, a.locked(name), 0)
		}
		c.held(a, a.locked("held"), 3*time.Hour)
		time.Sleep(2 * time.Hour)
		c.holds(a, a.locked("used"), 0)
		c.swept(time.Hour, "0-lock---4fld--2f2", "0-lock-old")
		for _, name := range []string{"0-lock-held", "0-lock-used", "work"} {
			c.record(name)
		}
		c.ok(once.Run(c.t.Context()))
		if _, err := c.store.Read(c.t.Context(), "soloist/0-lock-old"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the entry of a lock that was removed: %v", err)
		}
	})
}

// A sweep removes what no replica holds, so the next holder waits only for the token of a new entry. A tick of a group
// that must not be late is run.
func TestSweepDelaysNoHolder(t *testing.T) {
	inCluster(t, func(c *cluster) {
		j := inGroup(1, "0 */2 * * *", time.Minute)[0].(soloist.Job)
		j.Late.Missed, j.Lease = soloist.SkipMissed, D
		a := c.limited("a", 1, j)
		c.limited("b", 1, j)
		time.Sleep(2*time.Hour + 10*time.Minute)
		l := a.locked("old")
		c.holds(a, l, time.Second)
		time.Sleep(100 * time.Minute)
		if got, err := soloist.Sweep(c.t.Context(), c.store, "soloist", time.Hour); err != nil || len(got) != 2 {
			t.Fatal(got, err)
		}
		c.wantWait(a, l, 0, 3*time.Second)
		time.Sleep(30 * time.Minute)
		if got := c.outcomes("import-0"); len(got) != 2 || !strings.HasPrefix(got[1], "succeeded") {
			t.Errorf("outcomes: %q", got)
		}
	})
}

// A slowRemover takes a minute for each removal.
type slowRemover struct{ *local.Memory }

func (s slowRemover) Remove(ctx context.Context, name, etag string) error {
	time.Sleep(time.Minute)
	return s.Memory.Remove(ctx, name, etag)
}

// Nor does one wait that uses a lock again while its sweep still removes others.
func TestSweepUnderWayDelaysNoHolder(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.replica("a")
		l := a.locked("old")
		c.holds(a, l, time.Second)
		c.holds(a, a.locked("old2"), time.Second)
		time.Sleep(2 * time.Hour)
		done := make(chan error)
		go func() {
			got, err := soloist.Sweep(c.t.Context(), slowRemover{c.store}, "soloist", time.Hour)
			if len(got) != 2 {
				err = fmt.Errorf("removed %q, %w", got, err)
			}
			done <- err
		}()
		time.Sleep(90 * time.Second)
		c.wantWait(a, l, 0, 3*time.Second)
		c.ok(<-done)
	})
}

// A replica that has looked at a lock since the time of a sweep knows that the sweep has not removed it: if an operator
// deletes it then, its holder may not know.
func TestSweepForgetsOnlyWhatWasSeenBefore(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a, b := c.replica("a"), c.replica("b")
		l := a.locked("held")
		c.holds(a, a.locked("old"), 0)
		c.held(b, b.locked("held"), 3*time.Hour)
		for range 2 {
			time.Sleep(time.Hour + time.Minute)
			if err := l.TryDo(c.t.Context(), taking(0)); !errors.Is(err, soloist.ErrHeld) {
				t.Error(err)
			}
		}
		c.swept(time.Hour, "0-lock-old")
		c.diesAndIsDeleted(b, "held")
		c.wantWait(a, l, D, time.Minute)
	})
}

// A replica that saw a lock free waits for a lease if the entry was deleted and not swept: another may have taken it
// since, and may not know. So it does if it has seen the lock since the sweep, or if the store keeps no note of that.
func TestSweepProvesNothingAboutDeletion(t *testing.T) {
	for name, tt := range map[string]struct{ swept, seen, deleted bool }{ // seen: the entry that was made after the sweep
		"deleted":                   {deleted: true},
		"deleted after a sweep":     {swept: true, seen: true, deleted: true},
		"swept, without a document": {swept: true},
	} {
		inCase(t, name, func(_ *testing.T, c *cluster) {
			a, b := c.replica("a"), c.replica("b")
			if !tt.deleted {
				a.Store = struct{ store.Store }{a.Store}
			}
			l := a.locked("old")
			c.holds(a, l, time.Second)
			time.Sleep(2 * time.Hour)
			if tt.swept {
				c.swept(time.Hour, "0-lock-old")
			}
			if tt.seen {
				c.holds(a, l, time.Second)
			}
			if tt.deleted {
				c.held(b, b.locked("old"), time.Hour)
				time.Sleep(time.Minute)
				c.diesAndIsDeleted(b, "old")
			}
			c.wantWait(a, l, D, time.Minute)
		})
	}
}

// An operator has ended the lease of a holder that may not know: its entry says for how long to wait.
func TestSweepSparesBrokenLease(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.replica("a")
		c.held(a, a.guard(), 2*time.Hour)
		time.Sleep(time.Hour)
		a.kill()
		c.breakGuard()
		c.swept(30 * time.Minute)
	})
}

func TestSweepRefuses(t *testing.T) {
	for what, tt := range map[string]struct {
		store  store.Store
		app    string
		unused time.Duration
	}{
		"a place for leases and records": {nil, "soloist", time.Hour},
		"App":                            {&local.Memory{}, "So", time.Hour},
		"was not used":                   {&local.Memory{}, "soloist", time.Minute},
		"store.Remover":                  {struct{ store.Store }{&local.Memory{}}, "soloist", time.Hour},
	} {
		_, err := soloist.Sweep(t.Context(), tt.store, tt.app, tt.unused)
		wantError(t, err, what)
	}
}

// A replica has had the lock since the sweep, and lost it to another one. The entry of that one is deleted: the replica knew the
// entry, so it waits for a lease, whether other locks were once swept or not.
func TestSweepLeavesWhatWasUsedSince(t *testing.T) {
	for _, sweeps := range []bool{false, true} {
		inCase(t, fmt.Sprint("sweeps ", sweeps), func(t *testing.T, c *cluster) {
			all := c.replicas("a", "b")
			a, b := all[0], all[1]
			c.holds(a, a.locked("old"), 0)
			time.Sleep(2 * time.Hour)
			if sweeps {
				c.swept(time.Hour, "0-lock-old")
			}
			time.Sleep(2 * time.Hour)
			la, lb := a.locked("x"), b.locked("x")
			la.Lease, lb.Lease = D, D
			cut := make(chan struct{})
			go func() { // it loses its lease in an outage of its own
				_ = la.Do(c.t.Context(), func(ctx context.Context, run *soloist.Run) error {
					a.tap.cut.Store(true)
					close(cut)
					<-ctx.Done()
					return nil
				})
			}()
			<-cut
			var end time.Time
			over := make(chan struct{})
			time.Sleep(20 * time.Second)
			go func() {
				defer close(over)
				_ = lb.Do(c.t.Context(), func(ctx context.Context, run *soloist.Run) error {
					_ = pause(ctx, 10*time.Minute)
					end = time.Now()
					return nil
				})
			}()
			time.Sleep(20 * time.Second)
			a.tap.cut.Store(false)
			time.Sleep(31 * time.Second)
			c.ok(c.store.Break(c.t.Context(), "soloist/0-lock-x", 0))
			c.ok(c.store.Delete(c.t.Context(), "soloist/0-lock-x"))
			var begin time.Time
			c.ok(la.Do(c.t.Context(), func(context.Context, *soloist.Run) error {
				begin = time.Now()
				return nil
			}))
			<-over
			if begin.Before(end) {
				t.Errorf("a begins at %s, and b has the lock until %s", begin.Format(time.TimeOnly), end.Format(time.TimeOnly))
			}
		})
	}
}

// A replica whose clock is fast says that there is to be no further try: the others believe it, though its run ends in their future.
func TestPermanentByFastClock(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a, b := c.replica("a"), c.replica("b")
		a.Elapsed = func() time.Duration { return sinceMidnight() + sinceMidnight()/105 }
		wantError(t, c.migration(a, "v1", func(ctx context.Context, _ *soloist.Run) error {
			_ = pause(ctx, 3*time.Hour)
			return soloist.Permanent(errors.New("boom"))
		}).Run(c.t.Context()), "boom")
		wantError(t, c.migration(b, "v1", nil).Run(c.within(time.Minute)), "for good")
	})
}
