package host

import (
	"context"
	"fmt"
	"slices"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host/internal/app"
	"github.com/soloist-go/soloist/host/internal/format"
	"github.com/soloist-go/soloist/host/internal/view"
	"github.com/soloist-go/soloist/store"
)

// A jobHistory is what history tells of one job or singleton.
type jobHistory struct {
	Name     string                 `json:"job"`
	Kind     string                 `json:"kind"`               // job or singleton
	State    view.State             `json:"state"`              // as status tells it
	Failures int64                  `json:"failures,omitempty"` // as status tells it
	Progress *store.Progress        `json:"progress,omitempty"` // as status tells it
	History  []store.Outcome        `json:"history"`
	Counts   map[store.Status]int64 `json:"counts"`
	Error    string                 `json:"error,omitempty"` // why the record could not be read

	EveryReplica bool `json:"everyReplica,omitempty"` // each replica runs it: there is no record

	words string // the state
}

// historyCommand shows the outcomes that the records keep, newest first. It fails
// if a record that was asked for could not be read.
type historyCommand struct {
	Job   string `arg:"" optional:"" name:"JOB" help:"this job or singleton alone"`
	Limit number `short:"n" default:"20" help:"how many outcomes of each job, 1 to 1000"`
	jsonFlag
}

func (c *historyCommand) run(ctx context.Context, p *Program) int {
	return p.with(mode{}, func(a *app.App) int { return c.show(ctx, a) })
}

// checkLimit returns what is wrong with -n.
func checkLimit(n number) error {
	if n < 1 || n > 1000 {
		return fmt.Errorf("-n is %d: want 1 to 1000", n)
	}
	return nil
}

func (c *historyCommand) show(ctx context.Context, a *app.App) int {
	if err := checkLimit(c.Limit); err != nil {
		fmt.Fprintf(a.Console.Stderr, "%s: history: %v\n", a.Console.Name, err)
		return exitUsage
	}
	if c.Job != "" {
		if err := app.Known(c.Job, a.Names()); err != nil {
			fmt.Fprintf(a.Console.Stderr, "%s: %v\n", a.Console.Name, err)
			return exitUsage
		}
	}
	ctx, cancel := context.WithTimeout(ctx, statusTime)
	defer cancel()
	all, err := a.Scheduler.Status(ctx)
	if err != nil {
		a.Console.Complain(err)
		return exitFail
	}
	pasts, code := c.histories(a, all), exitOK
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
		return max(code, printed(a.Console.JSON(view.New(a, pasts))))
	}
	printHistory(a, pasts)
	return code
}

// histories leaves out whom nobody asked for: their trouble is no trouble now.
func (c *historyCommand) histories(a *app.App, all []soloist.JobStatus) (pasts []jobHistory) {
	for _, st := range all {
		if c.Job != "" && c.Job != st.Name {
			continue
		}
		v := view.Of(a, st)
		p := jobHistory{Name: v.Name, Kind: v.Kind, State: v.State, Failures: v.Failures, Progress: v.Progress, Counts: v.Counts, Error: v.Error,
			EveryReplica: v.EveryReplica, words: v.StateWords(a.Now())}
		if p.Counts == nil {
			p.Counts = map[store.Status]int64{}
		}
		p.History = []store.Outcome{}
		if st.Err == nil {
			p.History = format.PlainOutcomes(st.Record.History[:min(int(c.Limit), len(st.Record.History))])
		}
		pasts = append(pasts, p)
	}
	return pasts
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
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", p.Name, format.Span(&f), f.Status, format.Number(int64(f.Attempt)),
				format.Join(format.Line(f.Replica)), format.Stamp(f.Start), format.Took(&f), format.Number(f.Token), format.Join(format.Line(f.Reason)))
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
