package host

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host/internal/app"
	"github.com/soloist-go/soloist/host/internal/format"
	"github.com/soloist-go/soloist/host/internal/functions"
	"github.com/soloist-go/soloist/host/internal/locks"
	"github.com/soloist-go/soloist/host/internal/view"
	"github.com/soloist-go/soloist/store"
)

// statusCommand shows what the records say. It fails if one could not be read.
type statusCommand struct {
	Watch bool `short:"w" help:"go on until interrupted: a terminal shows the newest status, other outputs get a line for each change of a job"`
	Locks bool `help:"with all locks, and all that is done once; not given: 20 of each"`
	jsonFlag
}

func (c *statusCommand) run(ctx context.Context, p *Program) int {
	return p.with(mode{}, func(a *app.App) int {
		if c.Watch {
			return c.watch(ctx, a)
		}
		return c.show(ctx, a)
	})
}

func (c *statusCommand) show(ctx context.Context, a *app.App) int {
	ctx, cancel := context.WithTimeout(ctx, statusTime)
	defer cancel()
	all, err := a.Scheduler.Status(ctx)
	if err != nil {
		a.Console.Complain(err)
		return exitFail
	}
	drift, fleet := functions.DriftWords(a), fleetOf(ctx, a, a.Replicas(), all)
	orders, code := ordersOf(ctx, a), exitOK
	views := view.All(a, all, &orders, fleet)
	shown := locks.Reading{}.Shown(0)
	if reached(all) {
		shown = shownLocks(ctx, a, c.mostLocks())
	}
	status := func() view.Answer[view.Job] {
		body := view.Status(a, views, drift, fleet)
		body.Shown = &shown
		return body
	}
	if absent := absence(a, ctx, all); absent != nil {
		body := status()
		if !c.JSON {
			printDrift(a.Console, drift)
		}
		return tellAbsence(a, c.jsonFlag, absent, &body)
	}
	for _, v := range views {
		if v.Error != "" {
			code = exitFail
		}
	}
	if c.JSON {
		return max(code, printed(a.Console.JSON(status())))
	}
	printStatus(a, a.Console, views, drift, fleet)
	printAlarm(ctx, a)
	printLocks(a.Console, a, shown)
	printAdvice(a, all)
	return code
}

// mostLocks is how many locks are shown, and how much of what is done once.
func (c *statusCommand) mostLocks() int {
	if c.Locks {
		return math.MaxInt
	}
	return fewLocks
}

// reached reports whether the store has returned something about a job. If not, the jobs say why.
func reached(all []soloist.JobStatus) bool {
	return slices.ContainsFunc(all, func(st soloist.JobStatus) bool { return st.EveryReplica || view.Reached(st) })
}

// ordersOf are the orders of operators. Where they cannot be read the store does not
// answer, which the records show too, or it keeps none.
func ordersOf(ctx context.Context, a *app.App) store.Control {
	control, err := a.Scheduler.Control(ctx)
	if err != nil {
		return store.Control{}
	}
	return control
}

// printAdvice says once what to do where the store did not answer.
func printAdvice(a *app.App, all []soloist.JobStatus) {
	for _, st := range all {
		if st.Err == nil || view.Reached(st) {
			continue
		}
		if _, advice := a.Explain(st.Err); advice != "" {
			a.Console.Tell("%s", format.Line(advice))
			return
		}
	}
}

func printDrift(c app.Console, drift []string) {
	for _, text := range drift {
		fmt.Fprintln(c.Stdout, text)
	}
}

func printStatus(a *app.App, c app.Console, views []view.Job, drift []string, fleet *view.Fleet) {
	now := a.Now()
	fmt.Fprintf(c.Stdout, "app %s on %s, %s\n", a.Settings.App, a.Place, format.Stamp(now))
	if text := format.SkewNote(a.Skew()); text != "" {
		fmt.Fprintln(c.Stdout, text)
	}
	if text := a.ZoneWords(); text != "" {
		fmt.Fprintln(c.Stdout, text)
	}
	printDrift(c, drift)
	fmt.Fprintln(c.Stdout)
	colour := c.OnTerminal(c.Stdout) && format.WantsColour()
	w := format.Table(c.Stdout, "NAME\tSCHEDULE\t"+format.Paint(colour, format.Normal, "STATE")+"\tLAST\tNEXT\tCOUNTS")
	for _, v := range views {
		schedule := v.Schedule
		switch {
		case v.Kind == "singleton":
			schedule = "(singleton)"
		case v.Foreign:
			schedule = "(differs)"
		}
		if v.Shard != nil {
			schedule += ", " + v.Shard.String()
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", v.Name, schedule, format.Paint(colour, v.Tone(), v.StateWords(now)), v.LastWords(now), v.NextWords(now), format.Tally(v.Counts))
	}
	w.Flush()
	printReplicas(c, fleet, colour)
	var n view.Notes
	for _, v := range views {
		if v.Backfill != nil && v.Backfill.State != "cancelled" {
			n.Add(v.Name, v.Backfill.Words())
		}
		if v.Error != "" {
			n.Add(v.Name, v.Error)
		}
		for _, text := range v.Differs {
			n.Add(v.Name, text)
		}
	}
	for _, line := range n.Lines() {
		fmt.Fprintf(c.Stdout, "\n%s\n", line)
	}
}
