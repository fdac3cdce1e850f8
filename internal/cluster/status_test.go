package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/internal/desk"
)

// The next tick is the one by the schedule in force, which a Scheduler with
// another schedule is told apart from its own.
func TestStatusTellsScheduleInForce(t *testing.T) {
	inCluster(t, func(c *cluster) {
		c.start("a", work("0 * * * *", time.Second))
		time.Sleep(time.Hour + time.Minute)
		for schedule, foreign := range map[string]bool{"0 * * * *": false, "30 * * * *": true} {
			all, err := c.replica("b", work(schedule, time.Second)).Status(c.t.Context())
			if err != nil || len(all) != 1 || all[0].Err != nil {
				t.Fatalf("%s: got %+v, %v", schedule, all, err)
			}
			next := time.Now().Truncate(time.Hour).Add(time.Hour)
			if got := all[0]; got.Foreign != foreign || !got.Next.Equal(next) {
				t.Errorf("%s: foreign %t, next %s, want %t and %s", schedule, got.Foreign, got.Next, foreign, next)
			}
		}
	})
}

// For the race detector.
func TestHealthDuringStart(t *testing.T) {
	s := &soloist.Scheduler{Store: &local.Memory{}, Jobs: []soloist.Job{work("@every 1s", 0)}}
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	all.Go(func() { _ = s.Run(ctx) })
	for range 1000 {
		s.Health()
	}
	cancel()
	all.Wait()
}

// A tool holds the lease of an idle job: replicas say so, look rarely, and go on
// once it lets go. A wake-up, a run by hand and a status of another process return, and say so.
func TestOccupiedJobIsTold(t *testing.T) {
	for name, occupied := range map[string]soloist.Work{
		"work": work("@every 1m", time.Second),
		"lead": beating(time.Second, 100*time.Millisecond, true),
	} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			a := c.start("a", occupied)
			time.Sleep(time.Minute + 10*time.Second)
			a.stop()
			free := c.occupy(name)
			defer free()
			b := c.start("b", occupied)
			time.Sleep(3 * time.Minute)
			says := "claims nothing: `unlock " + name + "` frees it"
			wantError(t, b.Health().Broken[name], says)
			b.tap.counts()
			time.Sleep(time.Hour)
			if n := b.tap.counts(); n["read"] > 125 || n["acquire"] > 0 {
				t.Errorf("calls in an hour: %v", n)
			}
			b.wantLines(1, "level=WARN", "claims nothing")
			b.wantLines(0, "level=ERROR")
			wantError(t, occupiedBy(b), says)
			ctx := c.within(10 * time.Minute)
			for call, do := range map[string]func(r *replica) error{
				"RunDue": func(r *replica) error { _, err := r.RunDue(ctx, soloist.Wake{}); return err },
				"RunNow": func(r *replica) error { _, err := r.RunNow(ctx, name, "please"); return err },
				"Status": occupiedBy,
			} {
				if name == "lead" { // a singleton is not for calls
					break
				}
				begin := time.Now()
				if wantError(t, do(c.replica(call, occupied)), "`unlock work` frees it"); time.Since(begin) > 2*D+15*time.Second {
					t.Errorf("%s takes %s", call, time.Since(begin))
				}
			}
			before := len(c.all())
			free()
			time.Sleep(31 * time.Second)
			if len(c.all()) == before || len(b.Health().Broken) > 0 {
				t.Errorf("when it is free: %d runs, health is %v", len(c.all())-before, b.Health().Broken)
			}
		})
	}
}

