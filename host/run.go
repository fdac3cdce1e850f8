package host

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/host/internal/app"
	"github.com/soloist-go/soloist/host/internal/format"
	"github.com/soloist-go/soloist/host/internal/past"
	"github.com/soloist-go/soloist/internal/desk"
	"github.com/soloist-go/soloist/internal/record"
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

func (c *runCommand) mode() mode { return mode{runs: c.Here} }

// do orders a run of the job, or of each of its shards, and then waits for the outcomes.
func (c *runCommand) do(ctx context.Context, a *app.App) int {
	o := desk.Order{Kind: record.OrderRun, Job: c.Job, Request: c.Request}
	var err error
	if o.Until, err = readTime("run: --until", c.Until, (format.Clock{Now: a.Now()}).Later); err != nil {
		return misused(a.Console, err)
	}
	if c.Here {
		if err := a.Before.Run(ctx); err != nil {
			return c.failed(a, "%w", err)
		}
	}
	var ordered []func() int
	code := eachShard(a, c.Job, func(name string) int {
		one := *c
		one.Job, o.Job = name, name
		if c.Here && one.isNew(ctx, a) {
			ordered = append(ordered, func() int { return one.first(ctx, a) })
			return exitOK
		}
		written, code := one.write(ctx, a, o)
		if code == exitOK {
			ordered = append(ordered, func() int { return one.follow(ctx, a, &written) })
		}
		return code
	})
	for _, follow := range ordered {
		code = max(code, follow())
	}
	return code
}

// failed prints why there is no outcome.
func (c *runCommand) failed(a *app.App, layout string, args ...any) int {
	return c.refused(a, c.Job, fmt.Errorf("run %s: %w", c.Job, fmt.Errorf(layout, args...)))
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
		return c.failed(a, "%w", err)
	}
	return c.tell(a, nil, runOf(c.Job, outcome))
}

// follow waits for the outcome of an order, unless flags say otherwise.
func (c *runCommand) follow(ctx context.Context, a *app.App, o *record.Order) int {
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
func (c *runCommand) await(ctx context.Context, a *app.App, o *record.Order) int {
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
			// By the name of the order, so that no replica runs it too. Ticks that are due and older orders are left to
			// the replicas. An error is no end: another run of the job may be under way, or a replica may still run
			// what was ordered.
			if _, err := a.Scheduler.RunNow(ctx, c.Job, o.Name); err != nil && ctx.Err() == nil {
				note(format.Error(err))
			}
		}
		st, err := readStatusOf(ctx, a, c.Job)
		if err != nil { // waiting would not change it
			return c.failed(a, "%w", err)
		}
		alone, begun := !st.Lease.Live(), st.Record.Orders.IsServed(o.Seq)
		found := outcomeOf(&st.Record, o.Job, o.Name)
		switch now := a.Now(); {
		case found != nil:
			return c.tell(a, o, found)
		case st.Err != nil:
			note(format.Error(st.Err))
		case begun && st.Record.Run.Request != o.Name:
			return c.forgotten(ctx, a, o, &st)
		case alone && now.After(o.Until.Add(heeded)):
			return c.failed(a, "%s", givenUp(o, &st.Record, begun))
		case alone && now.Sub(begin) > lonely && !c.Here && !begun:
			note(fmt.Sprintf("no replica has begun it yet; it is given up at %s. If none is up, %s run %s --here runs it in its own process", format.Stamp(o.Until), a.Console.Name, c.Job))
		}
		select {
		case <-ctx.Done():
		case <-time.After(pollInterval):
		}
	}
	return c.failed(a, "stopped waiting; the order stands until %s, and %s history %s@%s shows its outcome",
		format.Stamp(o.Until), a.Console.Name, c.Job, o.Name)
}

// givenUp says why an order whose time is up has no outcome.
func givenUp(o *record.Order, r *record.Record, begun bool) string {
	if begun {
		return format.Line(r.Run.Replica) + " has begun it and writes no outcome: the next replica that is up does"
	}
	return fmt.Sprintf("no replica has begun it by %s, so it is given up", format.Stamp(o.Until))
}

// forgotten ends a run whose outcome has left the record: this command was cut off for so long.
// The log may have it. To run it again would have its effects twice.
func (c *runCommand) forgotten(ctx context.Context, a *app.App, o *record.Order, st *desk.Status) int {
	lost := fmt.Errorf("%s@%s was begun or settled, and its outcome is not in the record any more", c.Job, o.Name)
	if a.Logs == nil {
		return c.failed(a, "%w", lost)
	}
	ctx, cancel := context.WithTimeout(ctx, statusTime)
	defer cancel()
	lines, err := past.Read(ctx, a, st, o.At)
	if page, _ := (past.Filter{Run: o.Name}).Select(c.Job, lines, 0, 1); len(page) > 0 {
		return c.tell(a, o, &page[0])
	}
	if err != nil {
		return c.failed(a, "%w: %w", lost, err)
	}
	return c.failed(a, "%w", lost)
}

// readStatusOf reads the record of the job, and no unrelated record.
func readStatusOf(ctx context.Context, a *app.App, job string) (desk.Status, error) {
	ctx, cancel := context.WithTimeout(ctx, statusTime)
	defer cancel()
	return a.Status(ctx, job)
}

// outcomeOf returns the outcome of a manual run, nil if it has none yet.
func outcomeOf(r *record.Record, job, request string) *past.Run {
	for _, o := range r.History {
		if o.Request == request {
			return runOf(job, o)
		}
	}
	return nil
}

// runOf is a manual run as it is shown.
func runOf(job string, o event.Outcome) *past.Run {
	return &past.Run{ID: job + "@" + o.Request, Outcome: format.PlainOutcome(o)}
}

