package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/store"
)

// An outage is told by Health and once by the log, and costs few calls. The jobs go on after it.
func TestOutageIsToldAndPasses(t *testing.T) {
	inCluster(t, func(c *cluster) {
		every := work("@every 10s", time.Second)
		daily := named("daily", work("0 5 * * *", time.Second)) // it has nothing to ask meanwhile
		a := c.start("a", every, named("other", every), daily)
		time.Sleep(35 * time.Second)
		a.meets(fail(errNetwork)).tap.counts()
		time.Sleep(10 * time.Minute)
		if h := a.Health(); !errors.Is(h.Storage, errNetwork) || len(h.Stuck) != 0 || len(h.Broken) != 0 {
			t.Errorf("during the outage: %+v", h)
		}
		total := 0
		for _, n := range a.tap.counts() {
			total += n
		}
		if total > 600 {
			t.Errorf("%d calls in ten minutes", total)
		}
		a.meets(nil)
		time.Sleep(30 * time.Second)
		a.wantWell()
		a.wantLines(1, "level=WARN", "call to the store failed")
		a.wantLines(1, "answers again")
		if got := c.outcomes("work"); len(got) < 5 || !strings.HasPrefix(got[3], "missed 00:00:30-00:10:") {
			t.Errorf("got %q", got)
		}
	})
}

// While work that is done once is waited for, the jobs may not have asked the store yet.
func TestOutageBeforeTheJobsIsTold(t *testing.T) {
	inCluster(t, func(c *cluster) {
		r := c.replica("a", work("@every 10s", time.Second)).meets(fail(fs.ErrPermission))
		done := make(chan error)
		go func() { done <- c.migration(r, "v1", nil).Run(c.t.Context()) }()
		time.Sleep(time.Minute)
		if h := r.Health(); !errors.Is(h.Storage, fs.ErrPermission) || h.Reached {
			t.Errorf("while the store refuses: %+v", h)
		}
		r.meets(nil)
		c.ok(<-done)
		if h := r.Health(); h.Storage != nil || !h.Reached {
			t.Errorf("once it is done: %+v", h)
		}
		r.meets(fail(fs.ErrPermission))
		if err := c.migration(r, "v2", nil).Run(c.within(time.Minute)); err == nil || r.Health().Storage != nil {
			t.Errorf("after the wait has ended: got %v and %+v", err, r.Health())
		}
	})
}

// What lasts is told by Health at each moment: also where one job or one call alone fails, and where the lease is held all the
// while. A call that ends does not hide an outage that goes on.
func TestTroubleThatLastsIsTold(t *testing.T) {
	refused := errors.New("403 this request is not authorized to perform this operation using this permission")
	every, single := work("@every 10s", time.Second), work("0 1 0 * * *", 2*time.Second)
	type of = []soloist.Work
	for name, tt := range map[string]struct {
		work of
		at   time.Duration
		then func(a *replica)
		told string // what is: the store or the job; empty: one of them
	}{
		"a leader that is cut off":   {of{leader()}, time.Minute, func(a *replica) { a.kill() }, "store"},
		"jobs that are cut off":      {of{every}, time.Minute, func(a *replica) { a.kill() }, "store"},
		"a job that may not be read": {of{every, named("other", every)}, 0, func(a *replica) { a.tap.deny = "soloist/work" }, "job"},
		"an outcome that is refused": {of{single}, 61 * time.Second, func(a *replica) { a.meets(fail(refused, "write")) }, ""},
	} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			a := c.replica("a", tt.work...)
			if tt.at == 0 {
				tt.then(a)
			}
			c.launch(a)
			if until(tt.at); tt.at > 0 {
				tt.then(a)
			}
			time.Sleep(time.Minute)
			for i := range 360 {
				if i%30 == 10 && tt.told == "store" {
					_, _ = a.RunNow(c.within(time.Second), "work", "x")
				}
				h := a.Health()
				if h.Storage == nil && (len(h.Broken) != 1 || tt.told == "store") || h.Storage != nil && tt.told == "job" {
					t.Fatalf("after %d looks health is %+v, the log says %q", i, h, a.log.lines("level=WARN"))
				}
				time.Sleep(20 * time.Second)
			}
			if tt.told == "store" {
				a.wantLines(1, "a call to the store failed: trying again")
			}
		})
	}
}

