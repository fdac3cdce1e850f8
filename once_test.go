package soloist_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/store"
)

// A function does the work.
type function = func(context.Context, *soloist.Run) error

// migration returns work that a replica is to do once for a key. The test sees it as a run.
func (c *cluster) migration(r *replica, key string, do function) *soloist.Once {
	o := &soloist.Once{Name: "migrate", Key: key, Lease: D, Do: c.watch(r.Replica, do)}
	r.Bind(o)
	return o
}

// migrate has replicas do work once for a key, all at the same time, and returns their errors.
func (c *cluster) migrate(ctx context.Context, key string, retry soloist.Retry, do function, replicas ...*replica) []error {
	ctx, cancel := context.WithTimeout(ctx, 24*time.Hour) // work that is never done would be waited for for ever
	defer cancel()
	var all sync.WaitGroup
	errs := make([]error, len(replicas))
	for i, r := range replicas {
		o := c.migration(r, key, do)
		o.Retry = retry
		all.Go(func() { errs[i] = o.Run(ctx) })
	}
	all.Wait()
	return errs
}

// migrated is migrate without an error.
func (c *cluster) migrated(key string, retry soloist.Retry, do function, replicas ...*replica) {
	c.t.Helper()
	c.ok(errors.Join(c.migrate(c.t.Context(), key, retry, do, replicas...)...))
}

// replicas makes some that are not started.
func (c *cluster) replicas(names ...string) (all []*replica) {
	for _, name := range names {
		all = append(all, c.replica(name))
	}
	return all
}

func taking(d time.Duration) function {
	return func(ctx context.Context, _ *soloist.Run) error { return pause(ctx, d) }
}

// meeting returns what ends with each of errs in turn, and succeeds then.
func meeting(errs ...error) function {
	return func(context.Context, *soloist.Run) error {
		if len(errs) == 0 {
			return nil
		}
		err := errs[0]
		errs = errs[1:]
		return err
	}
}

// onlyEntry returns the name of the only entry of an app.
func (c *cluster) onlyEntry(app string) string {
	c.t.Helper()
	var names []string
	err := c.store.List(context.Background(), app, func(name string, _ store.Entry) bool {
		names = append(names, strings.TrimPrefix(name, app+"/"))
		return true
	})
	if err != nil || len(names) != 1 {
		c.t.Fatalf("the entries %q, %v", names, err)
	}
	return names[0]
}

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

// A pause beyond all measure leaves a record that can be read.
func TestOnceThatAsksForEndlessPause(t *testing.T) {
	inCluster(t, func(c *cluster) {
		do := meeting(soloist.RetryAfter(errors.New("never"), math.MaxInt64))
		for _, r := range c.replicas("a", "b") {
			errs := c.migrate(c.within(time.Hour), "v1", soloist.Retry{Backoff: time.Second}, do, r)
			wantError(t, errs[0], "failed on a: never", context.DeadlineExceeded.Error())
		}
		c.wantRuns(1)
	})
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

// Work that is too long for its context would else be tried for ever; a panic too.
func TestDeadlineAndPanicOfOnceAreFailures(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a, retry := c.replica("a"), soloist.Retry{MaxTries: 2, Backoff: time.Second}
		wantError(t, c.migrate(c.within(time.Minute), "v1", retry, taking(time.Hour), a)[0], context.DeadlineExceeded.Error())
		panics := func(context.Context, *soloist.Run) error { panic("out of ink") }
		wantError(t, c.migrate(c.t.Context(), "v1", retry, panics, a)[0], "failed 2 times", "out of ink")
	})
}

// If the replica dies that does the work, another one begins it again, within a lease and a little
// after its death. The dead one's context has ended by then.
func TestOnceOfDeadReplicaBeginsAgain(t *testing.T) {
	for _, tt := range []struct{ lease, least, most time.Duration }{
		{D, 0, D + 3*time.Second},
		{3 * time.Second, 2 * time.Second, 6 * time.Second},
	} {
		inCase(t, tt.lease.String(), func(t *testing.T, c *cluster) {
			once := func(r *replica) *soloist.Once {
				r.tap.Store = coarse{c.store}
				o := c.migration(r, "v1", taking(time.Minute))
				o.Lease, o.Retry.Backoff = tt.lease, time.Second
				return o
			}
			a, b := c.replica("a"), c.replica("b")
			c.meanwhile(func() { _ = once(a).Run(c.within(time.Hour)) })
			time.Sleep(5 * time.Second)
			a.kill()
			killed := time.Now()
			c.ok(once(b).Run(c.t.Context()))
			if took := c.succession(2)[1].start.Sub(killed); took < tt.least || took > tt.most {
				t.Errorf("begun again after %s", took)
			}
		})
	}
}