// A holder renews and a replica that waits for the end of a lease looks once in each third of it, as the
// page on costs has it, also where the store's dates have whole seconds and
// clocks run at rates of their own.
func TestFollowerLooksOnceInThird(t *testing.T) {
	for _, lease := range []time.Duration{15 * time.Second, 30 * time.Second, time.Minute} {
		for _, drift := range []time.Duration{0, 200, -200} { // millionths
			inCase(t, fmt.Sprintf("%s, drift %d", lease, drift), func(t *testing.T, c *cluster) {
				leads := leader()
				leads.Lease = lease
				all := map[string]*replica{}
				for op, seed := range map[string]uint64{"renew": 0, "read": 1} {
					all[op] = c.replica(op, leads).meets(faraway(seed))
					all[op].tap.date = wholeSeconds
				}
				c.launch(all["renew"])
				time.Sleep(time.Minute + 300*time.Millisecond)
				begin := time.Now()
				all["read"].Elapsed = func() time.Duration { gone := time.Since(begin); return gone + gone/1_000_000*drift }
				c.launch(all["read"])
				time.Sleep(time.Minute)
				const thirds = 180
				for _, r := range all {
					r.tap.counts()
				}
				time.Sleep(thirds * lease / 3)
				for op, r := range all {
					if got := r.tap.counts(); len(got) != 1 || got[op] < thirds*19/20 || got[op] > thirds*21/20 {
						t.Errorf("%v in %d thirds", got, thirds)
					}
				}
			})
		}
	}
}

// pricePerOperation is that of the class "Other" in the page that
// docs/costs.md names.
const pricePerOperation = 0.0044 / 10_000

// The page on costs tells what is counted here, but for what depends on the jitter.
func TestPageOnCosts(t *testing.T) {
	rows := regexp.MustCompile(`(?m)^\| (minute|hour|day) \| (always on|woken up) \| (\d+) \| ([\d.,]+) \| ([\d.,]+) \| \$([\d.]+) \|$`).FindAllStringSubmatch(readPage(t, "docs/costs.md"), -1)
	if len(rows) < 8 {
		t.Fatalf("%d rows", len(rows))
	}
	for _, row := range rows {
		period := map[string]time.Duration{"minute": time.Minute, "hour": time.Hour, "day": 24 * time.Hour}[row[1]]
		schedule := map[string]string{"minute": "* * * * *", "hour": "@hourly", "day": "@daily"}[row[1]]
		told, month, woken := number(t, row[4]), number(t, row[5]), row[2] == "woken up"
		ticks := map[string]int{"minute": 60, "hour": 6, "day": 1}[row[1]]
		if woken { // nothing happens between two ticks
			ticks = 60
		}
		got := perTick(t, schedule, period, ticks, int(number(t, row[3])), woken)
		if math.Abs(got-told) > 0.05*told { // the jitter of each run makes a difference of 3 %
			t.Errorf("%s: %.2f operations a tick", row[0], got)
		}
		if want := told * float64(30*24*time.Hour/period); math.Abs(month-want) > 1 {
			t.Errorf("%s: %.0f operations a month", row[0], want)
		}
		digits := len(row[6]) - len("0.")
		if dollars := fmt.Sprintf("%.*f", digits, month*pricePerOperation); dollars != row[6] || strings.Trim(dollars, "0.") == "" {
			t.Errorf("%s: $%s a month", row[0], dollars)
		}
	}
}

// perTick counts what some replicas ask of the store for one job whose runs take a second. Woken: the platform's timer wakes
// up one of them for each tick.
func perTick(t *testing.T, schedule string, period time.Duration, ticks, replicas int, woken bool) (mean float64) {
	inCluster(t, func(c *cluster) {
		var all []*replica
		for i := range replicas {
			r := c.replica(fmt.Sprint("replica-", i), work(schedule, time.Second)).meets(faraway(uint64(i)))
			if all = append(all, r); woken {
				r.wake()
			} else {
				c.launch(r)
			}
		}
		time.Sleep(30 * time.Second)
		for _, r := range all {
			r.tap.counts()
		}
		for i := range ticks {
			if time.Sleep(period); woken {
				all[i%replicas].wake()
			}
		}
		sum, took := 0, time.Duration(ticks)*period
		for _, r := range all {
			counts, orders := r.tap.countsAndOrders()
			for _, calls := range counts {
				sum += calls
			}
			if of := time.Duration(orders) * 5 * time.Second; !woken && (took-of).Abs() > 5*time.Second {
				t.Errorf("%d reads of operators' orders in %s, want one each five seconds", orders, took)
			}
		}
		mean = float64(sum) / float64(ticks)
	})
	return mean
}

