package soloist_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/store"
)

// migration returns work that a replica is to do once for a key. The test sees it as a run.
func (c *cluster) migration(r *replica, key string, do func(context.Context, *soloist.Run) error) *soloist.Once {
	o := &soloist.Once{Name: "migrate", Key: key, Lease: D, Do: c.watch(r.Replica, do)}
	r.Bind(o)
	return o
}

// migrate has replicas do work once for a key, all at the same time, and returns their errors.
func (c *cluster) migrate(ctx context.Context, key string, retry soloist.Retry, do func(context.Context, *soloist.Run) error, replicas ...*replica) []error {
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

// replicas makes some that are not started.
func (c *cluster) replicas(names ...string) (all []*replica) {
	for _, name := range names {
		all = append(all, c.replica(name))
	}
	return all
}

func taking(d time.Duration) func(context.Context, *soloist.Run) error {
	return func(ctx context.Context, _ *soloist.Run) error { return pause(ctx, d) }
}

// One replica does the work for a key, and the others return once it is done. Afterwards it is done,
// for a new replica too, which then makes one call.
func TestOnceIsDoneOnceForKey(t *testing.T) {
	inCluster(t, func(c *cluster) {
		all := c.replicas("a", "b", "c", "d")
		begin := time.Now()
		for _, err := range c.migrate(c.t.Context(), "v1", soloist.Retry{}, taking(time.Minute), all...) {
			if err != nil {
				t.Error(err)
			}
		}
		c.wantRuns(1)
		run := c.all()[0]
		if took := time.Since(begin); took < time.Minute || time.Since(run.end) > 10*time.Second {
			t.Errorf("all return after %s, %s after the end", took, time.Since(run.end))
		}
		if run.ID() != "migrate@v1" || run.Job != "migrate" || !run.Tick.IsZero() {
			t.Errorf("got %+v", run.Run)
		}
		late := c.replica("e")
		if errs := c.migrate(c.t.Context(), "v1", soloist.Retry{}, nil, late); errs[0] != nil {
			t.Error(errs)
		}
		if n := late.tap.counts(); len(n) != 1 || n["read"] != 1 {
			t.Errorf("that it is done costs %v", n)
		}
		c.wantRuns(1)
	})
}

// Two goroutines may call Run of one Once at the same time.
func TestOnceFromTwoGoroutines(t *testing.T) {
	inCluster(t, func(c *cluster) {
		o := c.migration(c.replica("a"), "v1", taking(time.Minute))
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() {
				if err := o.Run(c.t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		c.wantRuns(1)
	})
}

func TestEachKeyIsWorkOfItsOwn(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a, b := c.replica("a"), c.replica("b")
		keys := []string{"v1", "V1", "v1 ", "sha256:" + strings.Repeat("0", 64), "Straße 1", "v1"}
		for _, key := range keys {
			for _, err := range c.migrate(c.t.Context(), key, soloist.Retry{}, nil, a, b) {
				if err != nil {
					t.Error(err)
				}
			}
		}
		c.wantRuns(len(keys) - 1)
		other := c.migration(a, "v1", nil)
		other.Name = "seed"
		if err := other.Run(c.t.Context()); err != nil {
			t.Error(err)
		}
		c.wantRuns(len(keys))
	})
}

// A failure is tried again after the pause, which doubles, by whichever replica looks first; a replica
// that comes new counts the tries of the others.
func TestOnceIsTriedAgainAfterFailure(t *testing.T) {
	inCluster(t, func(c *cluster) {
		tries := 0
		do := func(context.Context, *soloist.Run) error {
			if tries++; tries <= 4 {
				return errors.New("the database is locked")
			}
			return nil
		}
		for _, err := range c.migrate(c.t.Context(), "v1", soloist.Retry{Backoff: time.Minute}, do, c.replicas("a", "b", "c")...) {
			if err != nil {
				t.Error(err)
			}
		}
		c.wantRuns(5)
		disjoint(t, c.all())
		for i, want := range []time.Duration{time.Minute, 2 * time.Minute, 4 * time.Minute, 5 * time.Minute} {
			if got := c.all()[i+1].start.Sub(c.all()[i].end); got < want || got > want+2*time.Second {
				t.Errorf("try %d begins %s after the one before, want %s", i+2, got, want)
			}
		}
		want := []string{"failed", "failed", "failed", "failed", "succeeded"}
		for i, outcome := range c.outcomes(c.onlyEntry("soloist")) {
			if !strings.HasPrefix(outcome, want[i]) {
				t.Errorf("outcome %d is %s", i, outcome)
			}
		}
	})
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

// After MaxTries the work is given up by all replicas, those that come later too, and each says why.
func TestOnceIsGivenUpEverywhere(t *testing.T) {
	inCluster(t, func(c *cluster) {
		do := func(context.Context, *soloist.Run) error { return errors.New("the column exists") }
		retry := soloist.Retry{MaxTries: 3, Backoff: time.Second}
		all := c.replicas("a", "b", "c")
		errs := c.migrate(c.t.Context(), "v1", retry, do, all...)
		errs = append(errs, c.migrate(c.t.Context(), "v1", retry, do, append(all, c.replica("d"))...)...)
		for _, err := range errs {
			wantError(t, err, `"migrate"`, `"v1"`, "failed 3 times", "not tried again", "the column exists")
		}
		c.wantRuns(3)
		if errs := c.migrate(c.t.Context(), "v2", retry, nil, all...); errors.Join(errs...) != nil {
			t.Error("the next key:", errs)
		}
		for _, err := range c.migrate(c.t.Context(), "v3", soloist.Retry{MaxTries: 1}, do, all...) {
			wantError(t, err, "it has failed on ", "not tried again", "the column exists")
		}
	})
}

// If the replica dies that does the work, another one begins it again, within a lease and a little
// after its death. The dead one's context has ended by then.
func TestOnceOfDeadReplicaBeginsAgain(t *testing.T) {
	inCluster(t, func(c *cluster) {
		all := c.replicas("a", "b", "c")
		var killed time.Time
		do := func(ctx context.Context, run *soloist.Run) error {
			if killed.IsZero() {
				killed = time.Now()
				victim := c.all()[0].replica
				for _, r := range all {
					if r.Replica == victim {
						r.kill()
					}
				}
			}
			return pause(ctx, time.Minute)
		}
		ctx := c.within(time.Hour)
		errs := c.migrate(ctx, "v1", soloist.Retry{Backoff: time.Second}, do, all...)
		c.wantRuns(2)
		disjoint(t, c.all())
		if took := c.all()[1].start.Sub(killed); took > D+3*time.Second {
			t.Errorf("begun again after %s", took)
		}
		failed := 0
		for _, err := range errs {
			if err != nil {
				failed++
			}
		}
		if failed != 1 { // the dead one sees nothing for an hour
			t.Errorf("got %v", errs)
		}
	})
}

// A replica that lost its lease in the work waits for what the others make of it, as any other replica.
func TestOnceThatLosesItsLeaseWaitsOn(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a, b := c.replica("a"), c.replica("b")
		do := func(ctx context.Context, _ *soloist.Run) error {
			if len(c.all()) == 1 {
				a.meets(fail(errNetwork))
				time.AfterFunc(2*D, func() { a.meets(nil) })
			}
			return pause(ctx, 10*time.Second)
		}
		time.AfterFunc(5*time.Second, func() {
			for _, err := range c.migrate(c.t.Context(), "v1", soloist.Retry{Backoff: time.Second}, nil, b) {
				if err != nil {
					t.Error(err)
				}
			}
		})
		if errs := c.migrate(c.t.Context(), "v1", soloist.Retry{Backoff: time.Second}, func(ctx context.Context, run *soloist.Run) error {
			if err := do(ctx, run); err != nil {
				return err
			}
			return pause(ctx, 10*time.Second)
		}, a); errs[0] != nil {
			t.Error(errs[0])
		}
		c.wantRuns(2)
		disjoint(t, c.all())
	})
}

