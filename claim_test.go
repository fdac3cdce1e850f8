package soloist_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/store"
)

func TestEachTickRunsOnce(t *testing.T) {
	for _, skew := range []time.Duration{0, 2 * time.Second, -2 * time.Second, time.Hour, -time.Hour} {
		inCase(t, skew.String(), func(t *testing.T, c *cluster) {
			for i := range 3 {
				c.launch(c.replica(string(rune('a'+i)), work("@every 1s", 50*time.Millisecond)).skewed(time.Duration(i) * skew))
			}
			time.Sleep(62*time.Second + 500*time.Millisecond)
			if got := once(t, afterTheFirst(c.all())); got != 60 {
				t.Errorf("%d ticks ran, want 60", got)
			}
			for _, r := range c.all() {
				if early := r.Tick.Sub(r.start); early > time.Second {
					t.Errorf("tick %s started %s early", r.Tick, early)
				}
			}
		})
	}
}

func TestShortJobIsNotRepeatedBySlowClock(t *testing.T) {
	inCluster(t, func(c *cluster) {
		c.start("right", work("@every 10s", time.Millisecond))
		c.launch(c.replica("late", work("@every 10s", time.Millisecond)).skewed(-4 * time.Second))
		time.Sleep(5*time.Minute + time.Second)
		if got := once(t, c.all()); got != 30 {
			t.Errorf("%d ticks ran, want 30", got)
		}
	})
}

func TestNewJobOwesNothing(t *testing.T) {
	inCluster(t, func(c *cluster) {
		time.Sleep(3 * time.Second)
		begin := time.Now()
		c.startAll(work("@every 10s", time.Second), "a", "b", "c")
		time.Sleep(9 * time.Second)
		runs := c.all()
		if len(runs) != 1 || runs[0].start.Sub(begin) > 7*time.Second+100*time.Millisecond {
			t.Fatalf("got %v, want one run at the first tick", runs)
		}
		c.wantOutcomes("work", "succeeded 00:00:10")
	})
}

func TestOneReplicaLeads(t *testing.T) {
	inCluster(t, func(c *cluster) {
		c.startAll(leader(), "a", "b", "c")
		time.Sleep(2 * time.Hour)
		if got := c.all(); len(got) != 1 || !got[0].end.IsZero() {
			t.Errorf("got %+v, want one term that goes on", got)
		}
	})
}

// The newest tick waits for no older one, and the older are told as missed,
// however the replicas go.
func TestRollingRestartsLoseNoTick(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := work("@every 10s", 3*time.Second)
		var up []*replica
		for i := range 30 {
			up = append(up, c.start(fmt.Sprint("r", i), job))
			time.Sleep(11 * time.Second)
			if len(up) > 2 {
				up[0].stop()
				up = up[1:]
			}
		}
		runs := c.all()
		if got := once(t, runs); got < 31 {
			t.Errorf("%d ticks ran in 330 s: %q", got, c.outcomes("work"))
		}
		disjoint(t, runs)
	})
}

// Writes alternate: claim, outcome, claim, ...
func TestLostCallOrAnswerCostsNothing(t *testing.T) {
	for _, op := range []string{"create", "read", "acquire", "write", "renew", "release"} {
		for n := int64(1); n <= 4; n++ {
			for kind, f := range map[string]fault{"answer": lose(op, n), "call": drop(op, n)} {
				inCase(t, fmt.Sprintf("%s %s %d", op, kind, n), func(t *testing.T, c *cluster) {
					c.launch(c.replica("a", work("@every 10s", 6*time.Second)).meets(f))
					time.Sleep(59 * time.Second)
					if got := once(t, c.all()); got != 5 {
						t.Errorf("%d ticks ran, want 5: %q", got, c.outcomes("work"))
					}
					c.wantAllSucceeded()
				})
			}
		}
	}
}