// A replica that runs says which jobs are paused, whoever paused them.
func TestStatusSaysWhatIsPaused(t *testing.T) {
	inCluster(t, func(c *cluster) {
		bySettings, byItself := named("settings", work("@every 1m", 0)), named("itself", doing("@every 1m", failsAt()))
		bySettings.Paused, byItself.Retry.PauseAfter = true, 2
		byOrder, each := work("@every 1m", 0), named("each", here("@every 1m", nothing))
		a := c.start("a", byOrder, bySettings, byItself, each, named("free", byOrder))
		want := func(want ...string) {
			t.Helper()
			all, err := a.Status(c.t.Context())
			c.ok(err)
			var names []string
			for _, st := range all {
				if st.Paused {
					names = append(names, st.Name)
				}
				if ordered := st.Paused && (st.Name == "work" || st.Name == "each"); (st.Pause.Kind == soloist.OrderPause) != ordered || ordered && st.Pause.Job != st.Name {
					t.Errorf("the order that pauses %s: got %+v", st.Name, st.Pause)
				}
			}
			if !slices.Equal(names, want) {
				t.Errorf("got %q, want %q", names, want)
			}
		}
		time.Sleep(5 * time.Minute)
		want("settings", "itself")
		c.order(soloist.Order{Kind: soloist.OrderPause}, byOrder)
		c.order(soloist.Order{Kind: soloist.OrderPause, Job: "each"}, each)
		c.order(soloist.Order{Kind: soloist.OrderResume, Job: "itself"}, byItself)
		time.Sleep(10 * time.Second)
		want("work", "settings", "each")
	})
}

// many is work whose entries differ: n jobs, of which the last was never run.
func many(n int) (all []soloist.Work) {
	for i := range n {
		all = append(all, soloist.Job{Name: fmt.Sprintf("job-%02d", i), Schedule: fmt.Sprintf("%d * * * *", i), Do: nothing})
	}
	return all
}

// The status of many jobs is one listing, which tells what a read of each entry tells; that
// of a few jobs is a read of each, which costs less. What a listing does not tell is read. The
// status of one job reads its record alone.
func TestStatusOfManyJobsIsOneListing(t *testing.T) {
	for what, one := range map[string]struct {
		jobs, after  int
		err          error
		lists, reads int64
	}{
		"few":                    {11, 0, nil, 0, 11},
		"many":                   {12, 0, nil, 1, 0},
		"no right to list":       {12, 0, fs.ErrPermission, 1, 12},
		"a listing that breaks":  {12, 5, errors.New("the network"), 1, 7},
		"a listing of all fails": {12, 12, errors.New("the network"), 1, 1}, // the last entry is none
		"a listing that hangs":   {12, 0, errHangs, 1, 12},
	} {
		inCase(t, what, func(t *testing.T, c *cluster) {
			work := many(one.jobs)
			c.start("a", work[:one.jobs-1]...)
			time.Sleep(5*time.Minute + time.Second)
			defer c.occupy("job-07")()
			everywhere := soloist.Job{Name: "everywhere", Schedule: "@hourly", EveryReplica: true, Do: nothing}
			reader := c.replica("b", append(work, everywhere)...)
			want, err := reader.Status(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			backend := &lister{Memory: c.store, err: one.err, after: one.after}
			reader = c.replica("c", append(work, everywhere)...)
			reader.Store = backend
			start := time.Now()
			got, err := reader.Status(t.Context())
			if took := time.Since(start); took > 15*time.Second {
				t.Errorf("it takes %s", took)
			}
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("got %+v, %v\nwant %+v", got, err, want)
			}
			lists, reads := backend.lists.Swap(0), backend.reads.Swap(0)
			if lists != one.lists || reads != one.reads {
				t.Errorf("%d listings and %d reads, want %d and %d", lists, reads, one.lists, one.reads)
			}
			st, err := reader.StatusOf(t.Context(), "job-03")
			lists, reads = backend.lists.Load(), backend.reads.Load()
			if err != nil || lists != 0 || reads != 1 || !reflect.DeepEqual(st, want[3]) {
				t.Errorf("of one job: got %+v, %v", st, err)
			}
			if _, err := reader.StatusOf(t.Context(), "nobody"); err == nil {
				t.Error("a job that there is not: got no error")
			}
		})
	}
}