// An outage loses no outcome: whatever of the calls fails for how long, the outcome is
// written when it is over, and another replica does not run the tick again. Only a store
// that answers and does not take the outcome ends the patience. A machine that is suspended in the first write after an
// outage asks the store nothing meanwhile.
func TestOutcomeAfterOutageIsKept(t *testing.T) {
	const minute = time.Minute
	var machine suspended
	suspends := func(func() error) error { machine.slept.Add(int64(5 * D)); return context.DeadlineExceeded }
	type phase struct {
		meets fault
		lasts time.Duration
	}
	for name, tt := range map[string]struct {
		takes, begin time.Duration // of the run; of the outage, after the tick
		lease        time.Duration
		helper       bool // another replica is up
		outage       []phase
	}{
		"over the end":                 {5 * time.Second, 2 * time.Second, D, false, []phase{{fail(errNetwork), 2 * minute}}},
		"of renewals":                  {2 * minute, 31 * time.Second, D, false, []phase{{fail(errNetwork, "renew"), 8 * time.Second}}},
		"long, and then of writes":     {10 * time.Second, 5 * time.Second, D, false, []phase{{fail(errNetwork), 30 * minute}, {fail(errWrite, "write"), D}}},
		"long, and then of renewals":   {10 * time.Second, 5 * time.Second, D, false, []phase{{fail(errNetwork), 30 * minute}, {fail(errWrite, "renew"), D}}},
		"of writes, not for long":      {10 * time.Second, 5 * time.Second, minute, true, []phase{{failWrites(errWrite), 155 * time.Second}}},
		"of the right to write, short": {10 * time.Second, 5 * time.Second, D, true, []phase{{failWrites(fs.ErrPermission), 5*time.Second + D}}},
		"long, and then a suspension": {10 * time.Second, 5 * time.Second, D, false, []phase{{fail(errNetwork), 30 * minute},
			{onNth("write", 1, suspends), D}}},
	} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			job := leased(tt.lease, rerun(work("@every 1h", tt.takes)))
			a := c.launch(c.replica("a", job).on(&machine))
			time.Sleep(time.Hour + tt.begin)
			for i, phase := range tt.outage {
				a.meets(phase.meets)
				if tt.helper && i == 0 {
					c.start("b", job)
				}
				time.Sleep(phase.lasts)
			}
			a.meets(nil)
			time.Sleep(max(D, tt.takes))
			c.wantOutcomes("work", "succeeded 01:00:00")
			c.wantRuns(1)
		})
	}
}

// A renewal that fails once and then succeeds is no outage: neither Health nor the
// log tells of one.
func TestOneFailureIsNoOutage(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.start("a", work("0 * * * *", time.Minute))
		time.Sleep(time.Hour + time.Second)
		told := make(chan error, 1)
		a.tap.meet(onNth("renew", 1, func(func() error) error {
			time.AfterFunc(D/100, func() { told <- a.Health().Storage })
			return errNetwork
		}))
		time.Sleep(10 * time.Minute)
		c.stopAll()
		if err := <-told; err != nil {
			t.Errorf("Health told %v", err)
		}
		a.wantLines(0, "call to the store failed")
		c.wantOutcomes("work", "succeeded 01:00:00")
	})
}

// What kept a run's renewals from getting through is over when its outcome is
// written: nothing is broken until the next tick comes, in an hour.
func TestTroubleEndsWithItsLease(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.start("a", work("@every 1h", 10*time.Minute))
		time.Sleep(time.Hour + 20*time.Second)
		a.tap.meet(fail(context.DeadlineExceeded, "renew"))
		time.Sleep(13 * time.Second)
		a.tap.meet(nil)
		time.Sleep(20 * time.Second) // no look, which would tell too, comes before
		if s := c.record("work").Run.Status; s != event.Abandoned {
			t.Fatalf("the run is %s", s)
		}
		a.wantWell()
	})
}

// Free and unfinished, the record would look as if somebody had broken the
// lease.
func TestUnconfirmedOutcomeKeepsLease(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.start("a", work("@every 1h", 10*time.Second))
		time.Sleep(time.Hour + time.Second)
		a.tap.meet(fail(errNetwork, "write", "read"))
		begin := time.Now()
		a.stop()
		if took := time.Since(begin); took > D {
			t.Errorf("it stopped after %s", took)
		}
		if e, err := c.store.Read(context.Background(), "soloist/work"); err != nil || e.State == store.Available {
			t.Errorf("the lease is %s, %v", e.State, err)
		}
	})
}