// What of the calls after a claim of unclear outcome gets through decides
// whether the tick is run; it is never run twice.
func TestUnclearClaimIsReadBack(t *testing.T) {
	for name, tt := range map[string]struct {
		fault func(s *tap) fault
		runs  int
	}{
		"applied, read back": {func(*tap) fault { return lose("write", 1) }, 1},
		"applied, unreadable": {func(s *tap) fault {
			return func(op string, apply func() error) error {
				err := apply()
				if op == "write" {
					s.cut.Store(true)
					return errNetwork
				}
				return err
			}
		}, 0},
		"dropped twice": {func(*tap) fault {
			return fail(errNetwork, "write")
		}, 0},
	} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			a := c.replica("a", work("0 * * * *", time.Second))
			time.Sleep(59 * time.Minute)
			a.tap.meet(tt.fault(a.tap))
			c.launch(a)
			time.Sleep(3 * time.Minute)
			if got := len(c.all()); got != tt.runs {
				t.Errorf("%d runs, want %d", got, tt.runs)
			}
		})
	}
}

// An answer without an ETag proves neither the lease nor the claim: a run goes on
// and begins only with what the store has.
func TestAnswerWithoutETagIsNoSuccess(t *testing.T) {
	for _, op := range []string{"create", "read", "acquire", "renew", "write"} {
		inCase(t, op, func(t *testing.T, c *cluster) {
			running := 0
			job := doing("@every 1m", func(ctx context.Context, run *soloist.Run) error {
				if running++; running > 1 {
					t.Errorf("two run at %s", time.Now())
				}
				if r := c.record("work"); r.Token != run.Token || r.Run.Status != store.Running {
					t.Errorf("tick %s runs with token %d, the record says %s with %d", run.Tick, run.Token, r.Run.Status, r.Token)
				}
				_ = pause(ctx, 100*time.Second)
				running--
				return nil
			})
			a := c.replica("a", job)
			if op == "create" || op == "read" {
				a.meets(fail(nil, op))
			}
			c.launch(a)
			time.Sleep(70 * time.Second) // a runs the first tick
			b := c.start("b", job)
			a.meets(fail(nil, op))
			time.Sleep(10 * time.Minute)
			if e, err := c.store.Read(t.Context(), "soloist/work"); err != nil || !json.Valid(e.Record) {
				t.Errorf("got %+v, %v", e, err)
			}
			if h := b.Health(); len(c.all()) < 4 || len(h.Broken) > 0 {
				t.Errorf("%d runs, health of b: %+v", len(c.all()), h)
			}
		})
	}
}

// A process that is frozen between its claim and the run.
func TestSlowClaimIsNotRun(t *testing.T) {
	inCluster(t, func(c *cluster) {
		c.launch(c.replica("a", work("@every 1h", time.Second)).meets(func(op string, apply func() error) error {
			switch op {
			case "write":
				err := apply()
				time.Sleep(D + time.Second)
				return err
			case "renew":
				return errNetwork
			}
			return apply()
		}))
		time.Sleep(time.Hour + 10*time.Second)
		c.start("b", work("@every 1h", time.Second))
		time.Sleep(2 * time.Minute)
		c.wantRuns(0)
		c.wantOutcomes("work", "abandoned 01:00:00 its runner died")
	})
}

// The lease is broken while the claim is read back.
func TestNothingStartsAfterLeaseIsLost(t *testing.T) {
	inCluster(t, func(c *cluster) {
		var atStart error
		job := doing("0 * * * *", func(ctx context.Context, _ *soloist.Run) error {
			atStart = context.Cause(ctx)
			return nil
		})
		a := c.replica("a", job)
		writes := 0
		a.tap.meet(func(op string, apply func() error) error {
			switch op {
			case "write":
				if writes++; writes == 1 {
					time.Sleep(D/6 - time.Millisecond)
					return errNetwork
				}
				err := apply()
				if writes == 2 {
					_ = c.store.Break(context.Background(), "soloist/work", 0)
					time.Sleep(D/6 - time.Millisecond)
				}
				return err
			case "read":
				if writes == 1 {
					time.Sleep(D/6 - time.Millisecond)
				}
			}
			return apply()
		})
		c.launch(a)
		time.Sleep(time.Hour + time.Minute)
		a.stop()
		if atStart != nil {
			t.Errorf("Do began under a context that had ended: %v", atStart)
		}
	})
}

