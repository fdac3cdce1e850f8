package soloist_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/calendar"
	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/host/local"
)

// Three replicas share a store; each tick is run by one of them.
func Example() {
	store := &local.Memory{}
	ran := make(chan string, 100)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error)
	for range 3 {
		s := &soloist.Scheduler{
			Store:  store,
			Logger: slog.New(slog.DiscardHandler),
			Jobs: []soloist.Job{{
				Name:     "report",
				Schedule: "@every 1s",
				Do: func(ctx context.Context, run *soloist.Run) error {
					ran <- run.ID()
					return nil
				},
			}},
		}
		go func() { done <- s.Run(ctx) }()
	}
	first, second := <-ran, <-ran
	stop()
	for range 3 {
		if err := <-done; err != nil {
			fmt.Println(err)
		}
	}
	fmt.Println("the same tick twice:", first == second)
	// Output: the same tick twice: false
}

// Events tell what a replica does, as it does it.
func ExampleScheduler_events() {
	s := &soloist.Scheduler{
		Store:  &local.Memory{},
		Logger: slog.New(slog.DiscardHandler),
		Events: func(e event.Event) {
			switch e.Kind {
			case event.Started:
				fmt.Println(e.Job, "starts")
			case event.Ended:
				fmt.Println(e.Job, e.Outcome.Status, e.Outcome.Reason)
			}
		},
		Jobs: []soloist.Job{{Name: "report", Schedule: "@hourly",
			Do: func(context.Context, *soloist.Run) error { return errors.New("the printer is out of paper") }}},
	}
	if _, err := s.RunNow(context.Background(), "report", "by-ann"); err != nil {
		fmt.Println(err)
	}
	// Output:
	// report starts
	// report failed the printer is out of paper
}

func ExampleScheduler_Validate() {
	s := &soloist.Scheduler{
		Store: &local.Memory{},
		Jobs:  []soloist.Job{{Name: "report", Schedule: "61 * * * *", Timeout: -time.Second}},
	}
	fmt.Println(s.Validate() != nil)
	// Output: true
}

func ExampleScheduler_RunDue() {
	s := &soloist.Scheduler{
		Store:  &local.Memory{},
		Logger: slog.New(slog.DiscardHandler),
		Jobs: []soloist.Job{{Name: "report", Schedule: "@hourly",
			Do: func(context.Context, *soloist.Run) error { return nil }}},
	}
	report, err := s.RunDue(context.Background(), soloist.Wake{})
	if err != nil {
		fmt.Println(err)
		return
	}
	// A new job owes nothing: its first tick is the next full hour.
	fmt.Println(len(report.Jobs[0].Ran), report.Next.Minute())
	// Output: 0 0
}

// A report follows two jobs, and a clean-up follows the report whatever becomes of it. One wake-up
// runs the chain.
func ExampleAfter() {
	now := time.Date(2026, 11, 21, 1, 59, 0, 0, time.UTC)
	clock := func() time.Time { return now }
	do := func(_ context.Context, run *soloist.Run) error {
		fmt.Println("runs", run.ID())
		if run.Job == "prices" {
			return errors.New("no answer")
		}
		return nil
	}
	s := &soloist.Scheduler{Store: &local.Memory{Now: clock}, Now: clock, Logger: slog.New(slog.DiscardHandler),
		Jobs: []soloist.Job{
			{Name: "orders", Schedule: "0 2 * * *", Do: do},
			{Name: "prices", After: soloist.After{Jobs: []string{"orders"}}, Do: do},
			{Name: "report", After: soloist.After{Jobs: []string{"orders", "prices"}}, Do: do},
			{Name: "clean-up", After: soloist.After{Jobs: []string{"report"}, Any: true}, Do: do},
		}}
	for range 2 { // the jobs are new in the first call, and owe nothing
		if _, err := s.RunDue(context.Background(), soloist.Wake{Jobs: []string{"orders"}}); err != nil {
			fmt.Println(err)
		}
		now = now.Add(time.Minute)
	}
	all, _ := s.Status(context.Background())
	for _, st := range all {
		fmt.Printf("%s, %s: %s %q\n", st.Name, st.Schedule, st.History[0].Status, st.History[0].Reason)
	}
	// Output:
	// runs orders@2026-11-21T02:00:00Z
	// runs prices@2026-11-21T02:00:00Z
	// runs clean-up@2026-11-21T02:00:00Z
	// orders, at 02:00 every day, UTC: succeeded ""
	// prices, after orders: failed "no answer"
	// report, after orders and prices: skipped "prices failed"
	// clean-up, after report, whatever the outcome: succeeded ""
}

