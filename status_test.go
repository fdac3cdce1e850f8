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
		for pause(ctx, 20*time.Second) == nil {
			_, _ = lease.Renew(ctx)
		}
	})
	return func() {
		cancel()
		all.Wait()
		_ = lease.Release(context.Background())
	}
}

// occupiedBy is what a replica's status says of the holder of its first job's lease.
func occupiedBy(r *replica) error {
	all, err := r.Status(r.tap.t.Context())
	return errors.Join(all[0].Occupied, all[0].Err, err)
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
			counts, orders := r.tap.countsAndOrders()
			for _, calls := range counts {
				sum += calls
			}
			took := time.Duration(o.ticks) * o.period
			if of := time.Duration(orders) * 5 * time.Second; !o.woken && (took-of).Abs() > 5*time.Second {
				t.Errorf("%d reads of operators' orders in %s, want one each five seconds", orders, took)
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

// A lister counts listings and reads; err ends each listing after so many entries, and errHangs none.
type lister struct {
	*local.Memory
	err          error
	after        int
	lists, reads atomic.Int64
}

func (l *lister) List(ctx context.Context, app string, f func(string, store.Entry) bool) error {
	l.lists.Add(1)
	if l.err == errHangs {
		<-ctx.Done()
		return ctx.Err()
	}
	told := 0
	err := l.Memory.List(ctx, app, func(name string, e store.Entry) bool {
		told++
		return (l.err == nil || told <= l.after) && f(name, e)
	})
	return errors.Join(l.err, err)
}

var errHangs = errors.New("no listing is answered")

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