// Of two statuses, the second decodes only the records that have changed in between.
func TestStatusDecodesWhatHasChanged(t *testing.T) {
	inCluster(t, func(c *cluster) {
		c.start("a", many(12)...)
		time.Sleep(5*time.Minute + 30*time.Second)
		reader := c.replica("b", many(12)...)
		before, err := reader.Status(c.t.Context())
		if err != nil {
			c.t.Fatal(err)
		}
		kept := deskOf(reader).Statuses(c.t.Context())
		before[3].Counts["forged"], before[3].History[0].Reason = 1, "forged" // what a caller writes there is its own
		time.Sleep(time.Minute)
		after, err := reader.Status(c.t.Context())
		if err != nil {
			c.t.Fatal(err)
		}
		for i, tick := range []int{5: 5, 6: 6} { // job-05 has run before, job-06 in between
			if got := after[i].History; tick > 0 && (len(got) != 1 || got[0].Tick.Minute() != tick) {
				c.t.Errorf("%s: got %+v, want the tick of minute %d", after[i].Name, got, tick)
			}
		}
		if after[3].Counts["forged"] != 0 || after[3].History[0].Reason != "" {
			c.t.Errorf("answers share what is in them: got %+v", after[3])
		}
		if now := deskOf(reader).Statuses(c.t.Context()); &kept[5].Record.History[0] != &now[5].Record.History[0] {
			c.t.Error("a record that has not changed was decoded again")
		}
	})
}

// deskOf returns the desk of a replica.
func deskOf(r *replica) *desk.Desk {
	d, err := desk.Of(r.Scheduler)
	if err != nil {
		panic(err)
	}
	return d
}

// crowd is n jobs with one schedule, named job-0 and so on.
func crowd(n int, schedule string) (jobs []soloist.Work) {
	for i := range n {
		job := work(schedule, 0)
		job.Name = fmt.Sprintf("job-%d", i)
		jobs = append(jobs, job)
	}
	return jobs
}

// crowded leaves out a test of many jobs with -short, as the race detector runs: the detector
// itself dies of them at times.
func crowded(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("many jobs at once")
	}
}

// A job that waits for its tick has no goroutine: a replica with ten thousand of them would need
// as many stacks.
func TestIdleJobsHaveNoGoroutine(t *testing.T) {
	crowded(t)
	inCluster(t, func(c *cluster) {
		before := runtime.NumGoroutine()
		c.start("a", crowd(200, "@daily")...)
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		if got := runtime.NumGoroutine() - before; got > 10 {
			t.Errorf("%d goroutines beside 200 jobs that wait, want at most 10", got)
		}
	})
}

// A call of RunDue drives its job to the end; Run takes the job up after it, and the others at
// once.
func TestRunWaitsForCallOfOneJob(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.replica("a", named("slow", work("@hourly", 10*time.Minute)), work("* * * * *", 0))
		a.wake() // makes the entries
		time.Sleep(time.Hour)
		called := make(chan struct{})
		go func() {
			defer close(called)
			_, _ = a.RunDue(c.t.Context(), soloist.Wake{Jobs: []string{"slow"}})
		}()
		time.Sleep(time.Second)
		c.launch(a)
		time.Sleep(5 * time.Minute)
		if got := len(c.all()); got != 1+6 {
			t.Errorf("%d runs began beside the call, want its own, the tick that was due, and five ticks of the other job", got)
		}
		<-called
		time.Sleep(time.Hour)
		if got := len(c.runsOf("slow")); got != 2 {
			t.Errorf("slow has run %d times, want once by the call and once by Run", got)
		}
	})
}