// A claim that the read after it does not show releases its lease. If the claim is still
// under way, the store refuses it from then on, as storetest demands.
func TestUnclearClaimReleasesLease(t *testing.T) {
	inCluster(t, func(c *cluster) {
		// The first claim is under way for long.
		r := c.launch(c.replica("a", work("@every 1m", time.Second)).meets(inTurn("write", errNetwork, fs.ErrPermission)))
		time.Sleep(time.Minute + 2*time.Second)
		n := r.tap.counts()
		if n["write"] != 2 || n["release"] != 1 {
			t.Errorf("calls: %v", n)
		}
		if why := r.Health().Broken["work"]; !errors.Is(why, fs.ErrPermission) {
			t.Errorf("its health says %v", why)
		}
	})
}

// A replica could not write. Since then it has created the entry, or run the job manually: it can write.
func TestAWriteShowsThatWritesArrive(t *testing.T) {
	for name, write := range map[string]func(c *cluster, r *replica){
		"it creates the entry": func(c *cluster, _ *replica) { c.deleteEntry() },
		"it runs manually": func(c *cluster, r *replica) {
			if _, err := r.RunNow(c.t.Context(), "work", "please"); err != nil {
				c.t.Error(err)
			}
		},
	} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			job := work("@every 1h", time.Second)
			var may atomic.Bool // during the manual run
			a := c.launch(c.replica("a", job).meets(func(op string, apply func() error) error {
				if op == "write" && !may.Load() {
					return fs.ErrPermission
				}
				return apply()
			}))
			time.Sleep(time.Hour + 2*time.Second)
			if why := a.Health().Broken["work"]; !errors.Is(why, fs.ErrPermission) {
				t.Errorf("its health says %v after a claim that was refused", why)
			}
			c.start("b", job) // which runs the tick
			time.Sleep(5 * time.Second)
			may.Store(true)
			write(c, a)
			may.Store(false)
			time.Sleep(2 * time.Minute)
			if why := a.Health().Broken["work"]; why != nil {
				t.Errorf("its health says %v after a write", why)
			}
		})
	}
}

// "A client may need to wait up to one minute before a new lease can be
// acquired": it does not ask all the time.
func TestRefusedAcquisitionsAreRare(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.launch(c.replica("a", work("0 * * * *", time.Second)).meets(fail(store.ErrHeld, "acquire")))
		time.Sleep(time.Hour - time.Second)
		a.tap.counts()
		time.Sleep(time.Minute)
		n := a.tap.counts()
		if n["acquire"]+n["read"] > 60 {
			t.Errorf("calls in a minute: %v", n)
		}
	})
}

// A replica that runs no tick looks once before each of them all the same.
func TestFollowerLooksBeforeEachTick(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := work("@every 5s", D)
		job.Do = nil
		c.start("a", job)
		time.Sleep(time.Minute + 2*time.Second)
		b := c.start("b", job)
		time.Sleep(time.Minute)
		b.tap.counts()
		const ticks = 100
		time.Sleep(ticks * 5 * time.Second)
		if n := b.tap.counts(); n["read"] != ticks || n["acquire"] > 0 {
			t.Errorf("calls at %d ticks: %v", ticks, n)
		}
	})
}

// onClaim calls f while a claim is on its way to the store, the first time.
func onClaim(f func()) fault {
	return onNth("write", 1, func(apply func() error) error {
		f()
		time.Sleep(100 * time.Millisecond)
		return apply()
	})
}

// stopDuringAClaim has a replica of its own claim a tick and be stopped
// meanwhile, beside others that are up.
func (c *cluster) stopDuringAClaim(work ...soloist.Work) *replica {
	r := c.replica("stops", work...)
	claims := make(chan struct{})
	r.tap.meet(onClaim(func() { close(claims) }))
	c.launch(r)
	go func() { <-claims; r.stop() }()
	return r
}