// A death is a failure also if it is the last one, and its pause is kept.
func TestDeathsCountAsTriesOfOnce(t *testing.T) {
	for _, most := range []int{1, 3} {
		inCase(t, fmt.Sprint(most), func(t *testing.T, c *cluster) {
			for i := range 6 {
				r := c.replica(fmt.Sprint("r", i))
				dies := func(ctx context.Context, _ *soloist.Run) error {
					r.kill()
					<-ctx.Done()
					return errors.New("dead")
				}
				errs := c.migrate(c.within(10*time.Minute), "v1", soloist.Retry{MaxTries: most, Backoff: time.Minute}, dies, r)
				if errs[0] == nil {
					t.Errorf("%s: no error", r.Replica)
				}
			}
			runs := c.succession(most)
			for i, run := range runs[1:] {
				if pause := run.start.Sub(runs[i].start); pause < time.Minute {
					t.Errorf("begun again %s after the last time", pause)
				}
			}
		})
	}
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

// No call that is lost, or whose answer is, makes the work undone, or done by two replicas at a time.
func TestOnceSurvivesLostCalls(t *testing.T) {
	lostCalls(t, 2, func(t *testing.T, c *cluster, lost fault) {
		c.migrated("v1", soloist.Retry{Backoff: time.Second}, taking(time.Second+D/3), c.replica("a").meets(lost), c.replica("b"))
		disjoint(t, c.all())
		if n := len(c.all()); n < 1 || n > 2 {
			t.Errorf("%d runs", n)
		}
	})
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
		"no answer for 3 s":        func(r *replica) { r.meets(away(3 * time.Second)) },
		"no answer for two leases": func(r *replica) { r.meets(away(2 * D)) },
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
			if gaveUp != (cut == time.Minute) || gaveUp == (status == store.Succeeded) || status != rec.Run.Status {
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
		release := make(chan struct{})
		time.AfterFunc(time.Hour, func() { close(release) })
		begin, once := time.Now(), c.migration(c.replica("a"), "v1", meeting(errors.New("not yet")))
		once.Logger = slog.New(blockedLog{Handler: slog.NewTextHandler(io.Discard, nil), release: release})
		if err := once.Run(c.t.Context()); err != nil || time.Since(begin) > time.Minute {
			t.Errorf("Run returned %v after %s", err, time.Since(begin))
		}
		time.Sleep(2 * time.Hour)
	})
}

func TestOnceRefusesBadInput(t *testing.T) {
	for _, tt := range []struct {
		once *soloist.Once
		want []string
	}{
		{&soloist.Once{}, []string{`Name is ""`, "empty", `Key is ""`, "1 to 200", "Do is nil", "Store is nil"}},
		{&soloist.Once{Name: strings.Repeat("x", 33), Key: strings.Repeat("x", 300),
			Retry: soloist.Retry{MaxTries: math.MaxInt, PauseAfter: 3}},
			[]string{"33", "32", "300", "200", "Retry.MaxTries", "0 to 20", "Retry.PauseAfter is 3", "zero"}},
		{&soloist.Once{Name: "migrate", Key: "v1\x00", Store: &local.Memory{}, App: "A/B", Lease: 30,
			Retry: soloist.Retry{MaxTries: -1, Backoff: 10}},
			[]string{`v1\x00`, "printable", "A/B", "Lease is", "30", "Retry.Backoff is", "10", "time.Second", "Retry.MaxTries is -1"}},
	} {
		wantError(t, tt.once.Validate(), tt.want...)
		wantError(t, tt.once.Run(t.Context()), tt.want...)
	}
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