// tell prints the order and, if it is known, the outcome, which is the code: a run that
// was skipped came to no bad end.
func (c *runCommand) tell(a *app.App, o *record.Order, found *past.Run) int {
	code := exitOK
	if found != nil && found.Status != event.Succeeded && found.Status != event.Skipped {
		code = exitFail
	}
	return c.answer(a, code, orderAnswer{head: newHead(a, c.Job), Order: o, Outcome: found}, func() {
		if found == nil {
			fmt.Fprintf(a.Console.Stdout, "%s: ordered as %s@%s by %s: the first replica that reads it runs it, within %s if one is up; given up at %s\n",
				c.Job, c.Job, o.Name, format.Line(o.By), heeded, format.Stamp(o.Until))
			return
		}
		text := fmt.Sprintf("%s: %s", found.ID, format.Outcome(&found.Outcome))
		if found.Replica != "" {
			text += " on " + format.Line(found.Replica)
		}
		fmt.Fprintln(a.Console.Stdout, text)
	})
}

// backfillCommand orders that ticks which are over are run again. It does not wait for them:
// status shows how far they are.
type backfillCommand struct {
	Job      string  `arg:"" name:"JOB" complete:"job" missing:"which job?" help:"the job"`
	From     *string `placeholder:"TIME" help:"the begin of the range: a span before now such as 7d; a date, yesterday or today, which is its midnight in the zone of the job; or an instant"`
	To       *string `placeholder:"TIME" help:"the end of the range, which is in it; likewise. It is before the first tick without an outcome; not given: now"`
	Missed   bool    `xor:"which" help:"the ticks that were missed, as far as the record tells (the default)"`
	All      bool    `xor:"which" help:"all ticks of the range, whatever became of them, also those from before the job"`
	Parallel int     `default:"1" placeholder:"N" help:"how many of them are run at a time, up to 16: on one replica, and the next ones when all of these have returned"`
	DryRun   bool    `help:"list the ticks that it would run, and change nothing"`
	Cancel   bool    `help:"cancel the backfill that is under way, with its run"`
	orderFlags
}

// A backfillAnswer is what a dry run prints in JSON for one job.
type backfillAnswer struct {
	head
	Ticks  int         `json:"ticks"`
	First  time.Time   `json:"first,omitzero"`
	Last   time.Time   `json:"last,omitzero"`
	Listed []time.Time `json:"listed"` // the first of them
}

func (c *backfillCommand) do(ctx context.Context, a *app.App) int {
	if c.Cancel {
		return c.order(ctx, a, desk.Order{Kind: record.OrderCancelBackfill, Job: c.Job}, func(o record.Order) string {
			return fmt.Sprintf("its backfill %d is cancelled by %s: within %s the context of its run ends, and no further tick of it is run", o.Backfill.Seq, format.Line(o.By), heeded)
		})
	}
	if c.From == nil {
		return misused(a.Console, errors.New("backfill: --from is missing: where does the range begin?"))
	}
	clock := zoning{ofJob: true}.clock(a, c.Job)
	from, wrongFrom := readTime("backfill: --from", c.From, clock.Ago)
	to, wrongTo := readTime("backfill: --to", c.To, clock.Ago)
	if err := errors.Join(wrongFrom, wrongTo); err != nil {
		return misused(a.Console, err)
	}
	of := desk.Range{From: from, To: to, All: c.All, Parallel: c.Parallel}
	if c.DryRun {
		return eachShard(a, c.Job, func(name string) int { return c.plan(ctx, a, name, of) })
	}
	return c.order(ctx, a, desk.Order{Kind: record.OrderBackfill, Job: c.Job, Backfill: of}, func(o record.Order) string {
		b, pace := &o.Backfill, "one after the other"
		if b.Parallel > 1 {
			pace = fmt.Sprintf("%d at a time, in their order", b.Parallel)
		}
		return fmt.Sprintf("%s from %s to %s are run again, ordered as backfill %d by %s: %s, on whichever replica is first; %s status shows how far it is, and %s backfill %s --cancel ends it",
			format.Plural(b.Ticks, "tick"), format.Stamp(b.From), format.Stamp(b.To), b.Seq, format.Line(o.By), pace, a.Console.Name, a.Console.Name, c.Job)
	})
}

// plan prints which ticks a backfill of a job, or of a shard, would run.
func (c *backfillCommand) plan(ctx context.Context, a *app.App, job string, of desk.Range) int {
	if err := a.One(job); err != nil {
		return misused(a.Console, err)
	}
	ctx, cancel := context.WithTimeout(ctx, statusTime)
	defer cancel()
	at, err := desk.Of(a.Scheduler)
	if err != nil {
		return c.refused(a, job, err)
	}
	plan, err := at.PlanBackfill(ctx, job, of)
	if err != nil {
		return c.refused(a, job, err)
	}
	return c.answer(a, exitOK, backfillAnswer{newHead(a, job), plan.Ticks, plan.First, plan.Last, plan.Listed}, func() {
		fmt.Fprintf(a.Console.Stdout, "%s: it would run %s again, from %s to %s\n", job, format.Plural(plan.Ticks, "tick"), format.Stamp(plan.First), format.Stamp(plan.Last))
		zone := app.ZoneOf(a, job)
		for _, tick := range plan.Listed {
			line := format.Stamp(tick)
			if zone != time.UTC {
				line += "  " + localTime(tick.In(zone))
			}
			fmt.Fprintln(a.Console.Stdout, line)
		}
		if more := plan.Ticks - len(plan.Listed); more > 0 {
			fmt.Fprintf(a.Console.Stdout, "and %d more\n", more)
		}
	})
}
