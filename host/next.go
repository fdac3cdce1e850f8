package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host/internal/app"
	"github.com/soloist-go/soloist/host/internal/format"
	"github.com/soloist-go/soloist/host/internal/view"
	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/internal/schedule"
)

// nextCommand shows ticks by the schedules alone: the records know which of them
// are settled, and status shows that.
type nextCommand struct {
	Job      string  `arg:"" optional:"" name:"JOB" complete:"job" help:"this job alone"`
	Limit    number  `short:"n" default:"10" help:"how many ticks of each job, 1 to 1000"`
	At       *string `placeholder:"TIME" help:"ticks from then on: a date such as 2026-03-29, or an instant such as 2026-03-29T01:00:00Z; not given: from now on"`
	Schedule *string `placeholder:"TEXT" help:"a schedule to try out, in place of the jobs; --tz is its zone, too"`
	zoneFlag `embed:"" set:"unset=job"`
	jsonFlag
}

func (c *nextCommand) run(_ context.Context, p *Program) int {
	from, times, err := c.display(p.Now)
	if err != nil {
		return misused(p.console(), fmt.Errorf("next: %w", err))
	}
	if c.Schedule != nil { // which needs no settings
		given := soloist.Job{Name: c.Job, Schedule: *c.Schedule, TimeZone: times.name()}
		return c.show(&app.App{Console: p.console(), Now: p.Now}, []soloist.Job{given}, from, times)
	}
	stored := *p
	stored.Store = &local.Memory{} // no storage is asked: this one stands in, as if it were given
	return stored.with(mode{}, func(a *app.App) int {
		a.Place = ""
		if c.Job == "" {
			return c.show(a, a.Scheduler.Jobs, from, times)
		}
		j, err := a.Job(c.Job)
		if err != nil {
			return misused(a.Console, err)
		}
		return c.show(a, []soloist.Job{j}, from, times)
	})
}

// show explains the schedules of jobs.
func (c *nextCommand) show(a *app.App, jobs []soloist.Job, from func(*time.Location) time.Time, times zoning) int {
	var all []view.Outlook
	for _, j := range jobs {
		o, err := view.OutlookOf(a, j, times.zone, from, int(c.Limit))
		if err != nil { // it has been checked
			a.Console.Complain(err)
			return exitFail
		}
		o.Job = j.Name
		all = append(all, o)
	}
	body := view.New(a, all)
	if slices.ContainsFunc(all, func(o view.Outlook) bool { return o.Zone != "UTC" }) {
		body.Zones = schedule.ZoneData(a.Now())
	}
	return c.answer(a, exitOK, body, func() {
		printNext(a, all, times)
		if body.Zones != "" {
			fmt.Fprintf(a.Console.Stdout, "\n%s\n", body.Zones)
		}
	})
}

func printNext(a *app.App, all []view.Outlook, times zoning) {
	for i, o := range all {
		if i > 0 {
			fmt.Fprintln(a.Console.Stdout)
		}
		if o.Job != "" {
			fmt.Fprintf(a.Console.Stdout, "%s: ", o.Job)
		}
		fmt.Fprintf(a.Console.Stdout, "%s\ntext: %s\n", o.Schedule, o.Text)
		if o.EveryReplica {
			fmt.Fprintln(a.Console.Stdout, "each replica runs it")
		}
		if o.Paused {
			fmt.Fprintln(a.Console.Stdout, "paused: its ticks are skipped")
		}
		for _, text := range o.Warnings {
			fmt.Fprintf(a.Console.Stdout, "warning: %s\n", text)
		}
		fmt.Fprintln(a.Console.Stdout)
		printTicks(a, o, times)
	}
}