// No call that is lost, or whose answer is, makes the work undone, or done by two replicas at a time.
func TestOnceSurvivesLostCalls(t *testing.T) {
	for name, loss := range map[string]func(string, int64) fault{"the call": drop, "the answer": lose, "all answers for a while": loseFrom} {
		for _, op := range []string{"create", "read", "acquire", "write", "renew", "release"} {
			for n := range int64(2) {
				inCase(t, op+" "+name, func(t *testing.T, c *cluster) {
					a, b := c.replica("a"), c.replica("b")
					a.meets(loss(op, n+1))
					for _, err := range c.migrate(c.t.Context(), "v1", soloist.Retry{Backoff: time.Second}, taking(time.Second+D/3), a, b) {
						if err != nil {
							t.Error(err)
						}
					}
					disjoint(t, c.all())
					if n := len(c.all()); n < 1 || n > 2 {
						t.Errorf("%d runs", n)
					}
				})
			}
		}
	}
}

// What Skip returns counts as done.
func TestOnceThatSkipsIsDone(t *testing.T) {
	inCluster(t, func(c *cluster) {
		do := func(context.Context, *soloist.Run) error { return soloist.Skip("the schema is up to date") }
		for range 2 {
			all := c.replicas("a", "b")
			for i, err := range c.migrate(c.t.Context(), "v1", soloist.Retry{}, do, all...) {
				if err != nil {
					t.Error(err)
				}
				all[i].wantLines(0, "failed")
			}
		}
		c.wantRuns(1)
	})
}

