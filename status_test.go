package soloist_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/store"
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

// occupy holds the lease of a job, as a tool does that knows nothing of records,
// until free is called.
func (c *cluster) occupy(job string) (free func()) {
	c.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	lease := c.store.Lease("soloist/"+job, "0a1b2c3d-0000-4000-8000-000000000000")
	entry, err := c.store.Read(ctx, "soloist/"+job)
	if err == nil {
		_, err = lease.Acquire(ctx, time.Minute, entry.ETag)
	}
	if err != nil {
		c.t.Fatal(err)
	}
	var all sync.WaitGroup
	all.Go(func() {
		for ctx.Err() == nil {
			_, _ = lease.Renew(ctx)
			select {
			case <-time.After(20 * time.Second):
			case <-ctx.Done():
			}
		}
	})
	return func() {
		cancel()
		all.Wait()
		_ = lease.Release(context.Background())
	}
}

// A tool holds the lease of an idle job: replicas say so, look rarely, and go on
// once it lets go.
func TestOccupiedJobIsTold(t *testing.T) {
	for _, occupied := range []soloist.Work{work("@every 1m", time.Second), beating(time.Second, 100*time.Millisecond, true)} {
		inCluster(t, func(c *cluster) {
			name := "work"
			if _, singleton := occupied.(soloist.Singleton); singleton {
				name = "lead"
			}
			a := c.start("a", occupied)
			time.Sleep(time.Minute + 10*time.Second)
			a.stop()
			free := c.occupy(name)
			defer free()
			b := c.start("b", occupied)
			time.Sleep(3 * time.Minute)
			says := func(err error) bool {
				return err != nil && strings.Contains(err.Error(), "claims nothing: `unlock "+name+"` frees it")
			}
			if why := b.Health().Broken[name]; !says(why) {
				t.Errorf("health says %v", why)
			}
			if all, err := b.Status(c.t.Context()); err != nil || !says(all[0].Occupied) || all[0].Err != nil {
				t.Errorf("status is %+v, %v", all, err)
			}
			b.tap.counts()
			time.Sleep(time.Hour)
			if n := b.tap.counts(); n["read"] > 125 || n["acquire"] > 0 {
				t.Errorf("calls in an hour: %v", n)
			}
			if n := len(b.log.lines("level=WARN", "claims nothing")); n != 1 || len(b.log.lines("level=ERROR")) > 0 {
				t.Errorf("it warns %d times: %q", n, b.log.lines("level=ERROR"))
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

// A wake-up, a run by hand and a status of another process return, and say so.
func TestOccupiedJobEndsCalls(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.start("a", work("@every 1m", time.Second))
		time.Sleep(time.Minute + 10*time.Second)
		a.stop()
		defer c.occupy("work")()
		time.Sleep(2 * time.Minute)
		ctx := c.within(10 * time.Minute)
		for name, call := range map[string]func(*replica) error{
			"RunDue": func(r *replica) error { _, err := r.RunDue(ctx, soloist.Wake{}); return err },
			"RunNow": func(r *replica) error { _, err := r.RunNow(ctx, "work", "please"); return err },
			"Status": func(r *replica) error { all, _ := r.Status(ctx); return all[0].Occupied },
		} {
			begin := time.Now()
			err := call(c.replica(name, work("@every 1m", time.Second)))
			if err == nil || !strings.Contains(err.Error(), "`unlock work` frees it") || time.Since(begin) > 2*D+15*time.Second {
				t.Errorf("%s after %s: %v", name, time.Since(begin), err)
			}
		}
	})
}

func TestTickCallsAreFew(t *testing.T) {
	inCluster(t, func(c *cluster) {
		var all []*replica
		for _, name := range []string{"a", "b", "c"} {
			all = append(all, c.start(name, work("@every 1m", time.Second/5)))
		}
		time.Sleep(3*time.Minute + 30*time.Second) // the start is over
		for _, r := range all {
			r.tap.counts()
		}
		runs := len(c.all())
		time.Sleep(10 * time.Minute)
		var total int
		for _, r := range all {
			counts, orders := r.tap.countsAndOrders()
			t.Log(counts, orders)
			for _, n := range counts {
				total += n
			}
			if orders < 119 || orders > 121 {
				t.Errorf("%d reads of operators' orders in ten minutes, want one each five seconds", orders)
			}
		}
		// Four for the winner, two for each of the others.
		if ticks := len(c.all()) - runs; ticks != 10 || total > 10*(4+2+2) {
			t.Errorf("%d calls for %d ticks", total, ticks)
		}
	})
}

func TestLeaderCallsAreFew(t *testing.T) {
	inCluster(t, func(c *cluster) {
		all := []*replica{c.start("a", leader()), c.start("b", leader())}
		time.Sleep(time.Minute)
		for _, r := range all {
			r.tap.counts()
		}
		time.Sleep(10 * time.Minute)
		for _, r := range all {
			got := r.tap.counts()
			if n := got["renew"] + got["read"]; n < 119 || n > 121 || len(got) != 1 {
				t.Errorf("%s: %v in 10 minutes, want one call each %s", r.Replica, got, D/3)
			}
		}
	})
}

// Whoever waits for the end of a lease looks once in each third of it, as the
// page on costs has it, also where the store's dates have whole seconds and
// clocks run at rates of their own.
func TestFollowerLooksOnceInThird(t *testing.T) {
	for _, lease := range []time.Duration{15 * time.Second, 30 * time.Second, time.Minute} {
		for _, drift := range []time.Duration{0, 200, -200} { // millionths
			inCase(t, fmt.Sprintf("%s, drift %d", lease, drift), func(t *testing.T, c *cluster) {
				var all []*replica
				for i, name := range []string{"leader", "other"} {
					r := c.replica(name, soloist.Singleton{Name: "work", Lease: lease, Do: func(ctx context.Context, _ *soloist.Run) error {
						<-ctx.Done()
						return nil
					}})
					r.tap.date = wholeSeconds
					r.tap.meet(faraway(uint64(i)))
					begin := time.Now()
					if name == "other" {
						r.Elapsed = func() time.Duration { gone := time.Since(begin); return gone + gone/1_000_000*drift }
					}
					all = append(all, c.launch(r))
					time.Sleep(time.Minute + 300*time.Millisecond)
				}
				all[1].tap.counts()
				const thirds = 180
				time.Sleep(thirds * lease / 3)
				if n := all[1].tap.counts()["read"]; n < thirds*19/20 || n > thirds*21/20 {
					t.Errorf("%d looks in %d thirds", n, thirds)
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
		n, _ := strconv.Atoi(row[3])
		told, month := number(t, row[4]), number(t, row[5])
		o := operations{replicas: n, woken: row[2] == "woken up"}
		switch row[1] {
		case "minute":
			o.schedule, o.period, o.ticks = "* * * * *", time.Minute, 60
		case "hour":
			o.schedule, o.period, o.ticks = "@hourly", time.Hour, 6
		case "day":
			o.schedule, o.period, o.ticks = "@daily", 24*time.Hour, 1
		}
		if o.woken { // nothing happens between two ticks
			o.ticks = 60
		}
		got := o.perTick(t)
		if math.Abs(got-told) > 0.05*told { // the jitter of each run makes a difference of 3 %
			t.Errorf("%s: %.2f operations a tick", row[0], got)
		}
		if want := told * float64(30*24*time.Hour/o.period); math.Abs(month-want) > 1 {
			t.Errorf("%s: %.0f operations a month", row[0], want)
		}
		digits := len(row[6]) - len("0.")
		if dollars := fmt.Sprintf("%.*f", digits, month*pricePerOperation); dollars != row[6] || strings.Trim(dollars, "0.") == "" {
			t.Errorf("%s: $%s a month", row[0], dollars)
		}
	}
}

// number reads a number with commas.
func number(t *testing.T, text string) float64 {
	n, err := strconv.ParseFloat(strings.ReplaceAll(text, ",", ""), 64)
	if err != nil {
		t.Error(err)
	}
	return n
}

// Operations are what some replicas ask of the store for one job whose runs take a second.
type operations struct {
	schedule string
	period   time.Duration
	ticks    int
	replicas int
	woken    bool // the platform's timer wakes up one of them for each tick
}

// perTick counts them.
func (o operations) perTick(t *testing.T) (mean float64) {
	inCluster(t, func(c *cluster) {
		var all []*replica
		for i := range o.replicas {
			r := c.replica(fmt.Sprint("replica-", i), work(o.schedule, time.Second))
			r.tap.meet(faraway(uint64(i)))
			all = append(all, r)
			if !o.woken {
				c.launch(r)
			} else {
				r.wake()
			}
		}
		time.Sleep(30 * time.Second)
		for _, r := range all {
			r.tap.counts()
		}
		for i := range o.ticks {
			time.Sleep(o.period)
			if o.woken {
				if _, err := all[i%o.replicas].RunDue(c.t.Context(), soloist.Wake{}); err != nil {
					t.Error(err)
				}
			}
		}
		sum := 0
		for _, r := range all {
			for _, calls := range r.tap.counts() {
				sum += calls
			}
		}
		mean = float64(sum) / float64(o.ticks)
	})
	return mean
}

// faraway makes each call take as long as it does within a region. Two calls
// then never meet at one instant, where the order of goroutines would decide.
func faraway(seed uint64) func(op string, apply func() error) error {
	var mu sync.Mutex
	dice := rand.New(rand.NewPCG(seed, 0))
	leg := func() {
		mu.Lock()
		d := 2*time.Millisecond + time.Duration(dice.Int64N(int64(8*time.Millisecond)))
		mu.Unlock()
		time.Sleep(d)
	}
	return func(_ string, apply func() error) error {
		leg()
		defer leg()
		return apply()
	}
}

// A replica that runs says which jobs are paused, whoever paused them.
func TestStatusSaysWhatIsPaused(t *testing.T) {
	inCluster(t, func(c *cluster) {
		bySettings, byItself := named("settings", work("@every 1m", 0)), named("itself", doing("@every 1m", func(context.Context, *soloist.Run) error { return errors.New("boom") }))
		bySettings.Paused, byItself.Retry.PauseAfter = true, 2
		byOrder, each := work("@every 1m", 0), named("each", here("@every 1m", func(context.Context, *soloist.Run) error { return nil }))
		a := c.start("a", byOrder, bySettings, byItself, each, named("free", byOrder))
		paused := func() (names []string) {
			all, err := a.Status(c.t.Context())
			for _, st := range all {
				if err == nil && st.Paused {
					names = append(names, st.Name)
				}
			}
			return names
		}
		time.Sleep(5 * time.Minute)
		if got, want := paused(), []string{"settings", "itself"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		c.order(soloist.Order{Kind: store.OrderPause}, byOrder)
		c.order(soloist.Order{Kind: store.OrderPause, Job: "each"}, each)
		c.order(soloist.Order{Kind: store.OrderResume, Job: "itself"}, byItself)
		time.Sleep(10 * time.Second)
		if got, want := paused(), []string{"work", "settings", "each"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

// A lister counts listings and reads; err ends each listing after so many entries.
type lister struct {
	*local.Memory
	err          error
	after        int
	lists, reads atomic.Int64
}

func (l *lister) List(ctx context.Context, app string, f func(string, store.Entry) bool) error {
	l.lists.Add(1)
	told := 0
	err := l.Memory.List(ctx, app, func(name string, e store.Entry) bool {
		told++
		return (l.err == nil || told <= l.after) && f(name, e)
	})
	return errors.Join(l.err, err)
}

func (l *lister) Read(ctx context.Context, name string) (store.Entry, error) {
	l.reads.Add(1)
	return l.Memory.Read(ctx, name)
}

// many is work whose entries differ: n jobs, of which the last was never run.
func many(n int) (all []soloist.Work) {
	for i := range n {
		all = append(all, soloist.Job{Name: fmt.Sprintf("job-%02d", i), Schedule: fmt.Sprintf("%d * * * *", i), Do: nothing})
	}
	return all
}

// The status of many jobs is one listing, which tells what a read of each entry tells; that
// of a few jobs is a read of each, which costs less. What a listing does not tell is read.
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
			got, err := reader.Status(t.Context())
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("got %+v, %v\nwant %+v", got, err, want)
			}
			if lists, reads := backend.lists.Load(), backend.reads.Load(); lists != one.lists || reads != one.reads {
				t.Errorf("%d listings and %d reads, want %d and %d", lists, reads, one.lists, one.reads)
			}
		})
	}
}

// The status of one job reads its record alone, however many jobs there are.
func TestStatusOfOneJobReadsItsRecord(t *testing.T) {
	inCluster(t, func(c *cluster) {
		c.start("a", many(12)...)
		time.Sleep(5*time.Minute + time.Second)
		backend := &lister{Memory: c.store}
		reader := c.replica("b", many(12)...)
		reader.Store = backend
		st, err := reader.StatusOf(c.t.Context(), "job-03")
		if err != nil || st.Name != "job-03" || len(st.Record.History) != 1 || backend.lists.Load() != 0 || backend.reads.Load() != 1 {
			c.t.Errorf("got %+v, %v after %d listings and %d reads", st, err, backend.lists.Load(), backend.reads.Load())
		}
		if _, err := reader.StatusOf(c.t.Context(), "nobody"); err == nil {
			c.t.Error("a job that there is not: got no error")
		}
	})
}

// A listing that hangs costs no more than its time; then each entry is read.
func TestListingThatHangsIsGivenUp(t *testing.T) {
	inCluster(t, func(c *cluster) {
		reader := c.replica("a", many(12)...)
		reader.Store = hangs{c.store}
		start := time.Now()
		all, err := reader.Status(c.t.Context())
		if took := time.Since(start); err != nil || all[0].Err != nil || took > 15*time.Second {
			c.t.Errorf("got %v, %v after %s", all[0].Err, err, took)
		}
	})
}

type hangs struct{ *local.Memory }

func (hangs) List(ctx context.Context, _ string, _ func(string, store.Entry) bool) error {
	<-ctx.Done()
	return ctx.Err()
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
		before[3].Record.Counts["forged"] = 1 // what a caller writes there is its own
		time.Sleep(time.Minute)
		after, err := reader.Status(c.t.Context())
		if err != nil {
			c.t.Fatal(err)
		}
		for i, tick := range []int{5: 5, 6: 6} { // job-05 has run before, job-06 in between
			if got := after[i].Record.History; tick > 0 && (len(got) != 1 || got[0].Tick.Minute() != tick) {
				c.t.Errorf("%s: got %+v, want the tick of minute %d", after[i].Name, got, tick)
			}
		}
		if &before[5].Record.History[0] != &after[5].Record.History[0] || after[3].Record.Counts["forged"] != 0 {
			c.t.Error("a record that has not changed was decoded again, or shares its counts")
		}
	})
}
