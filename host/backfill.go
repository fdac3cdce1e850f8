package host

import (
	"context"
	"fmt"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host/internal/app"
	"github.com/soloist-go/soloist/host/internal/format"
	"github.com/soloist-go/soloist/store"
)

// backfillCommand orders that ticks which are over are run again. It does not wait for them:
// status shows how far they are.
type backfillCommand struct {
	Job      string  `arg:"" name:"JOB" complete:"job" missing:"which job?" help:"the job"`
	From     *string `placeholder:"TIME" help:"the begin of the range: a span before now such as 7d, a date, which is its midnight in UTC, or an instant"`
	To       *string `placeholder:"TIME" help:"the end of the range, which is in it; likewise. It is before the first tick without an outcome"`
	Missed   bool    `xor:"which" help:"the ticks that were missed, as far as the record tells (the default)"`
	All      bool    `xor:"which" help:"all ticks of the range, whatever became of them, also those from before the job"`
	Parallel int     `default:"1" placeholder:"N" help:"how many of them are run at a time, up to 16: on one replica, and the next ones when all of these have returned"`
	DryRun   bool    `help:"tell which ticks it would run, and change nothing"`
	Cancel   bool    `help:"cancel the backfill that is under way, with its run"`
	orderFlags
}

// A backfillAnswer is what a dry run prints in JSON for one job.
type backfillAnswer struct {
	App   string    `json:"app"`
	Store string    `json:"store"`
	Time  time.Time `json:"time"`
	Job   string    `json:"job"`
	Ticks int       `json:"ticks"`
	First time.Time `json:"first,omitzero"`
	Last  time.Time `json:"last,omitzero"`
}

func (c *backfillCommand) run(ctx context.Context, p *Program) int {
	return p.with(mode{}, func(a *app.App) int {
		if c.Cancel {
			return c.order(ctx, a, soloist.Order{Kind: store.OrderCancelBackfill, Job: c.Job}, func(o store.Order) string {
				return fmt.Sprintf("its backfill %d is cancelled by %s: within %s the context of its run ends, and no further tick of it is run", o.Backfill.Seq, format.Line(o.By), heeded)
			})
		}
		of := soloist.Backfill{All: c.All, Parallel: c.Parallel}
		for name, at := range map[string]struct {
			text *string
			to   *time.Time
		}{"from": {c.From, &of.From}, "to": {c.To, &of.To}} {
			if err := readEnd(at.text, at.to, a.Now()); err != nil {
				a.Console.Tell("backfill: --%s %v", name, err)
				return exitUsage
			}
		}
		if c.DryRun {
			return c.plan(ctx, a, of)
		}
		return c.order(ctx, a, soloist.Order{Kind: store.OrderBackfill, Job: c.Job, Backfill: of}, func(o store.Order) string {
			b := &o.Backfill
			return fmt.Sprintf("%s from %s to %s are run again, ordered as backfill %d by %s: %s, on whichever replica is first; %s status shows how far it is, and %s backfill %s --cancel ends it",
				format.Plural(b.Ticks, "tick"), format.Stamp(b.From), format.Stamp(b.To), b.Seq, format.Line(o.By), pace(b.Parallel), a.Console.Name, a.Console.Name, c.Job)
		})
	})
}

// pace says in which order the ticks of a backfill are run.
func pace(parallel int) string {
	if parallel > 1 {
		return fmt.Sprintf("%d at a time, in their order", parallel)
	}
	return "one after the other"
}

// readEnd reads one end of the range.
func readEnd(text *string, to *time.Time, now time.Time) (err error) {
	if text == nil {
		return fmt.Errorf("is missing: the range has both ends")
	}
	if *to, err = format.Ago(*text, now); err != nil {
		return fmt.Errorf("is %.70q: %w", *text, err)
	}
	return nil
}

// plan prints which ticks a backfill would run; for a job with shards, for each shard.
func (c *backfillCommand) plan(ctx context.Context, a *app.App, of soloist.Backfill) (code int) {
	for _, name := range a.Shards(c.Job) {
		code = max(code, c.planOne(ctx, a, name, of))
	}
	return code
}

func (c *backfillCommand) planOne(ctx context.Context, a *app.App, job string, of soloist.Backfill) int {
	if err := a.One(job); err != nil {
		a.Console.Tell("%v", err)
		return exitUsage
	}
	ctx, cancel := context.WithTimeout(ctx, statusTime)
	defer cancel()
	plan, err := a.Scheduler.PlanBackfill(ctx, job, of)
	if err != nil {
		return c.refused(a, job, err)
	}
	if c.JSON {
		return printed(a.Console.JSON(backfillAnswer{App: a.Settings.App, Store: a.Place, Time: format.UTC(a.Now()), Job: job, Ticks: plan.Ticks, First: plan.First, Last: plan.Last}))
	}
	fmt.Fprintf(a.Console.Stdout, "%s: it would run %s again, from %s to %s\n", job, format.Plural(plan.Ticks, "tick"), format.Stamp(plan.First), format.Stamp(plan.Last))
	return exitOK
}