// A stop in the work is no failure: another replica goes on at once, without a pause, and it counts
// for no limit.
func TestStopOfOnceIsNoFailure(t *testing.T) {
	inCluster(t, func(c *cluster) {
		for i := range 5 {
			ctx, cancel := context.WithCancel(c.t.Context())
			time.AfterFunc(30*time.Second, cancel)
			begin := time.Now()
			errs := c.migrate(ctx, "v1", soloist.Retry{MaxTries: 2, Backoff: time.Hour}, taking(time.Minute), c.replica(fmt.Sprint("r", i)))
			if took := time.Since(begin); !errors.Is(errs[0], context.Canceled) || took > 30*time.Second {
				t.Errorf("got %v after %s", errs[0], took)
			}
		}
		c.wantRuns(5)
	})
}

// Work that is too long for its context would else be tried for ever; a panic too.
func TestDeadlineAndPanicOfOnceAreFailures(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a, retry := c.replica("a"), soloist.Retry{MaxTries: 2, Backoff: time.Second}
		errs := c.migrate(c.within(time.Minute), "v1", retry, taking(time.Hour), a)
		errs = append(errs, c.migrate(c.t.Context(), "v1", retry, func(context.Context, *soloist.Run) error { panic("out of ink") }, a)...)
		wantError(t, errs[0], context.DeadlineExceeded.Error())
		wantError(t, errs[1], "failed 2 times", "out of ink")
	})
}

// While another replica is at it, or the pause after a failure lasts, the end of the context says
// what Run waits for.
func TestContextEndsWhileOnceWaits(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a, b := c.replica("a"), c.replica("b")
		retry := soloist.Retry{Backoff: 2 * time.Minute}
		ends := make(chan []error)
		go func() {
			ends <- c.migrate(c.within(11*time.Minute), "v1", retry, func(ctx context.Context, _ *soloist.Run) error {
				return errors.Join(pause(ctx, 10*time.Minute), errors.New("out of paper"))
			}, a)
		}()
		time.Sleep(10 * time.Second)
		errs := c.migrate(c.within(time.Minute), "v1", retry, nil, b)
		wantError(t, errs[0], `once "migrate" for "v1"`, "a runs it", context.DeadlineExceeded.Error())
		b.wantLines(1, "waiting", "holder=a", "once=migrate", "key=v1")
		until(10*time.Minute + 10*time.Second)
		errs = c.migrate(c.within(5*time.Second), "v1", retry, nil, b)
		wantError(t, errs[0], "failed on a", "out of paper", context.DeadlineExceeded.Error())
		b.wantLines(1, "will be tried again", "out of paper")
		wantError(t, (<-ends)[0], "failed on a", "out of paper", context.DeadlineExceeded.Error())
		c.wantRuns(1)
	})
}

