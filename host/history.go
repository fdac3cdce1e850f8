package host

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/soloist-go/soloist/host/internal/app"
	"github.com/soloist-go/soloist/host/internal/format"
	"github.com/soloist-go/soloist/host/internal/locks"
	"github.com/soloist-go/soloist/host/internal/past"
	"github.com/soloist-go/soloist/host/internal/view"
	"github.com/soloist-go/soloist/store"
)

// A jobHistory is what history shows of one job or singleton.
type jobHistory struct {
	Name     string                 `json:"job"`
	Kind     string                 `json:"kind"`               // job or singleton
	State    view.State             `json:"state"`              // as status shows it
	Failures int64                  `json:"failures,omitempty"` // as status shows it
	Progress *store.Progress        `json:"progress,omitempty"` // as status shows it
	History  []past.Run             `json:"history"`
	Counts   map[store.Status]int64 `json:"counts"`
	Error    string                 `json:"error,omitempty"` // why the record could not be read

	EveryReplica bool `json:"everyReplica,omitempty"` // each replica runs it: there is no record

	words string // the state
}

// historyCommand shows the outcomes that the records keep, newest first, and the outcomes
// in their logs where more are asked for. It fails
// if a record that was asked for could not be read.
type historyCommand struct {
	Job     string   `arg:"" optional:"" name:"JOB" complete:"work" help:"this job or singleton alone, or one run by its id, such as JOB@2026-03-29T01:00:00Z; lock:NAME or once:NAME, what became of those"`
	JobFlag string   `name:"job" placeholder:"NAME" complete:"work" help:"the same as JOB"`
	Since   *string  `placeholder:"TIME" help:"what came due or ended since then: a span such as 24h or 7d, a date, or an instant"`
	Outcome []string `placeholder:"OUTCOME" complete:"outcome" help:"such outcomes alone; several are separated by commas"`
	Limit   *number  `short:"n" placeholder:"20" help:"how many outcomes of each job, 1 to 1000; not given: 20, with --since or --outcome 1000"`
	jsonFlag
}

func (c *historyCommand) run(ctx context.Context, p *Program) int {
	return p.with(mode{}, func(a *app.App) int { return c.show(ctx, a) })
}

func (c *historyCommand) show(ctx context.Context, a *app.App) int {
	if named, ok := locks.NamedBy(cmp.Or(c.Job, c.JobFlag)); ok {
		return c.showLock(ctx, a, named)
	}
	wanted, err := c.filter(a)
	if err != nil {
		for _, text := range format.Lines(err) {
			a.Console.Tell("%s", text)
		}
		return exitUsage
	}
	ctx, cancel := context.WithTimeout(ctx, statusTime)
	defer cancel()
	all, err := a.Scheduler.Status(ctx)
	if err != nil {
		a.Console.Complain(err)
		return exitFail
	}
	pasts, code := wanted.histories(ctx, a, all), exitOK
	if absent := absence(a, ctx, all); absent != nil {
		body := view.New(a, pasts)
		return tellAbsence(a, c.jsonFlag, absent, &body)
	}
	for _, p := range pasts {
		if p.Error != "" {
			code = exitFail
		}
	}
	if c.JSON {
		code = max(code, printed(a.Console.JSON(view.New(a, pasts))))
	} else {
		printHistory(a, pasts)
	}
	return max(code, wanted.missing(a, pasts))
}

// printHistory has the outcomes, then what was counted since the record was made:
// the outcomes go when they are old, the counts stay.
func printHistory(a *app.App, pasts []jobHistory) {
	fmt.Fprintf(a.Console.Stdout, "app %s on %s, %s\n\n", a.Settings.App, a.Place, format.Stamp(a.Now()))
	printOutcomes(a, pasts)
	w := format.Table(a.Console.Stdout, "JOB\tSTATE\tCOUNTS")
	for _, p := range pasts {
		fmt.Fprintf(w, "%s\t%s\t%s\n", p.Name, p.words, p.countWords())
	}
	w.Flush()
}

func printOutcomes(a *app.App, pasts []jobHistory) {
	if !slices.ContainsFunc(pasts, func(p jobHistory) bool { return len(p.History) > 0 }) {
		return
	}
	w := format.Table(a.Console.Stdout, "JOB\tTICK\tFATE\tATTEMPT\tREPLICA\tSTART\tTOOK\tTOKEN\tREASON")
	for _, p := range pasts {
		for _, f := range p.History {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", p.Name, format.Span(&f.Outcome), f.Status, format.Number(int64(f.Attempt)),
				format.Join(format.Line(f.Replica)), format.Stamp(f.Start), format.Took(&f.Outcome), format.Number(f.Token), format.Join(format.Line(f.Reason)))
			if f.Gap {
				fmt.Fprintf(w, "%s\tbefore this, outcomes may be lost\t-\t-\t-\t-\t-\t-\t-\n", p.Name)
			}
		}
	}
	w.Flush()
	fmt.Fprintln(a.Console.Stdout)
}

// countWords are the counts, or why there are none.
func (p jobHistory) countWords() string {
	switch {
	case p.Error != "":
		return p.Error
	case p.EveryReplica:
		return "each replica runs it: there is no record"
	}
	return format.Tally(p.Counts)
}
