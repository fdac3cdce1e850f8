package host

import (
	"context"
	"fmt"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host/internal/app"
	"github.com/soloist-go/soloist/host/internal/format"
	"github.com/soloist-go/soloist/host/internal/functions"
	"github.com/soloist-go/soloist/host/internal/view"
	"github.com/soloist-go/soloist/store"
)

// statusCommand shows what the records tell. It fails if one could not be read.
type statusCommand struct {
	Watch bool `short:"w" help:"go on until interrupted: a terminal shows the newest status, other outputs get a line for each change of a job"`
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
	drift, fleet := functions.DriftWords(a), fleetOf(ctx, a, replicaReader(a))
	views, code := view.AllOrdered(a, all, ordersOf(ctx, a), fleet), exitOK
	if absent := absence(a, ctx, all); absent != nil {
		body := view.Status(a, views, drift, fleet)
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
		return max(code, printed(a.Console.JSON(view.Status(a, views, drift, fleet))))
	}
	printStatus(a, a.Console, views, drift, fleet)
	printAdvice(a, all)
	return code
}

// ordersOf are the orders of operators. Where they cannot be read the store does not
// answer, which the records tell too, or it keeps none.
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
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", v.Name, schedule, format.Paint(colour, v.Tone(), v.StateWords(now)), v.LastWords(now), v.NextWords(now), v.CountWords())
	}
	w.Flush()
	printReplicas(c, fleet, colour)
	for _, v := range views {
		if v.Error != "" {
			fmt.Fprintf(c.Stdout, "\n%s: %s\n", v.Name, v.Error)
		}
		for _, text := range v.Differs {
			fmt.Fprintf(c.Stdout, "\n%s: %s\n", v.Name, text)
		}
	}
}