// One replica of three may lease and not write: the others run each tick.
func TestReaderCostsNoTick(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := work("@every 1m", time.Second)
		r := c.launch(c.replica("reader", job).meets(failWrites(fs.ErrPermission)))
		time.Sleep(59700 * time.Millisecond) // the reader is the first to acquire
		a, b := c.start("a", job), c.start("b", job)
		time.Sleep(time.Hour - 29700*time.Millisecond)
		ran := map[time.Time]bool{}
		for _, run := range c.all() {
			if run.replica == "reader" {
				t.Errorf("the reader runs tick %s", run.Tick)
			}
			// The others expect the reader to run the first tick, and look soon after it.
			if late := run.start.Sub(run.Tick); late > 5*time.Second {
				t.Errorf("tick %s starts %s late", run.Tick.Format("15:04"), late)
			}
			ran[run.Tick] = true
		}
		if len(ran) != 60 {
			t.Errorf("%d of 60 ticks run", len(ran))
		}
		if why := r.Health().Broken["work"]; why == nil || !errors.Is(why, fs.ErrPermission) || !strings.Contains(why.Error(), "write access") {
			t.Errorf("its health says %v", why)
		}
		r.wantLines(1, "level=ERROR")
		if len(a.Health().Broken)+len(b.Health().Broken) > 0 {
			t.Errorf("health of the others: %v, %v", a.Health().Broken, b.Health().Broken)
		}
	})
}

// Nor does a replica that loses the right to write, again and again. Its pause after a failure may end while the tick that it
// could not claim still waits for the next look of the others.
func TestLostRightToWriteCostsNoTick(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := leased(20*time.Second, work("@every 20s", time.Second))
		all := c.startAll(job, "a", "b", "c")
		time.Sleep(27 * time.Second)
		for range 160 {
			time.Sleep(20 * time.Second) // between two runs
			one := all[c.record("work").Run.Replica]
			one.meets(func(op string, apply func() error) error {
				if op != "write" {
					return apply()
				}
				time.Sleep(500 * time.Millisecond)
				return fs.ErrPermission
			})
			time.Sleep(3 * time.Minute)
			one.meets(nil)
			time.Sleep(3 * time.Minute)
		}
		if n := c.record("work").Counts[event.Missed]; n > 0 {
			t.Errorf("%d ticks are missed", n)
		}
	})
}

// The writes of one replica fail from the middle of a run on, since it has lost the
// right or for another reason: it cannot record the outcome, and lets its lease
// expire, so that the others go on.
func TestHolderThatCannotWriteLetsLeaseExpire(t *testing.T) {
	for reason, least := range map[error]int{fs.ErrPermission: 8, errWrite: 6} { // what is no refusal is tried for longer
		inCluster(t, func(c *cluster) {
			job := work("@every 1m", 10*time.Second)
			a := c.start("a", job)
			time.Sleep(65 * time.Second)
			a.tap.meet(failWrites(reason))
			b := c.start("b", job)
			time.Sleep(10 * time.Minute)
			if n := len(ranBy(c, "b", time.Time{})); n < least {
				t.Errorf("%v: b runs %d of 10 ticks", reason, n)
			}
			if got := c.outcomes("work"); !slices.Contains(got, "abandoned 00:01:00 its runner died") {
				t.Errorf("%v: got %q", reason, got)
			}
			b.wantLines(1, "level=WARN", "outcome=abandoned", "its runner died", "runner=a")
		})
	}
}

// Health names the failing writes all the time, and blames no other client. The log says so once, and does not say that all is
// well as long as they fail.
func TestFailedWritesAreTold(t *testing.T) {
	for names, lease := range map[string]time.Duration{"a": D, "b": time.Minute, "abc": D} {
		inCase(t, names, func(t *testing.T, c *cluster) {
			job := leased(lease, work("@every 5m", 0))
			for _, name := range names {
				c.start(string(name), job)
			}
			if lease == D { // they have run ticks well before
				time.Sleep(11*time.Minute + 3*time.Second)
			}
			for _, r := range c.started {
				r.meets(failWrites(errWrite))
			}
			a, before := c.started[0], len(c.all())
			time.Sleep(15 * time.Minute)
			for range 1800 {
				time.Sleep(time.Second)
				if why := a.Health().Broken["work"]; !errors.Is(why, errWrite) {
					t.Fatalf("health is %v", why)
				}
				if err := occupiedBy(a); err != nil {
					t.Fatalf("status is %v", err)
				}
			}
			a.wantLines(1, "level=ERROR")
			a.wantLines(0, "looked after again")
			for _, r := range c.started {
				r.meets(nil)
			}
			time.Sleep(7 * time.Minute)
			if why := a.Health().Broken; len(c.all()) == before || len(names) == 1 && len(why) > 0 {
				t.Errorf("after it: %d runs, health is %v", len(c.all()), why)
			}
		})
	}
}