// A singleton runs on one replica until that stops or dies; then another takes
// over with a larger token.
func ExampleSingleton() {
	ctx, stop := context.WithCancel(context.Background())
	tail := soloist.Singleton{
		Name: "feed",
		Do: func(ctx context.Context, run *soloist.Run) error {
			fmt.Println("leading")
			stop()
			<-ctx.Done()
			return context.Cause(ctx)
		},
	}
	if err := tail.Run(ctx, &local.Memory{}); err != nil {
		fmt.Println(err)
	}
	// Output: leading
}

// A run tells how far it is, and ends once Heartbeat says that it has to.
func ExampleRun_Heartbeat() {
	ctx, stop := context.WithCancel(context.Background())
	feed := soloist.Singleton{
		Name:             "feed",
		HeartbeatTimeout: time.Minute, // without a heartbeat for so long, another replica takes over
		Do: func(ctx context.Context, run *soloist.Run) error {
			for page := 1; ; page++ {
				if err := run.Heartbeat(fmt.Sprintf("page %d", page)); err != nil {
					fmt.Println("no page", page, "because of a stop:", errors.Is(err, soloist.ErrStopped))
					return err
				}
				fmt.Println("page", page)
				if page == 2 {
					stop() // as SIGTERM does in a program of host.Main
					<-ctx.Done()
				}
			}
		},
	}
	if err := feed.Run(ctx, &local.Memory{}); err != nil {
		fmt.Println(err)
	}
	// Output:
	// page 1
	// page 2
	// no page 3 because of a stop: true
}

// The second run goes on where the first one failed.
func ExampleRun_Save() {
	outage := errors.New("no answer")
	s := importer(func(ctx context.Context, run *soloist.Run) error {
		var done int // the pages that are imported
		if err := run.Load(ctx, &done); err != nil {
			return err
		}
		for page := done + 1; page <= 4; page++ {
			if run.Request == "monday" && page == 3 {
				return outage
			}
			fmt.Println(run.Request, "imports page", page)
			if err := run.Save(ctx, page); err != nil {
				return err // the lease may be lost: another run may import the next page
			}
		}
		return nil
	})
	for _, request := range []string{"monday", "tuesday"} {
		outcome, err := s.RunNow(context.Background(), "import", request)
		fmt.Println(outcome.Status, outcome.Reason, err)
	}
	// Output:
	// monday imports page 1
	// monday imports page 2
	// failed no answer <nil>
	// tuesday imports page 3
	// tuesday imports page 4
	// succeeded  <nil>
}

