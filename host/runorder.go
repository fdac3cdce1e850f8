package host

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host/internal/app"
	"github.com/soloist-go/soloist/host/internal/format"
	"github.com/soloist-go/soloist/host/internal/past"
	"github.com/soloist-go/soloist/store"
)

// runCommand orders one run of a job and, unless flags say otherwise, waits for its
// outcome. Whichever replica reads the order first runs it, once.
type runCommand struct {
	Job     string  `arg:"" name:"JOB" complete:"job" missing:"which job?" help:"the job"`
	Here    bool    `help:"run it in this process, and nothing else of the job, unless a replica is faster"`
	NoWait  bool    `help:"do not wait for the outcome"`
	Until   *string `placeholder:"TIME" help:"give it up if no replica has begun it by then: a span from now on such as 10m, a date, or an instant; not given: an hour"`
	Request string  `placeholder:"NAME" help:"the name of the run, JOB@NAME; one name is run once; not given: a new one"`
	orderFlags
}

func (c *runCommand) run(ctx context.Context, p *Program) int {
	return p.with(mode{runs: c.Here}, func(a *app.App) int { return c.now(ctx, a) })
}

func (c *runCommand) now(ctx context.Context, a *app.App) int {
	o := soloist.Order{Kind: store.OrderRun, Job: c.Job, Request: c.Request}
	if c.Until != nil {
		var err error
		if o.Until, err = format.Later(*c.Until, a.Now()); err != nil {
			a.Console.Tell("run: --until is %.70q: %v", *c.Until, err)
			return exitUsage
		}
	}
	if c.Here {
		if err := a.Before.Run(ctx); err != nil {
			return c.refused(a, c.Job, fmt.Errorf("run %s: %w", c.Job, err))
		}
	}
	return c.each(ctx, a, o)
}

// each orders a run of the job, or of each of its shards, and then waits for the outcomes.
func (c *runCommand) each(ctx context.Context, a *app.App, o soloist.Order) (code int) {
	var ordered []func() int
	for _, name := range a.Shards(c.Job) {
		one := *c
		one.Job, o.Job = name, name
		if c.Here && one.isNew(ctx, a) {
			ordered = append(ordered, func() int { return one.first(ctx, a) })
			continue
		}
		written, failed := one.write(ctx, a, o)
		if code = max(code, failed); failed == exitOK {
			ordered = append(ordered, func() int { return one.follow(ctx, a, &written) })
		}
	}
	for _, follow := range ordered {
		code = max(code, follow())
	}
	return code
}

// isNew reports whether the job has no record: nothing can be ordered for it then.
func (c *runCommand) isNew(ctx context.Context, a *app.App) bool {
	if a.One(c.Job) != nil {
		return false
	}
	st, err := readStatusOf(ctx, a, c.Job)
	return err == nil && st.Err == nil && st.Lease == "" && !st.EveryReplica
}

// first makes the record of a job, and runs it in this process.
func (c *runCommand) first(ctx context.Context, a *app.App) int {
	request := cmp.Or(c.Request, "here-"+strings.ToLower(rand.Text()[:12]))
	a.Console.Tell("run %s: there is no record of it in %s, of app %s: it is made now", c.Job, a.Place, a.Settings.App)
	outcome, err := a.Scheduler.RunNow(ctx, c.Job, request)
	if err != nil {
		return c.refused(a, c.Job, fmt.Errorf("run %s: %w", c.Job, err))
	}
	return c.tell(a, nil, &past.Run{ID: c.Job + "@" + request, Outcome: format.PlainOutcome(outcome)})
}

// follow waits for the outcome of an order, unless flags say otherwise.
func (c *runCommand) follow(ctx context.Context, a *app.App, o *store.Order) int {
	if c.NoWait && !c.Here {
		return c.tell(a, o, nil)
	}
	if !c.JSON {
		a.Console.Tell("run %s: ordered as %s@%s by %s; waiting for its outcome, which history shows too", c.Job, c.Job, o.Name, format.Line(o.By))
	}
	return c.await(ctx, a, o)
}

// How run waits for an outcome.
const (
	pollInterval = time.Second
	lonely       = 15 * time.Second // after so long without a replica it says so
)