// printTicks leaves out local times that are the same, and all but spans where these are wanted.
func printTicks(a *app.App, o view.Outlook, times zoning) {
	if len(o.Ticks) == 0 {
		fmt.Fprintln(a.Console.Stdout, "no tick from then on")
		return
	}
	titles, zoned := "TICK\tFROM NOW", o.Zone != "UTC" && !times.spans
	switch {
	case times.spans:
		titles = "FROM NOW"
	case zoned:
		titles = "TICK\t" + o.Zone + "\tFROM NOW"
	}
	w := format.Table(a.Console.Stdout, titles)
	for _, t := range o.Ticks {
		if !times.spans {
			fmt.Fprint(w, format.Stamp(t.Tick), "\t")
		}
		if zoned {
			fmt.Fprint(w, localTime(t.Local), "\t")
		}
		fmt.Fprint(w, format.Relative(t.Tick, a.Now()))
		if notes := slices.DeleteFunc([]string{t.Clock, t.MovedWords()}, func(s string) bool { return s == "" }); len(notes) > 0 {
			fmt.Fprint(w, "\t", strings.Join(notes, ", "))
		}
		fmt.Fprintln(w)
	}
	w.Flush()
	if len(o.LeftOut) > 0 {
		fmt.Fprintln(a.Console.Stdout, "\nexcluded days:")
	}
	for _, day := range o.LeftOut {
		fmt.Fprintln(a.Console.Stdout, "  "+day.Words())
	}
}

// localTime is a tick where the clock and the day of the week matter.
func localTime(t time.Time) string { return t.Format("Mon 2006-01-02 15:04:05 -07:00") }

// display reads from when on ticks are shown, which may depend on the zone,
// and how to show them; a zone of nil: in the schedule's own. The error joins all
// that is wrong with the flags.
func (c *nextCommand) display(now func() time.Time) (from func(*time.Location) time.Time, times zoning, err error) {
	var errs []error
	if times, err = c.read(); err != nil {
		errs = append(errs, err)
	}
	from = func(*time.Location) time.Time { return now() }
	if c.At != nil {
		if from, err = moments(*c.At); err != nil {
			errs = append(errs, fmt.Errorf("--at is %.70q: %w", *c.At, err))
		}
	}
	if c.Schedule != nil {
		if _, err := schedule.Parse(*c.Schedule, times.name(), c.Job); err != nil {
			errs = append(errs, fmt.Errorf("--schedule %.80q: %w", *c.Schedule, err))
		}
	}
	return from, times, errors.Join(errs...)
}

// name is that of the zone, empty for none.
func (z zoning) name() string {
	if z.zone == nil {
		return ""
	}
	return z.zone.String()
}

// moments reads an instant, or a date: its first instant in a zone. A tick at
// the instant itself is one to show, so what it returns is just before.
func moments(text string) (func(*time.Location) time.Time, error) {
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return func(*time.Location) time.Time { return at.Add(-1) }, nil
	}
	date, err := time.Parse(time.DateOnly, text)
	if err != nil {
		return nil, errors.New("want a date such as 2026-03-29, or an instant such as 2026-03-29T01:00:00Z")
	}
	return func(loc *time.Location) time.Time {
		return format.Midnight(date, loc).Add(-1)
	}, nil
}

// fewComing is how many jobs are shown with their next ticks.
const fewComing = 20

// printComing shows what runs here, and when it does next by the schedules alone: what is due first comes first.
func printComing(w io.Writer, a *app.App, clock format.Clock, width int) {
	type coming struct {
		name, words, schedule string
		at                    time.Time
	}
	var all []coming
	for _, g := range a.Scheduler.Singletons {
		all = append(all, coming{g.Name, "all the time", "(singleton)", clock.Now})
	}
	for _, j := range a.Scheduler.Jobs {
		c := coming{name: j.Name, words: "by hand"}
		if len(j.After.Jobs) > 0 {
			c.words = "after " + strings.Join(j.After.Jobs, ", ")
			c.schedule = c.words
		} else if s, err := app.TicksOf(j); err == nil {
			c.schedule = s.Words()
			if c.at = s.Next(clock.Now); !c.at.IsZero() {
				c.words = clock.Brief(c.at) + " " + clock.Ahead(c.at)
			}
		}
		if j.Paused {
			c.words = "paused"
		}
		all = append(all, c)
	}
	slices.SortStableFunc(all, func(a, b coming) int { // what has no tick comes last
		if a.at.IsZero() != b.at.IsZero() {
			return cmp.Compare(b.at.Unix(), a.at.Unix())
		}
		return a.at.Compare(b.at)
	})
	g := format.NewGrid("NAME\tNEXT\tSCHEDULE", 8, 10, 10)
	for _, c := range all[:min(len(all), fewComing)] {
		g.Row(c.name, c.words, c.schedule)
	}
	g.Print(w, width, false)
	if more := len(all) - fewComing; more > 0 {
		fmt.Fprintf(w, "and %d more: %s next\n", more, a.Console.Name)
	}
}