// Jobs that are due together do not flood the store: the calls of some wait for those of others.
func TestManyDueJobsDoNotFloodTheStore(t *testing.T) {
	crowded(t)
	inCluster(t, func(c *cluster) {
		var mu sync.Mutex
		now, most := 0, 0
		acquires := func(more int) {
			mu.Lock()
			defer mu.Unlock()
			now += more
			most = max(most, now)
		}
		a, slow := c.replica("a", crowd(500, "* * * * *")...), &faultyStore{Store: c.store}
		slow.meets(func(op, _ string) error {
			if op == "acquire" {
				acquires(1)
				defer acquires(-1)
				time.Sleep(100 * time.Millisecond)
			}
			return nil
		}, nil)
		a.Store = slow
		c.launch(a)
		time.Sleep(90 * time.Second)
		mu.Lock()
		defer mu.Unlock()
		if got := len(c.all()); got != 500 || most != 64 {
			t.Errorf("%d runs, with up to %d acquisitions at once: want 500 and 64", got, most)
		}
		c.wantInTime(time.Second)
	})
}

// Jobs that are due together are all claimed before the first outcome is written: an outcome can wait, and a start is late.
func TestOutcomesWaitForClaims(t *testing.T) {
	inCluster(t, func(c *cluster) {
		var begun, claimed, early atomic.Int64
		a := c.replica("a", crowd(20, "* * * * *")...)
		a.tap.write = func(record []byte, apply func() error) error {
			if !strings.Contains(string(record), `"status":"running"`) {
				early.Add(min(1, claimed.Load()%20))
				return apply()
			}
			time.Sleep(time.Duration(begun.Add(1)%20) * 3 * time.Millisecond)
			defer claimed.Add(1)
			return apply()
		}
		c.launch(a)
		until(150 * time.Second)
		if claimed.Load() != 2*20 || early.Load() > 0 {
			t.Errorf("%d claims in two minutes, want 40, and %d outcomes were written beside claims", claimed.Load(), early.Load())
		}
	})
}

// listing starts a replica over a store that lists.
func (c *cluster) listing(backend *lister, name string, work ...soloist.Work) *replica {
	backend.Memory = c.store
	r := c.replica(name, work...)
	r.Store = backend
	return c.launch(r)
}

// A start with many jobs is a listing, whether their entries exist or not. Entries that do not
// exist are created after it. A call for one of them is no listing, and hardly waits.
func TestStartWithManyJobsIsOneListing(t *testing.T) {
	crowded(t)
	inCluster(t, func(c *cluster) {
		want := func(backend *lister, want string) {
			t.Helper()
			if got := backend.calls(); got != want {
				t.Errorf("%s, want %s", got, want)
			}
		}
		lone, first, again := &lister{Memory: c.store}, &lister{}, &lister{}
		r := c.replica("a", crowd(50, "@hourly")...)
		r.Store = lone
		begin := time.Now()
		_, err := r.RunDue(c.t.Context(), soloist.Wake{Jobs: []string{"job-3"}})
		if want(lone, "0 listings, 1 reads, 1 creations"); err != nil || time.Since(begin) > 20*time.Millisecond {
			t.Errorf("a call for one job: %v after %s", err, time.Since(begin))
		}
		a := c.listing(first, "a", crowd(300, "@hourly")...)
		time.Sleep(time.Second)
		a.stop()
		want(first, "1 listings, 0 reads, 299 creations")
		c.listing(again, "a", crowd(300, "@hourly")...)
		time.Sleep(time.Second)
		want(again, "1 listings, 0 reads, 0 creations")
		time.Sleep(time.Hour)
		c.wantRuns(300)
	})
}

// Jobs that are read once a minute are read together, though their ticks are not. Those that come to a tick within a minute
// are not read in between, so they are not listed. Two replicas look at the outcomes of the other by listings.
func TestReadsOfManyJobsAreListings(t *testing.T) {
	crowded(t)
	const others = 2 // listings for jobs of other programs
	for name, tt := range map[string]struct {
		jobs                 []soloist.Work
		replicas, minutes    int
		runs                 int
		mostLists, mostReads int64
	}{
		"one is due in each minute": {many(60), 1, 90, 90, 90 + others + 2, 60}, // one look before the first tick of each job
		"all are, on one replica":   {crowd(40, "* * * * *"), 1, 30, 1200, others + 2, 0},
		"all are, on two":           {crowd(100, "* * * * *"), 2, 10, 1000, 60, 200},
	} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			all := map[string]*lister{}
			for _, name := range letters(tt.replicas) {
				all[name] = &lister{}
				c.listing(all[name], name, tt.jobs...)
			}
			time.Sleep(time.Duration(tt.minutes)*time.Minute + 30*time.Second)
			for name, b := range all {
				if b.lists.Load() > tt.mostLists || b.reads.Load() > tt.mostReads {
					t.Errorf("%s: %s in %d minutes", name, b.calls(), tt.minutes)
				}
			}
			if got := len(c.all()); got != tt.runs {
				t.Errorf("%d runs, want %d", got, tt.runs)
			}
		})
	}
}