// One outcome that the store does not take stops no job, though its replica is alone:
// the replica gives up and settles the run as any other would.
func TestOutcomeThatStoreDoesNotTakeStopsNoJob(t *testing.T) {
	for _, lease := range []time.Duration{D, time.Minute} {
		inCluster(t, func(c *cluster) {
			n := 0
			job := soloist.Job{Name: "work", Schedule: "@every 10m", Lease: lease, Do: func(context.Context, *soloist.Run) error {
				if n++; n == 3 {
					return errors.New("SELECT 1 UNION")
				}
				return nil
			}}
			a := c.replica("a", job)
			a.tap.write = func(record []byte, apply func() error) error {
				if strings.Contains(string(record), "UNION") { // as a proxy does that inspects what passes
					return errWrite
				}
				return apply()
			}
			c.launch(a)
			time.Sleep(time.Hour + 30*time.Second)
			got := c.record("work").Counts
			if got[event.Succeeded] != 5 || got[event.Abandoned] != 1 {
				t.Errorf("lease %s: got %v", lease, got)
			}
			a.wantWell()
			lines := a.log.lines("level=ERROR", "the outcome was not confirmed: if it was not written, a replica settles this run as one whose runner died")
			if len(lines) != 1 || !strings.Contains(lines[0], errWrite.Error()) {
				t.Errorf("the log says %q", lines)
			}
		})
	}
}

// receivers are what a replica's log and events go to. Each calls block when it is told of a kind, and told reports whether
// it has taken that.
var receivers = map[string]struct {
	block  func(a *replica, book *eventBook, kind event.Kind, block func())
	told   func(a *replica, book *eventBook, kind event.Kind) int
	health func(h soloist.Health) error
}{
	"log": {
		func(a *replica, _ *eventBook, kind event.Kind, block func()) {
			a.Logger = slog.New(slowLog{a.Logger.Handler(), "run " + string(kind), block})
		},
		func(a *replica, _ *eventBook, kind event.Kind) int { return len(a.log.lines("run " + string(kind))) },
		func(h soloist.Health) error { return h.Log },
	},
	"events": {
		func(a *replica, book *eventBook, kind event.Kind, block func()) {
			a.Events = func(e event.Event) {
				if e.Kind == kind {
					block()
				}
				book.add(e)
			}
		},
		func(_ *replica, book *eventBook, kind event.Kind) int { return len(book.of("work", kind)) },
		func(h soloist.Health) error { return h.Events },
	},
}

// A log, or an Events function, that blocks costs no tick and no lease. Health tells of it after three minutes, and no more once
// it goes on. What found no room is counted.
func TestBlockedReceiverIsToldByHealth(t *testing.T) {
	for name, on := range receivers {
		inCase(t, name, func(t *testing.T, c *cluster) {
			a, book, open := c.replica("a", work("*/5 * * * * *", 0)), &eventBook{}, make(chan struct{})
			on.block(a, book, event.Started, func() { <-open })
			c.launch(a)
			time.Sleep(2 * time.Minute)
			if err := on.health(a.Health()); err != nil {
				t.Errorf("after two minutes: %v", err)
			}
			time.Sleep(150 * time.Minute)
			wantError(t, on.health(a.Health()), "2000-01-01T00:00:05Z")
			if n := len(c.all()); n < 152*12-1 {
				t.Errorf("%d runs in 152 minutes", n)
			}
			close(open)
			time.Sleep(time.Minute)
			if err := on.health(a.Health()); err != nil {
				t.Errorf("once it goes on: %v", err)
			}
			dropped, starts := len(book.of("", event.Dropped))+len(a.log.lines("lines were dropped")), on.told(a, book, event.Started)
			if dropped != 1 || starts < 100 {
				t.Errorf("what was dropped is told %d times, and %d starts", dropped, starts)
			}
		})
	}
}

// Run, RunNow and RunDue return once their lines are written and their events are taken, and soon if one blocks.
func TestCallsWaitForTheirReceivers(t *testing.T) {
	for call, do := range map[string]func(*cluster, *replica){
		"Run": func(c *cluster, a *replica) { _ = a.Run(c.within(62 * time.Second)) },
		"RunDue": func(c *cluster, a *replica) {
			a.wake()
			time.Sleep(time.Minute)
			a.wake()
		},
		"RunNow": func(c *cluster, a *replica) { _, _ = a.RunNow(c.t.Context(), "work", "x") },
	} {
		for name, on := range receivers {
			for _, block := range []time.Duration{4 * time.Second, time.Hour} {
				inCase(t, fmt.Sprintf("%s, %s, %s", call, name, block), func(t *testing.T, c *cluster) {
					a, book := c.replica("a", work("* * * * *", time.Second)), &eventBook{}
					on.block(a, book, event.Ended, func() { time.Sleep(block) })
					begin := time.Now()
					do(c, a)
					told := on.told(a, book, event.Ended) > 0
					if took := time.Since(begin); told != (block < time.Minute) || took > 70*time.Second {
						t.Errorf("the call took %s, told: %t", took, told)
					}
					time.Sleep(time.Hour)
				})
			}
		}
	}
}