// Load leaves the value alone until a run has saved one.
func ExampleRun_Load() {
	type position struct{ Page, Size int }
	s := importer(func(ctx context.Context, run *soloist.Run) error {
		at := position{Page: 1, Size: 500}
		if err := run.Load(ctx, &at); err != nil {
			return err
		}
		fmt.Println(run.Request, at)
		at.Page++
		return run.Save(ctx, at)
	})
	for _, request := range []string{"monday", "tuesday"} {
		if _, err := s.RunNow(context.Background(), "import", request); err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// monday {1 500}
	// tuesday {2 500}
}

// The checkpoint of another tick is not gone on with: what it is of is a field of it.
func ExampleRun_Load_tick() {
	type progress struct {
		Run  string
		Page int
	}
	s := importer(func(ctx context.Context, run *soloist.Run) error {
		at := progress{}
		if err := run.Load(ctx, &at); err != nil {
			return err
		}
		if at.Run != run.ID() { // which each attempt of the tick has
			at = progress{Run: run.ID()}
		}
		for at.Page < 2 {
			at.Page++
			fmt.Println(run.Request, "imports page", at.Page)
			if err := run.Save(ctx, at); err != nil {
				return err
			}
		}
		return nil
	})
	for _, request := range []string{"monday", "tuesday"} {
		if _, err := s.RunNow(context.Background(), "import", request); err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// monday imports page 1
	// monday imports page 2
	// tuesday imports page 1
	// tuesday imports page 2
}

// importer is a replica with one job.
func importer(do func(context.Context, *soloist.Run) error) *soloist.Scheduler {
	return &soloist.Scheduler{
		Store:  &local.Memory{},
		Logger: slog.New(slog.DiscardHandler),
		Jobs:   []soloist.Job{{Name: "import", Schedule: "@daily", Do: do}},
	}
}

// A leader hands over without a stop of its program. StepDown returns once the
// run has ended; then a replica that waits may have the lease.
func ExampleScheduler_StepDown() {
	ctx, stop := context.WithCancel(context.Background())
	leads := make(chan struct{})
	s := &soloist.Scheduler{
		Store:  &local.Memory{},
		Logger: slog.New(slog.DiscardHandler),
		Singletons: []soloist.Singleton{{Name: "feed", Do: func(ctx context.Context, run *soloist.Run) error {
			leads <- struct{}{}
			<-ctx.Done()
			fmt.Println("the run ends:", errors.Is(context.Cause(ctx), soloist.ErrStopped))
			return context.Cause(ctx)
		}}},
	}
	done := make(chan error)
	go func() { done <- s.Run(ctx) }()
	<-leads
	if err := s.StepDown(ctx, "feed"); err != nil {
		fmt.Println(err)
	}
	fmt.Println("another replica may lead")
	stop()
	if err := <-done; err != nil {
		fmt.Println(err)
	}
	// Output:
	// the run ends: true
	// another replica may lead
}

// Six imports are due at once, and the database stands two of them at a time, over all replicas.
func ExampleScheduler_groups() {
	var runs, now, most atomic.Int64
	load := func(context.Context, *soloist.Run) error {
		if n := now.Add(1); n > most.Load() {
			most.Store(n)
		}
		defer now.Add(-1)
		runs.Add(1)
		time.Sleep(10 * time.Millisecond)
		return nil
	}
	s := &soloist.Scheduler{Store: &local.Memory{}, Groups: map[string]int{"imports": 2}}
	for i := range 6 {
		s.Jobs = append(s.Jobs, soloist.Job{Name: fmt.Sprintf("import-%d", i), Schedule: "@every 1s", Group: "imports", Do: load})
	}
	tick := time.Now().Truncate(time.Second).Add(time.Second)
	if _, err := s.RunDue(context.Background(), soloist.Wake{Tick: tick}); err != nil {
		fmt.Println(err)
	}
	fmt.Println("each has run:", runs.Load() >= 6, "- more than two at once:", most.Load() > 2)
	// Output: each has run: true - more than two at once: false
}

// One replica of all works for a tenant at a time. The database keeps the largest token that it has
// seen, and refuses a smaller one: a holder that was suspended may not know yet that it has lost the
// lock.
func ExampleLock() {
	store := &local.Memory{} // shared by all replicas, as an Azure container is
	a := &soloist.Lock{Name: "tenant-42", Store: store, Replica: "a"}
	b := &soloist.Lock{Name: "tenant-42", Store: store, Replica: "b"}
	var largest int64 // in the database
	write := func(_ context.Context, run *soloist.Run) error {
		if run.Token < largest {
			return errors.New("a later holder has written")
		}
		largest = run.Token
		fmt.Println("the bills are written")
		return nil
	}
	err := a.Do(context.Background(), func(ctx context.Context, run *soloist.Run) error {
		fmt.Println("b finds it held:", errors.Is(b.TryDo(context.Background(), write), soloist.ErrHeld))
		return write(ctx, run)
	})
	fmt.Println("a:", err)
	fmt.Println("b:", b.Do(context.Background(), write))
	// Output:
	// b finds it held: true
	// the bills are written
	// a: <nil>
	// the bills are written
	// b: <nil>
}

// Three replicas of a new version start. One of them migrates the database, and the others wait for
// it: all are ready only after that.
func ExampleOnce() {
	store := &local.Memory{}
	var replicas sync.WaitGroup
	for range 3 {
		migration := &soloist.Once{
			Name:  "migrate",
			Key:   "v2.1.0", // the version of the build: the next one is another migration
			Store: store,
			Do: func(ctx context.Context, run *soloist.Run) error {
				fmt.Println("the database is migrated by", run.ID())
				return nil
			},
			Retry:  soloist.Retry{MaxTries: 3}, // on all replicas together
			Logger: slog.New(slog.DiscardHandler),
		}
		replicas.Go(func() {
			if err := migration.Run(context.Background()); err != nil {
				fmt.Println(err)
				return
			}
			fmt.Println("ready")
		})
	}
	replicas.Wait()
	// Output:
	// the database is migrated by migrate@v2.1.0
	// ready
	// ready
	// ready
}

// An API may be called by two callers of all replicas at a time. Three replicas with two workers each
// keep to that together.
func ExampleLock_slots() {
	store := &local.Memory{}
	var calls, now, most atomic.Int64
	call := func(context.Context, *soloist.Run) error {
		if n := now.Add(1); n > most.Load() {
			most.Store(n)
		}
		defer now.Add(-1)
		calls.Add(1)
		return nil
	}
	var workers sync.WaitGroup
	for range 3 {
		api := &soloist.Lock{Name: "api", Store: store, Slots: 2}
		for range 2 {
			workers.Go(func() {
				if err := api.Do(context.Background(), call); err != nil {
					fmt.Println(err)
				}
			})
		}
	}
	workers.Wait()
	fmt.Println(calls.Load(), "calls, more than two at once:", most.Load() > 2)
	// Output: 6 calls, more than two at once: false
}

// Each tick is done in four parts, by whichever replicas are up. Here it is one, as on a platform
// that wakes the program up.
func ExampleJob_shards() {
	customers := []string{"Ada", "Bob", "Cleo", "Dan", "Eve", "Finn"}
	var bills [4][]string
	s := &soloist.Scheduler{
		Store:  &local.Memory{},
		Logger: slog.New(slog.DiscardHandler),
		Jobs: []soloist.Job{{
			Name: "billing", Schedule: "@every 1s", Shards: 4,
			Do: func(_ context.Context, run *soloist.Run) error {
				for id, name := range customers {
					if id%run.Shards == run.Shard {
						bills[run.Shard] = append(bills[run.Shard], name)
					}
				}
				return nil
			},
		}},
	}
	report, err := s.RunDue(context.Background(), soloist.Wake{Tick: time.Now().Truncate(time.Second)})
	for i, j := range report.Jobs {
		fmt.Println(j.Job, j.Ran[0].Status, bills[i])
	}
	fmt.Println(err)
	// Output:
	// billing-0 succeeded [Ada Eve]
	// billing-1 succeeded [Bob Finn]
	// billing-2 succeeded [Cleo]
	// billing-3 succeeded [Dan]
	// <nil>
}

// Wages are paid on the last business day before a weekend or a holiday.
func ExampleShift() {
	pay := soloist.Job{Name: "pay", Schedule: "0 6 25 * *", Days: soloist.Days{Shift: soloist.ShiftPrevious,
		Except: []soloist.Calendar{calendar.Weekends(), calendar.Fields("* * 25,26 12 *")}},
		Do: func(context.Context, *soloist.Run) error { return nil }}
	s := soloist.Scheduler{Jobs: []soloist.Job{pay}, Store: &local.Memory{}}
	st, err := s.StatusOf(context.Background(), "pay")
	fmt.Println(st.Schedule, err)
	// Output: at 06:00 on day 25 of the month, UTC, except on days of * * 25,26 12 * or weekends, else on the last day before that is not excluded <nil>
}