// A stop or a step-down arrives while the claim is being written, and there is no grace: the
// claim goes back, and a replica that looks again runs the tick within a lease.
func TestStopDuringClaimTakesItBack(t *testing.T) {
	job := work("0 * * * *", time.Second)
	for name, begin := range map[string]func(c *cluster) *replica{
		"stop": func(c *cluster) *replica { return c.stopDuringAClaim(job) },
		"step-down": func(c *cluster) *replica {
			a := c.replica("steps down", job)
			return c.launch(a.meets(onClaim(func() { go func() { _ = a.StepDown(context.Background(), "work") }() })))
		},
	} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			stops := begin(c)
			time.Sleep(time.Hour - time.Second)
			c.launch(c.replica("other", job).meets(slow(20*time.Millisecond, "acquire")))
			time.Sleep(time.Minute)
			runs := c.all()
			if len(runs) != 1 || runs[0].start.Sub(runs[0].Tick) > D+3*time.Second {
				t.Errorf("got %+v", runs)
			}
			c.wantOutcomes("work", "succeeded 01:00:00")
			if n := stops.tap.counts(); runs[0].replica == "other" && (n["write"] != 2 || n["release"] != 1) {
				t.Errorf("calls: %v", n)
			}
			stops.wantLines(1, "the claim was taken back")
		})
	}
}

// The token of a claim that was taken back is spent, and the record is as before.
func TestClaimTakenBackSpendsToken(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := work("0 * * * *", time.Second)
		a := c.start("a", job)
		time.Sleep(time.Hour + time.Minute)
		a.stop()
		before := c.record("work")
		c.stopDuringAClaim(job)
		time.Sleep(time.Hour)
		after := c.record("work")
		if after.Token != before.Token+1 {
			t.Errorf("token %d after %d", after.Token, before.Token)
		}
		if after.Run.Status != store.Succeeded || !after.Run.Tick.Equal(before.Run.Tick) || !after.Run.Finished.Equal(before.Run.Finished) ||
			after.Run.Replica != "a" || !after.Due.Equal(before.Due) || !after.Watermark.Equal(before.Watermark) || len(after.History) != 1 {
			t.Errorf("got %+v, want %+v", after, before)
		}
	})
}

// A further attempt that is taken back is claimed again under its number.
func TestFurtherAttemptIsTakenBack(t *testing.T) {
	for interrupted, want := range map[soloist.InterruptedPolicy][]string{
		soloist.Rerun:   {"succeeded 01:00:00", "succeeded 02:00:00"},
		soloist.Abandon: {"abandoned 01:00:00 its runner died", "succeeded 02:00:00"},
	} {
		inCluster(t, func(c *cluster) {
			job := work("0 * * * *", 10*time.Second)
			job.Interrupted = interrupted
			a := c.start("a", job)
			time.Sleep(time.Hour + time.Second)
			a.kill()
			if interrupted == soloist.Abandon {
				time.Sleep(time.Hour) // the next claim settles the tick as well
			}
			c.stopDuringAClaim(job)
			time.Sleep(30 * time.Second)
			if interrupted == soloist.Rerun {
				if r := c.record("work"); r.Run.Status != store.Abandoned || r.Run.Attempt != 1 || r.Run.Replica != "a" {
					t.Errorf("after it went back: %+v", r)
				}
			}
			c.start("b", job)
			time.Sleep(time.Hour + time.Minute)
			if got := c.outcomes("work"); len(got) < 2 || !slices.Equal(got[:2], want) {
				t.Errorf("%s: got %q, want %q", interrupted, got, want)
			}
			runs := c.all()[1:]
			if interrupted == soloist.Rerun && (runs[0].replica != "b" || runs[0].Attempt != 2) {
				t.Errorf("%s: got %+v", interrupted, runs)
			}
		})
	}
}

// A singleton's claim goes back, too.
func TestSingletonClaimIsTakenBack(t *testing.T) {
	inCluster(t, func(c *cluster) {
		c.stopDuringAClaim(leader())
		time.Sleep(time.Minute)
		if r := c.record("lead"); r.Run.Status != store.Idle {
			t.Errorf("got %+v", r)
		}
		c.start("b", leader())
		time.Sleep(5 * time.Second)
		if runs := c.all(); len(runs) != 1 || runs[0].replica != "b" {
			t.Errorf("got %+v", runs)
		}
	})
}