// No job depends on a listing: if it is refused, breaks or hangs, each entry is read by itself.
// It is not tried again with each read.
func TestJobsRunWithoutListing(t *testing.T) {
	for what, backend := range map[string]*lister{
		"no right to list":      {err: fs.ErrPermission},
		"a listing that breaks": {err: errors.New("the network"), after: 20},
		"a listing that hangs":  {err: errHangs},
	} {
		inCase(t, what, func(t *testing.T, c *cluster) {
			a := c.listing(backend, "a", crowd(50, "* * * * *")...)
			time.Sleep(10*time.Minute + time.Second)
			a.stop()
			if got := len(c.all()); got != 500 {
				t.Errorf("%d runs in ten minutes, want 500", got)
			}
			c.wantInTime(time.Second)
			if lists := backend.lists.Load(); lists < 1 || lists > 3 {
				t.Errorf("%s in ten minutes", backend.calls())
			}
		})
	}
}

// A damaged entry is the trouble of its own job, though it was listed with the others. New jobs start by the clock of the
// store, though a listing without entries has no date, and not by that of a replica that is fast: they would rest until its
// time has come.
func TestNewJobsAmongMany(t *testing.T) {
	inCluster(t, func(c *cluster) {
		_, err := c.store.Create(c.t.Context(), "soloist/job-7", []byte("rubbish"))
		c.ok(err)
		a := c.replica("a", crowd(30, "* * * * *")...).skewed(time.Hour)
		a.Store = &lister{Memory: c.store}
		c.launch(a)
		time.Sleep(time.Second)
		if got := c.record("job-3").Watermark; got.After(time.Now()) {
			t.Errorf("the watermark is %s at %s", got, time.Now())
		}
		time.Sleep(5 * time.Minute)
		if got, broken := len(c.all()), a.Health().Broken; got != 29*5 || len(broken) != 1 || broken["job-7"] == nil {
			t.Errorf("%d runs, broken %v: want 145, and job-7 alone", got, broken)
		}
	})
}

// A status shows what users read of the record and of the orders: each field is the one of its name.
func TestStatusShowsRunsAndOrders(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := work("@every 1m", 30*time.Second)
		a := c.start("a", w)
		time.Sleep(2*time.Minute + 10*time.Second)
		running, err := a.StatusOf(c.t.Context(), "work")
		r := c.record("work")
		last := soloist.LastRun{Outcome: event.Outcome{Tick: r.Run.Tick, Status: event.Running, Attempt: 1, Token: r.Token, Replica: "a", Start: r.Run.Claimed}}
		if err != nil || running.Last != last || running.Counts[event.Succeeded] != int64(len(running.History)) || len(running.History) == 0 ||
			running.History[0].Status != event.Succeeded || !running.Succeeded.Equal(r.Succeeded) || !running.Settled.Equal(r.Watermark) || running.Failures != 0 {
			t.Errorf("while it runs: got %+v, %v; the record %+v", running, err, r)
		}
		pause := c.order(soloist.Order{Kind: soloist.OrderPause, Reason: "a freeze", Until: time.Now().Add(time.Hour)}, w)
		time.Sleep(time.Minute)
		paused, err := a.StatusOf(c.t.Context(), "work")
		if p := paused.Pause; err != nil || !paused.Paused || p.Kind != soloist.OrderPause || p.Job != "work" || p.By != "anna" || p.Reason != "a freeze" ||
			!p.Until.Equal(pause.Until) || !p.At.Equal(pause.At) {
			t.Errorf("paused: got %+v, %v, want %+v", paused, err, pause)
		}
		if paused.Last.End.IsZero() || paused.Last.Status != event.Succeeded {
			t.Errorf("after the run: got %+v", paused.Last)
		}
		resume := c.order(soloist.Order{Kind: soloist.OrderResume}, w)
		time.Sleep(10 * time.Second)
		resumed, err := a.StatusOf(c.t.Context(), "work")
		if err != nil || resumed.Paused || resumed.Pause != (soloist.Order{}) {
			t.Errorf("resumed: got %+v, %v", resumed, err)
		}
		if all, err := a.Orders(c.t.Context()); err != nil || fmt.Sprint(all) != fmt.Sprint([]soloist.Order{resume, pause}) {
			t.Errorf("got the orders %+v, %v, want %+v and %+v", all, err, resume, pause)
		}
	})
}

