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
		Store:  newStore(),
		Logger: slog.New(slog.DiscardHandler),
		Events: func(e event.Event) {
			switch e.Kind {
			case event.Started:
				fmt.Println(e.Job, "starts")
			case event.Ended:
				fmt.Println(e.Job, e.Outcome.Status, e.Outcome.Reason)
			}
		},
		Jobs: []soloist.Job{{
			Name: "report", Schedule: "@hourly",
			Do: func(context.Context, *soloist.Run) error {
				return errors.New("the printer is out of paper")
			},
		}},
	}
	if _, err := s.RunNow(context.Background(), "report", "by-ann"); err != nil {
		fmt.Println(err)
	}
	// Output:
	// report starts
	// report failed the printer is out of paper
}

// Validate shows all mistakes at once, before anything runs.
func ExampleScheduler_Validate() {
	s := newReplica(soloist.Job{Name: "report", Schedule: "61 * * * *", Timeout: -time.Second, Do: nothing})
	fmt.Println(s.Validate())
	// Output:
	// job "report": Schedule is "61 * * * *": byte 0, minute field: 61 is out of range, want 0-59
	// Timeout is -1s: allowed is zero, or 1ms or more
}

func ExampleScheduler_RunDue() {
	s := &soloist.Scheduler{
		Store:  newStore(),
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
	now, forward := newClock()
	do := func(_ context.Context, run *soloist.Run) error {
		fmt.Println("runs", run.ID())
		if run.Job == "prices" {
			return errors.New("no answer")
		}
		return nil
	}
	s := newNightly(now,
		soloist.Job{Name: "orders", Schedule: "0 2 * * *", Do: do},
		soloist.Job{Name: "prices", After: soloist.After{Jobs: []string{"orders"}}, Do: do},
		soloist.Job{Name: "report", After: soloist.After{Jobs: []string{"orders", "prices"}}, Do: do},
		soloist.Job{Name: "tidy", After: soloist.After{Jobs: []string{"report"}, Any: true}, Do: do},
	)
	for range 2 { // the jobs are new in the first call
		wake := soloist.Wake{Jobs: []string{"orders"}}
		if _, err := s.RunDue(context.Background(), wake); err != nil {
			fmt.Println(err)
		}
		forward(time.Minute)
	}
	all, _ := s.Status(context.Background())
	for _, st := range all {
		fmt.Printf("%s, %s: %s %q\n", st.Name, st.Schedule, st.History[0].Status, st.History[0].Reason)
	}
	// Output:
	// runs orders@2026-11-21T02:00:00Z
	// runs prices@2026-11-21T02:00:00Z
	// runs tidy@2026-11-21T02:00:00Z
	// orders, at 02:00 every day, UTC: succeeded ""
	// prices, after orders: failed "no answer"
	// report, after orders and prices: skipped "prices failed"
	// tidy, after report, whatever the outcome: succeeded ""
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
	if err := tail.Run(ctx, newStore()); err != nil {
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
					fmt.Println("stopped before page", page, errors.Is(err, soloist.ErrStopped))
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
	if err := feed.Run(ctx, newStore()); err != nil {
		fmt.Println(err)
	}
	// Output:
	// page 1
	// page 2
	// stopped before page 3 true
}

// The second run goes on where the first one failed.
func ExampleRun_Save() {
	outage := errors.New("no answer")
	do := func(ctx context.Context, run *soloist.Run) error {
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
	}
	s := newReplica(soloist.Job{Name: "import", Schedule: "@daily", Do: do})
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
	do := func(ctx context.Context, run *soloist.Run) error {
		at := position{Page: 1, Size: 500}
		if err := run.Load(ctx, &at); err != nil {
			return err
		}
		fmt.Println(run.Request, at)
		at.Page++
		return run.Save(ctx, at)
	}
	s := newReplica(soloist.Job{Name: "import", Schedule: "@daily", Do: do})
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
	do := func(ctx context.Context, run *soloist.Run) error {
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
	}
	s := newReplica(soloist.Job{Name: "import", Schedule: "@daily", Do: do})
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

// newReplica returns the only replica of some jobs.
func newReplica(jobs ...soloist.Job) *soloist.Scheduler {
	return &soloist.Scheduler{Jobs: jobs, Store: newStore(), Logger: slog.New(slog.DiscardHandler)}
}

// newNightly returns the only replica of some jobs that are due at two.
func newNightly(now func() time.Time, jobs ...soloist.Job) *soloist.Scheduler {
	s := newReplica(jobs...)
	s.Store, s.Now = &local.Memory{Now: hurried(now)}, now
	return s
}

// newStore returns an empty store.
func newStore() *local.Memory { return &local.Memory{Now: hurried(time.Now)} }

// newClock returns a clock that shows a minute before two, and goes on by forward.
func newClock() (now func() time.Time, forward func(time.Duration)) {
	at := time.Date(2026, 11, 21, 1, 59, 0, 0, time.UTC)
	return func() time.Time { return at }, func(d time.Duration) { at = at.Add(d) }
}

// hurried has each of the first looks at a clock show more than a second later than the one before. A
// new job runs for the first time once the store's clock shows a later second: no example waits for it.
func hurried(now func() time.Time) func() time.Time {
	const step, most = 1010 * time.Millisecond, 25
	var looks atomic.Int64
	return func() time.Time { return now().Add(time.Duration(min(looks.Add(1), most)) * step) }
}

// nothing is the function of a job that has nothing to do.
func nothing(context.Context, *soloist.Run) error { return nil }

// A leader hands over without a stop of its program. StepDown returns once the
// run has ended; then a replica that waits may have the lease.
func ExampleScheduler_StepDown() {
	ctx, stop := context.WithCancel(context.Background())
	leads := make(chan struct{})
	s := &soloist.Scheduler{
		Store:  newStore(),
		Logger: slog.New(slog.DiscardHandler),
		Singletons: []soloist.Singleton{{
			Name: "feed",
			Do: func(ctx context.Context, run *soloist.Run) error {
				leads <- struct{}{}
				<-ctx.Done()
				fmt.Println("the run ends:", errors.Is(context.Cause(ctx), soloist.ErrStopped))
				return context.Cause(ctx)
			},
		}},
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

// Four imports are due at once, and the database stands two of them at a time, over all replicas.
func ExampleScheduler_groups() {
	var runs, running, most atomic.Int64
	load := func(context.Context, *soloist.Run) error {
		if n := running.Add(1); n > most.Load() {
			most.Store(n)
		}
		defer running.Add(-1)
		runs.Add(1)
		time.Sleep(10 * time.Millisecond)
		return nil
	}
	now, forward := newClock()
	s := newNightly(now)
	s.Groups = map[string]int{"imports": 2}
	for i := range 4 {
		name := fmt.Sprintf("import-%d", i)
		job := soloist.Job{Name: name, Schedule: "0 2 * * *", Group: "imports", Do: load}
		s.Jobs = append(s.Jobs, job)
	}
	for range 2 { // the jobs are new in the first call
		if _, err := s.RunDue(context.Background(), soloist.Wake{}); err != nil {
			fmt.Println(err)
		}
		forward(time.Minute)
	}
	fmt.Println("each has run:", runs.Load() == 4, "- more than two at once:", most.Load() > 2)
	// Output: each has run: true - more than two at once: false
}

// One replica of all works for a tenant at a time. The database keeps the largest token that it has
// seen, and refuses a smaller one: a holder that was suspended may not know yet that it has lost the
// lock.
func ExampleLock() {
	store := newStore() // shared by all replicas, as an Azure container is
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
		err := b.TryDo(context.Background(), write)
		fmt.Println("b finds it held:", errors.Is(err, soloist.ErrHeld))
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
	store := newStore()
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
	store := newStore()
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
	do := func(_ context.Context, run *soloist.Run) error {
		for id, name := range customers {
			if id%run.Shards == run.Shard {
				bills[run.Shard] = append(bills[run.Shard], name)
			}
		}
		return nil
	}
	now, forward := newClock()
	s := newNightly(now, soloist.Job{Name: "billing", Schedule: "0 2 * * *", Shards: 4, Do: do})
	if _, err := s.RunDue(context.Background(), soloist.Wake{}); err != nil { // the job is new
		fmt.Println(err)
	}
	forward(time.Minute)
	report, err := s.RunDue(context.Background(), soloist.Wake{})
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
	days := soloist.Days{
		Except: []soloist.Calendar{calendar.Weekends(), calendar.Fields("* * 25,26 12 *")},
		Shift:  soloist.ShiftPrevious,
	}
	now, _ := newClock()
	s := newNightly(now, soloist.Job{Name: "pay", Schedule: "0 6 25 * *", Days: days, Do: nothing})
	st, err := s.StatusOf(context.Background(), "pay")
	fmt.Println(st.Next, err)
	// Output: 2026-11-25 06:00:00 +0000 UTC <nil>
}

// A run knows its name, which serves as an idempotency key, and how long it may go on for certain.
// Before an effect that must not come from a run which has lost its lease, it asks the store.
func ExampleRun() {
	do := func(ctx context.Context, run *soloist.Run) error {
		if run.Remaining() < 10*time.Second {
			return errors.New("too little time for a payment")
		}
		if err := run.Check(ctx); err != nil {
			return err
		}
		fmt.Println("pays under the key", run.ID())
		return nil
	}
	s := newReplica(soloist.Job{Name: "wages", Schedule: "@daily", Do: do})
	outcome, err := s.RunNow(context.Background(), "wages", "november")
	fmt.Println(outcome.Status, err)
	// Output:
	// pays under the key wages@november
	// succeeded <nil>
}

// A run that is done with its checkpoint removes it, so that the next tick starts over.
func ExampleRun_Clear() {
	do := func(ctx context.Context, run *soloist.Run) error {
		page := 0
		if err := run.Load(ctx, &page); err != nil {
			return err
		}
		for page < 2 {
			page++
			fmt.Println(run.Request, "imports page", page)
			if err := run.Save(ctx, page); err != nil {
				return err
			}
		}
		return run.Clear(ctx)
	}
	s := newReplica(soloist.Job{Name: "import", Schedule: "@daily", Do: do})
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

// Two jobs write to one ledger, which only one of them may do at a time.
func ExampleRun_Lock() {
	write := func(ctx context.Context, run *soloist.Run) error {
		return run.Lock("ledger").Do(ctx, func(_ context.Context, held *soloist.Run) error {
			fmt.Println(run.Job, "has the lock of the", held.Job)
			return nil
		})
	}
	s := newReplica(
		soloist.Job{Name: "orders", Schedule: "@daily", Do: write},
		soloist.Job{Name: "refunds", Schedule: "@daily", Do: write},
	)
	for _, job := range []string{"orders", "refunds"} {
		if _, err := s.RunNow(context.Background(), job, "by-ann"); err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// orders has the lock of the ledger
	// refunds has the lock of the ledger
}

// Code beside the jobs, such as a handler of HTTP requests, takes a lock of the same store and app.
func ExampleScheduler_Lock() {
	s := newReplica(soloist.Job{Name: "report", Schedule: "@daily", Do: nothing})
	work := func(_ context.Context, run *soloist.Run) error {
		fmt.Println("works for", run.Job)
		return nil
	}
	fmt.Println(s.Lock("tenant-42").TryDo(context.Background(), work))
	// Output:
	// works for tenant-42
	// <nil>
}

func ExampleLock_Validate() {
	l := soloist.Lock{Name: "tenant-42", Store: newStore(), Slots: 200}
	fmt.Println(l.Validate())
	// Output: lock "tenant-42": Slots is 200: allowed is zero, or 1 to 100
}

func ExampleOnce_Validate() {
	o := soloist.Once{Name: "migrate", Key: "v2.1.0", Store: newStore()}
	fmt.Println(o.Validate())
	// Output: once "migrate": Do is nil: allowed is a function
}

// A migration that a program does itself gets what it lacks from the scheduler: store, app, replica and
// log.
func ExampleScheduler_Bind() {
	s := newReplica(soloist.Job{Name: "report", Schedule: "@daily", Do: nothing})
	migration := &soloist.Once{
		Name: "migrate",
		Key:  "v2.1.0",
		Do: func(_ context.Context, run *soloist.Run) error {
			fmt.Println("does", run.ID())
			return nil
		},
	}
	s.Bind(migration)
	fmt.Println(migration.Run(context.Background()))
	fmt.Println(migration.Run(context.Background())) // done already
	// Output:
	// does migrate@v2.1.0
	// <nil>
	// <nil>
}

// A probe asks the scheduler how it is, which costs no call to the store.
func ExampleScheduler_Health() {
	var s *soloist.Scheduler
	do := func(context.Context, *soloist.Run) error {
		h := s.Health()
		fmt.Println("runs", h.Running)
		fmt.Println("restart:", len(h.Stuck)+len(h.Overrun) > 0)
		fmt.Println("storage:", h.Storage)
		return nil
	}
	s = newReplica(soloist.Job{Name: "report", Schedule: "@daily", Do: do})
	if _, err := s.RunNow(context.Background(), "report", "by-ann"); err != nil {
		fmt.Println(err)
	}
	// Output:
	// runs [report]
	// restart: false
	// storage: <nil>
}

// A platform that stops idle replicas asks when one is wanted next.
func ExampleScheduler_NextDue() {
	now, _ := newClock()
	s := newNightly(now, soloist.Job{Name: "report", Schedule: "0 2 * * *", Do: nothing})
	fmt.Println(s.NextDue(context.Background()))
	// Output: 2026-11-21 02:00:00 +0000 UTC <nil>
}

// An operator pauses a job on all replicas, and says why.
func ExampleScheduler_Order() {
	s := newReplica(soloist.Job{Name: "report", Schedule: "@daily", Do: nothing})
	ctx := context.Background()
	pause := soloist.Order{Kind: soloist.OrderPause, Job: "report", By: "ann", Reason: "no paper"}
	if _, err := s.Order(ctx, pause); err != nil {
		fmt.Println(err)
	}
	orders, err := s.Orders(ctx)
	for _, o := range orders {
		fmt.Println(o.Kind, o.Job, "by", o.By, "-", o.Reason)
	}
	fmt.Println(err)
	// Output:
	// pause report by ann - no paper
	// <nil>
}

// No replica was up for three nights. The plan of a backfill shows which ticks would be run again.
func ExampleScheduler_PlanBackfill() {
	now, forward := newClock()
	s := newNightly(now, soloist.Job{Name: "report", Schedule: "0 2 * * *", Do: nothing})
	ctx := context.Background()
	for range 2 {
		if _, err := s.RunDue(ctx, soloist.Wake{}); err != nil {
			fmt.Println(err)
		}
		forward(72*time.Hour + 2*time.Minute)
	}
	plan, err := s.PlanBackfill(ctx, "report", soloist.Backfill{From: now().AddDate(0, 0, -7)})
	fmt.Println(plan.Ticks, "ticks", err)
	fmt.Println(plan.First, "to", plan.Last)
	// Output:
	// 3 ticks <nil>
	// 2026-11-21 02:00:00 +0000 UTC to 2026-11-23 02:00:00 +0000 UTC
}

// A request runs once, however often it is made.
func ExampleScheduler_RunNow() {
	do := func(_ context.Context, run *soloist.Run) error {
		fmt.Println("runs", run.ID())
		return nil
	}
	s := newReplica(soloist.Job{Name: "report", Schedule: "@daily", Do: do})
	for range 2 { // the second call returns the outcome of the first
		outcome, err := s.RunNow(context.Background(), "report", "ticket-17")
		fmt.Println(outcome.Status, err)
	}
	// Output:
	// runs report@ticket-17
	// succeeded <nil>
	// succeeded <nil>
}

// Status reads the store, so each replica answers the same.
func ExampleScheduler_Status() {
	s := newReplica(
		soloist.Job{Name: "report", Schedule: "0 2 * * *", Do: nothing},
		soloist.Job{Name: "prune", Schedule: "@weekly", Do: nothing},
	)
	ctx := context.Background()
	if _, err := s.RunNow(ctx, "report", "by-ann"); err != nil {
		fmt.Println(err)
	}
	all, err := s.Status(ctx)
	for _, st := range all {
		fmt.Printf("%s, %s: %d outcomes\n", st.Name, st.Schedule, len(st.History))
	}
	fmt.Println(err)
	st, err := s.StatusOf(ctx, "report")
	fmt.Println(st.Last.Request, st.Last.Status, err)
	// Output:
	// report, at 02:00 every day, UTC: 1 outcomes
	// prune, at 00:00 on Sunday, UTC: 0 outcomes
	// <nil>
	// by-ann succeeded <nil>
}

// A client holds the lease of a job and does nothing. An operator ends the lease.
func ExampleScheduler_Unlock() {
	s := newReplica(soloist.Job{Name: "report", Schedule: "@daily", Do: nothing})
	ctx := context.Background()
	if _, err := s.RunDue(ctx, soloist.Wake{}); err != nil { // the job is new
		fmt.Println(err)
	}
	entry, err := s.Store.Read(ctx, "soloist/report")
	if err != nil {
		fmt.Println(err)
	}
	client := s.Store.Lease("soloist/report", "0b5c3a52-1c8e-4d0f-9a55-2f6f0d1f7c11")
	if _, err := client.Acquire(ctx, time.Minute, entry.ETag); err != nil {
		fmt.Println(err)
	}
	st, _ := s.StatusOf(ctx, "report")
	fmt.Println(st.Lease)
	fmt.Println(s.Unlock(ctx, "report", true))
	st, _ = s.StatusOf(ctx, "report")
	fmt.Println(st.Lease)
	// Output:
	// leased
	// <nil>
	// broken
}

// The names of the shards are those that status, orders and logs have.
func ExampleShardNames() {
	fmt.Println(soloist.ShardNames("billing", 4))
	fmt.Println(soloist.ShardNames("report", 0))
	// Output:
	// [billing-0 billing-1 billing-2 billing-3]
	// [report]
}

// Locks that are named after data pile up. Those that nobody has used for a while go; what is returned
// are the names of their entries.
func ExampleSweep() {
	now, forward := newClock()
	store := &local.Memory{Now: hurried(now)}
	for _, tenant := range []string{"tenant-1", "tenant-2"} {
		l := soloist.Lock{Name: tenant, Store: store, Logger: slog.New(slog.DiscardHandler)}
		if err := l.Do(context.Background(), nothing); err != nil {
			fmt.Println(err)
		}
		forward(time.Hour)
	}
	fmt.Println(soloist.Sweep(context.Background(), store, "soloist", 90*time.Minute))
	// Output: [0-lock-tenant-1] <nil>
}

// A failure is tried again when the service has asked for it, and no more once another try makes no
// sense.
func ExampleRetryAfter() {
	s := newReplica(soloist.Job{
		Name:     "export",
		Schedule: "@daily",
		Retry:    soloist.Retry{MaxTries: 5, Backoff: time.Millisecond},
		Do: func(_ context.Context, run *soloist.Run) error {
			fmt.Println("try", run.Try)
			if run.Try == 1 {
				return soloist.RetryAfter(errors.New("too many requests"), 2*time.Millisecond)
			}
			return soloist.Permanent(errors.New("the account is closed"))
		},
	})
	outcome, err := s.RunNow(context.Background(), "export", "by-ann")
	fmt.Println(outcome.Status, outcome.Reason, err)
	// Output:
	// try 1
	// try 2
	// failed the account is closed <nil>
}

func ExampleSkip() {
	do := func(context.Context, *soloist.Run) error {
		return soloist.Skip("there are no new orders")
	}
	s := newReplica(soloist.Job{Name: "export", Schedule: "@daily", Do: do})
	outcome, err := s.RunNow(context.Background(), "export", "by-ann")
	fmt.Println(outcome.Status, outcome.Reason, err)
	// Output: skipped there are no new orders <nil>
}