func TestOnceRefusesBadInput(t *testing.T) {
	memory := &local.Memory{}
	do := func(context.Context, *soloist.Run) error { return nil }
	good := func() *soloist.Once {
		return &soloist.Once{Name: "migrate", Key: "v1", Do: do, Store: memory, Lease: D}
	}
	if err := good().Validate(); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		change func(*soloist.Once)
		want   []string
	}{
		"no name":             {func(o *soloist.Once) { o.Name = "" }, []string{"Name", `""`, "empty"}},
		"a long name":         {func(o *soloist.Once) { o.Name = strings.Repeat("x", 33) }, []string{"Name", "33", "32"}},
		"a name of controls":  {func(o *soloist.Once) { o.Name = "a\tb" }, []string{"Name", `a\tb`, "printable"}},
		"no key":              {func(o *soloist.Once) { o.Key = "" }, []string{"Key", `""`, "1 to 200"}},
		"a long key":          {func(o *soloist.Once) { o.Key = strings.Repeat("x", 300) }, []string{"Key", "300", "200"}},
		"a key of controls":   {func(o *soloist.Once) { o.Key = "v1\x00" }, []string{"Key", `v1\x00`, "printable"}},
		"no function":         {func(o *soloist.Once) { o.Do = nil }, []string{"Do", "nil", "function"}},
		"no store":            {func(o *soloist.Once) { o.Store = nil }, []string{"Store", "nil"}},
		"a bad app":           {func(o *soloist.Once) { o.App = "A/B" }, []string{"App", "A/B"}},
		"a bare number":       {func(o *soloist.Once) { o.Lease = 30 }, []string{"Lease", "30", "time.Second"}},
		"a long lease":        {func(o *soloist.Once) { o.Lease = time.Hour }, []string{"Lease", "1h0m0s"}},
		"a bare backoff":      {func(o *soloist.Once) { o.Retry.Backoff = 10 }, []string{"Retry.Backoff", "10", "time.Second"}},
		"a negative backoff":  {func(o *soloist.Once) { o.Retry.Backoff = -time.Minute }, []string{"Retry.Backoff", "-1m0s"}},
		"negative tries":      {func(o *soloist.Once) { o.Retry.MaxTries = -1 }, []string{"Retry.MaxTries", "-1", "0 to 20"}},
		"many tries":          {func(o *soloist.Once) { o.Retry.MaxTries = math.MaxInt }, []string{"Retry.MaxTries", "0 to 20"}},
		"a pause of failures": {func(o *soloist.Once) { o.Retry.PauseAfter = 3 }, []string{"Retry.PauseAfter", "3", "zero"}},
	} {
		t.Run(name, func(t *testing.T) {
			o := good()
			tt.change(o)
			wantError(t, o.Validate(), tt.want...)
			wantError(t, o.Run(t.Context()), tt.want...)
		})
	}
}

// Work that is done once needs no scheduler. What is set is kept by Bind.
func TestOnceWithoutScheduler(t *testing.T) {
	inCluster(t, func(c *cluster) {
		o := &soloist.Once{Name: "migrate", Key: "v1", Store: c.store, Do: c.watch("a", nil)}
		if err := errors.Join(o.Run(c.t.Context()), o.Run(c.t.Context())); err != nil {
			t.Error(err)
		}
		c.wantRuns(1)
		own := &soloist.Once{Name: "migrate", Key: "v2", Store: c.store, App: "own", Replica: "me", Lease: D, Do: c.watch("a", nil)}
		other := c.replica("a")
		other.Store = &local.Memory{}
		other.Bind(own)
		if err := own.Run(c.t.Context()); err != nil || own.App != "own" || own.Replica != "me" {
			t.Error(err, own.App, own.Replica)
		}
		c.onlyEntry("own")
	})
}