// What a status says of one thing in two places is the same, and nothing of a record that is none of its job's.
func TestStatusTellsOneStory(t *testing.T) {
	inCases(t, map[string]func(c *cluster){
		"armed": func(c *cluster) { // the claim is ahead of the tick
			a := c.start("a", ahead(true, work("0 * * * * *", time.Second)))
			until(3*time.Minute - 500*time.Millisecond)
			armed := c.status(a)
			until(3*time.Minute + 5*time.Second)
			if ran := c.status(a); armed.Last.Status != event.Running || !armed.Last.Start.Equal(ran.Last.Start) || !ran.Last.Start.Equal(ran.History[0].Start) {
				c.t.Errorf("got %+v, and %+v of %+v", armed.Last, ran.Last, ran.History[0])
			}
		},
		"taken back": func(c *cluster) {
			a := c.start("a", ahead(true, work("0 * * * * *", time.Second)))
			until(3*time.Minute - 1700*time.Millisecond)
			order, err := a.Order(c.t.Context(), soloist.Order{Kind: soloist.OrderStepDown, Job: "work"})
			until(3*time.Minute - 200*time.Millisecond)
			st, spent := c.status(a), c.record("work").Token
			if err != nil || st.Last.Outcome != st.History[0] || st.Last.Token == spent || order.Token != spent {
				c.t.Errorf("got %+v and %+v, %v, and the history has %+v", st.Last, order, err, st.History[0])
			}
		},
		"foreign": func(c *cluster) {
			a := c.start("a", work("@every 1m", time.Second))
			time.Sleep(2*time.Minute + 30*time.Second)
			other := c.replica("other", work("@every 1m", time.Second))
			other.App = "other"
			e, err := c.store.Create(c.t.Context(), "other/work", c.raw("work"))
			st := c.status(other)
			if c.ok(err); st.Err == nil || st.Lease != e.State || len(st.History)+len(st.Counts) > 0 || st.Last != (soloist.LastRun{}) || !st.Settled.IsZero() {
				c.t.Errorf("got %+v", st)
			}
			if own := c.status(a); own.Err != nil || len(own.History) == 0 {
				c.t.Errorf("its own: got %+v", own)
			}
		},
		"backfill": func(c *cluster) {
			w := work("@every 1m", time.Second)
			a := c.start("a", w)
			time.Sleep(time.Minute)
			order := c.fills(lastHour(3, 1), w)
			time.Sleep(30 * time.Second)
			all, err := a.Orders(c.t.Context())
			st := c.status(a)
			if got := st.Backfill; err != nil || got.Order != order || len(all) != 1 || all[0] != order || !got.Over || got.Counts[event.Succeeded] != 3 ||
				event.BackfillOf(order.Request) != order.Seq {
				c.t.Errorf("got %+v, %+v and %v, want %+v", got, all, err, order)
			}
			st.Backfill.Counts["forged"] = 1
			if got := c.status(a).Backfill.Counts; got["forged"] != 0 {
				c.t.Errorf("answers share the counts: got %v", got)
			}
		},
	})
}

// status returns the status of the job "work".
func (c *cluster) status(r *replica) soloist.JobStatus {
	c.t.Helper()
	st, err := r.StatusOf(c.t.Context(), "work")
	c.ok(err)
	return st
}