// await reads the record until it has the outcome of the order, or until ctx ends:
// the order stays in force then. With --here it tries to run it in this process meanwhile.
func (c *runCommand) await(ctx context.Context, a *app.App, o *store.Order) int {
	begin := a.Now()
	told := "" // once, however often it is so
	note := func(text string) {
		if told != text {
			told = text
			a.Console.Tell("run %s: %s", c.Job, text)
		}
	}
	for ctx.Err() == nil {
		if c.Here && !a.Now().After(o.Until) {
			c.serve(ctx, a, o, note)
		}
		st, err := readStatusOf(ctx, a, c.Job)
		if err != nil { // waiting would not change it
			return c.refused(a, c.Job, fmt.Errorf("run %s: %w", c.Job, err))
		}
		alone, begun := !st.Lease.Live(), st.Record.Orders.IsServed(o.Seq)
		found := outcomeOf(&st.Record, o.Job, o.Name)
		switch now := a.Now(); {
		case found != nil:
			return c.tell(a, o, found)
		case st.Err != nil:
			note(format.Line(st.Err.Error()))
		case begun && st.Record.Run.Request != o.Name:
			return c.forgotten(ctx, a, o, &st)
		case alone && now.After(o.Until.Add(heeded)):
			return c.refused(a, c.Job, fmt.Errorf("run %s: %s", c.Job, givenUp(o, &st.Record, begun)))
		case alone && now.Sub(begin) > lonely && !c.Here && !begun:
			note(fmt.Sprintf("no replica has begun it yet; it is given up at %s. If none is up, %s run %s --here runs it in its own process", format.Stamp(o.Until), a.Console.Name, c.Job))
		}
		select {
		case <-ctx.Done():
		case <-time.After(pollInterval):
		}
	}
	return c.refused(a, c.Job, fmt.Errorf("run %s: stopped waiting; the order stands until %s, and %s history %s@%s shows its outcome", c.Job, format.Stamp(o.Until), a.Console.Name, c.Job, o.Name))
}

// givenUp says why an order whose time is up has no outcome.
func givenUp(o *store.Order, r *store.Record, begun bool) string {
	if begun {
		return format.Line(r.Run.Replica) + " has begun it and writes no outcome: the next replica that is up does"
	}
	return fmt.Sprintf("no replica has begun it by %s, so it is given up", format.Stamp(o.Until))
}

// forgotten ends a run whose outcome has left the record: this command was cut off for so long.
// The log may have it. To run it again would have its effects twice.
func (c *runCommand) forgotten(ctx context.Context, a *app.App, o *store.Order, st *soloist.JobStatus) int {
	err := fmt.Errorf("run %s: %s@%s was begun or settled, and its outcome is not in the record any more", c.Job, c.Job, o.Name)
	if a.Logs == nil {
		return c.refused(a, c.Job, err)
	}
	ctx, cancel := context.WithTimeout(ctx, statusTime)
	defer cancel()
	lines, failed := past.Read(ctx, a, st, o.At)
	if page, _ := (past.Filter{Run: o.Name}).Select(c.Job, lines, 0, 1); len(page) > 0 {
		return c.tell(a, o, &page[0])
	}
	if failed != nil {
		err = fmt.Errorf("%w: %w", err, failed)
	}
	return c.refused(a, c.Job, err)
}

// serve runs what was ordered in this process, by the name of the order: so no replica runs
// it too. Ticks that are due and older orders are left to the replicas. An error is no end:
// another run of the job may be under way, or a replica may still run what was ordered.
func (c *runCommand) serve(ctx context.Context, a *app.App, o *store.Order, note func(string)) {
	if _, err := a.Scheduler.RunNow(ctx, c.Job, o.Name); err != nil && ctx.Err() == nil {
		note(format.Line(err.Error()))
	}
}

// readStatusOf reads the record of the job, and no unrelated record.
func readStatusOf(ctx context.Context, a *app.App, job string) (soloist.JobStatus, error) {
	ctx, cancel := context.WithTimeout(ctx, statusTime)
	defer cancel()
	return a.Scheduler.StatusOf(ctx, job)
}

// outcomeOf returns the outcome of a manual run, nil if it has none yet.
func outcomeOf(r *store.Record, job, request string) *past.Run {
	for _, o := range format.PlainOutcomes(r.History) {
		if o.Request == request {
			return &past.Run{ID: job + "@" + request, Outcome: o}
		}
	}
	return nil
}

// tell prints the order and, if it is known, the outcome, which is the code: a run that
// was skipped came to no bad end.
func (c *runCommand) tell(a *app.App, o *store.Order, found *past.Run) int {
	code := exitOK
	if found != nil && found.Status != store.Succeeded && found.Status != store.Skipped {
		code = exitFail
	}
	if c.JSON {
		body := newOrderAnswer(a, c.Job)
		body.Order, body.Outcome = o, found
		return max(code, printed(a.Console.JSON(body)))
	}
	if found == nil {
		fmt.Fprintf(a.Console.Stdout, "%s: ordered as %s@%s by %s: the first replica that reads it runs it, within %s if one is up; given up at %s\n",
			c.Job, c.Job, o.Name, format.Line(o.By), heeded, format.Stamp(o.Until))
		return exitOK
	}
	text := fmt.Sprintf("%s: %s", found.ID, format.Outcome(&found.Outcome))
	if found.Replica != "" {
		text += " on " + format.Line(found.Replica)
	}
	fmt.Fprintln(a.Console.Stdout, text)
	return code
}
