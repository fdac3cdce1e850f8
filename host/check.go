package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host/internal/app"
	"github.com/soloist-go/soloist/host/internal/doctor"
	"github.com/soloist-go/soloist/host/internal/format"
	"github.com/soloist-go/soloist/host/internal/functions"
)

// doctorCommand reads the settings itself, since the doctor looks at them first.
type doctorCommand struct{ jsonFlag }

func (c *doctorCommand) run(ctx context.Context, p *Program) int {
	a, wrong := p.open(mode{checks: true})
	tell := func(doctor.Finding) {}
	if !c.JSON {
		tell = func(f doctor.Finding) { printFinding(a.Console, f) }
	}
	d := doctor.Examine(ctx, a, wrong, tell)
	code := exitOK
	switch {
	case wrong != nil:
		code = exitUsage
	case !d.OK:
		code = exitFail
	}
	return c.answer(a, code, d, func() {}) // its words are printed, each as soon as it was known
}

func printFinding(c app.Console, f doctor.Finding) {
	if f.Advice != "" {
		f.Text += ": " + f.Advice
	}
	fmt.Fprintf(c.Stdout, "%-4s  %-11s  %s\n", f.Result, f.Check, f.Text)
}

// A verdict is what validate prints in JSON.
type verdict struct {
	OK       bool     `json:"ok"`
	App      string   `json:"app"`
	Store    string   `json:"store,omitempty"`
	Mistakes []string `json:"mistakes"`
	Warnings []string `json:"warnings"`        // variables without effect, and what people often get wrong about such schedules
	Beats    []string `json:"beats,omitempty"` // what short leases cost
}

// validateCommand reads the settings itself, since its answer is what is wrong
// with them.
type validateCommand struct{ jsonFlag }

func (c *validateCommand) run(_ context.Context, p *Program) int {
	if !c.JSON {
		return p.with(mode{checks: true, strict: true}, printValid)
	}
	a, err := p.open(mode{checks: true, strict: true})
	v := verdict{OK: err == nil, App: a.Settings.App, Store: a.Place, Mistakes: []string{}, Warnings: append([]string{}, a.Strange...)}
	code := exitOK
	if err != nil {
		v.Mistakes, code = format.Lines(err), exitUsage
	} else {
		v.Beats, v.Warnings = a.Beats(), append(v.Warnings, app.ScheduleWarnings(a.Scheduler.Jobs, a.Now())...)
	}
	return c.answer(a, code, v, nil)
}

func printValid(a *app.App) int {
	what := []string{format.Plural(len(a.Scheduler.Jobs), "job"), format.Plural(len(a.Scheduler.Singletons), "singleton")}
	if before := a.Before.Names(); before != nil {
		what = append(what, "before them "+strings.Join(before, ", "))
	}
	fmt.Fprintf(a.Console.Stdout, "ok: %s, app %s on %s\n", format.Join(what...), a.Settings.App, a.Place)
	for _, line := range a.Beats() {
		fmt.Fprintln(a.Console.Stdout, line)
	}
	for _, text := range app.ScheduleWarnings(a.Scheduler.Jobs, a.Now()) {
		fmt.Fprintf(a.Console.Stdout, "warning: %s\n", text)
	}
	return exitOK
}

const (
	containerStart = 10 * time.Second // what an execution of a job of Container Apps takes at least until it looks for ticks
	ticksSampled   = 200              // of a job
)

// checkDeadlines returns the starting deadlines that cannot be kept, as nothing looks for ticks but once a minute: a scheduled
// job of Container Apps, and in Functions the timer for all jobs.
func checkDeadlines(a *app.App) error {
	start, where := containerStart, "a job of Container Apps"
	if app.InFunctions() {
		start, where = 0, "the function tick"
	} else if os.Getenv("CONTAINER_APP_JOB_NAME") == "" {
		return nil
	}
	if a.Alarm != nil {
		return nil
	}
	var errs []error
	for _, j := range a.Scheduler.Jobs {
		deadline := j.Late.Start
		if deadline == 0 && j.Late.Missed == soloist.SkipMissed {
			deadline = cmp.Or(j.Lease, a.Settings.Lease)
		}
		if deadline == 0 || j.EveryReplica || app.InFunctions() && functions.OwnTimer(j, a.Now()) {
			continue
		}
		if tick, late := latest(j, a.Now()); late+start > deadline {
			errs = append(errs, fmt.Errorf("job %q: its starting deadline is %s (Late.Start, or the lease with SkipMissed), and %s looks for the tick of %s %s after it at the earliest: want more, SOLOIST_ALARM=queue, or a replica that serves",
				j.Name, deadline, where, tick.Format(time.RFC3339), late+start))
		}
	}
	return errors.Join(errs...)
}

// latest returns one of the next ticks of a job that is the furthest before a whole minute, and how far that is.
func latest(j soloist.Job, now time.Time) (tick time.Time, late time.Duration) {
	s, err := app.TicksOf(j)
	if err == nil {
		tick = s.Next(now)
	}
	if tick.IsZero() { // it follows another job, is wrong, or is a manual run
		return tick, -containerStart
	}
	for n, at := 0, tick; n < ticksSampled && !at.IsZero(); n, at = n+1, s.Next(at) {
		if wait := at.Add(time.Minute - 1).Truncate(time.Minute).Sub(at); wait > late {
			tick, late = at, wait
		}
	}
	return tick, late
}