// While it is unknown whether a claim was taken back, its lease is not released.
func TestUnclearTakeBackKeepsLease(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.replica("a", work("0 * * * *", time.Second))
		writes, claims := 0, make(chan struct{})
		a.tap.meet(func(op string, apply func() error) error {
			if op != "write" {
				return apply()
			}
			if writes++; writes == 1 {
				close(claims)
				time.Sleep(100 * time.Millisecond)
				return apply()
			}
			return errNetwork
		})
		c.launch(a)
		go func() { <-claims; a.stop() }()
		time.Sleep(time.Hour + time.Minute)
		if n := a.tap.counts(); n["write"] < 2 || n["release"] != 0 {
			t.Errorf("calls: %v", n)
		}
		if len(c.all()) != 0 {
			t.Errorf("it ran")
		}
	})
}

// An entry is claimed, deleted, made anew and claimed again, as fast as that
// goes: tokens grow.
func TestTokensGrowOverDeletions(t *testing.T) {
	inCluster(t, func(c *cluster) {
		time.Sleep(300 * time.Millisecond)
		for _, name := range []string{"a", "b", "c"} {
			r := c.replica(name, work("0 * * * *", 0))
			r.tap.date = wholeSeconds
			for _, request := range []string{"one", "two"} {
				if _, err := r.RunNow(c.t.Context(), "work", request); err != nil {
					t.Fatal(err)
				}
			}
			c.deleteEntry()
		}
		var last int64
		for _, r := range c.all() {
			if r.Token <= last {
				t.Errorf("token %d after %d", r.Token, last)
			}
			last = r.Token
		}
		if took := c.all()[5].start.Sub(c.all()[0].start); took > 7*time.Second {
			t.Errorf("six runs took %s", took)
		}
	})
}

// A replica that has seen the entry for a second waits no more: the entry that was
// before it is gone for longer.
func TestFirstTickOfSeenEntryIsInTime(t *testing.T) {
	inCluster(t, func(c *cluster) {
		r := c.replica("a", work("0 * * * *", 0))
		r.tap.date = wholeSeconds
		c.launch(r)
		time.Sleep(time.Hour + time.Minute)
		if runs := c.all(); len(runs) != 1 || runs[0].start.Sub(runs[0].Tick) > 100*time.Millisecond {
			t.Errorf("got %+v", runs)
		}
	})
}

// A stop ends the wait for the first token: the lease is released, and nothing was
// claimed.
func TestStopEndsWaitForFirstToken(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.start("a", leader())
		time.Sleep(500 * time.Millisecond)
		begin := time.Now()
		a.stop()
		if took := time.Since(begin); took > 100*time.Millisecond {
			t.Errorf("the stop took %s", took)
		}
		if n := a.tap.counts(); n["write"] != 0 || n["release"] != 1 {
			t.Errorf("calls: %v", n)
		}
	})
}

// A store that refuses each acquisition at the ETag that its reads show is trouble that
// the replica tells once, and that ends with an acquisition.
func TestRefusedETagIsTold(t *testing.T) {
	inCluster(t, func(c *cluster) {
		r := c.start("a", work("@every 1m", time.Second))
		time.Sleep(90 * time.Second)
		refuse := fail(store.ErrChanged, "acquire")
		r.tap.meet(refuse)
		broken := func() string { return fmt.Sprint(r.Health().Broken["work"]) }
		time.Sleep(30*time.Second + 2*D) // less than a follower waits for a lease without a claim
		if got := broken(); got != "<nil>" {
			t.Errorf("broken too soon: %s", got)
		}
		time.Sleep(30 * time.Minute)
		if got := broken(); !strings.Contains(got, "ETag") || !strings.Contains(got, "a proxy") {
			t.Errorf("got %s", got)
		}
		r.wantLines(1, "level=WARN", "a proxy")
		// A call of RunDue has no end of its own: a command without a deadline would not return.
		ctx := c.within(time.Hour)
		other := c.replica("b", work("@every 1m", time.Second))
		other.tap.meet(refuse)
		if _, err := other.RunDue(ctx, soloist.Wake{}); ctx.Err() != nil || err == nil || !strings.Contains(err.Error(), "a proxy") {
			t.Errorf("RunDue: %v", err)
		}
		r.tap.meet(nil)
		time.Sleep(time.Minute)
		if got := broken(); got != "<nil>" || time.Since(c.record("work").Watermark) > 2*time.Minute {
			t.Errorf("not over: %s", got)
		}
	})
}
