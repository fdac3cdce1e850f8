package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/internal/schedule"
)

// An outlook is what next tells of one schedule.
type outlook struct {
	Job          string     `json:"job,omitempty"`
	Schedule     string     `json:"schedule"` // in words
	Text         string     `json:"text"`     // canonical
	Zone         string     `json:"zone"`     // of the local times
	EveryReplica bool       `json:"everyReplica,omitempty"`
	Paused       bool       `json:"paused,omitempty"`
	Ticks        []upcoming `json:"ticks"`
	Warnings     []string   `json:"warnings"`
}

type upcoming struct {
	Tick  time.Time `json:"tick"`
	Local time.Time `json:"local"`
	Clock string    `json:"clock,omitempty"` // how it changes on that day
}

// next tells ticks by the schedules alone: the records know which of them are
// settled, and status tells that.
func next(_ context.Context, bare *app, given arguments) int {
	from, zone, err := given.display(bare.Now)
	if err != nil {
		for _, text := range lines(err) {
			fmt.Fprintf(bare.Stderr, "%s: next: %s\n", bare.Name, text)
		}
		return exitUsage
	}
	a, jobs, code := bare.asked(given)
	if code != exitOK {
		return code
	}
	var all []outlook
	for _, j := range jobs {
		s, err := schedule.Parse(j.Schedule, j.TimeZone, j.Name)
		if err != nil { // it has been checked
			a.complain(err)
			return exitFail
		}
		loc := cmp.Or(zone, s.Location())
		o := look(s, from(loc), loc, given.n)
		o.Job, o.EveryReplica, o.Paused = j.Name, j.EveryReplica, j.Paused
		all = append(all, o)
	}
	if given.json {
		return a.printJSON(newAnswer(a, all))
	}
	a.printNext(all)
	return exitOK
}

// asked returns the jobs to look at. It needs no settings for a schedule that
// is given, and no storage ever: one in memory stands in, as if it were given.
func (a *app) asked(given arguments) (*app, []soloist.Job, int) {
	if given.set["schedule"] {
		return a, []soloist.Job{{Name: given.job, Schedule: given.schedule, TimeZone: given.zone}}, exitOK
	}
	p := *a.Program
	p.Store = &local.Memory{}
	b, code := p.openOr("next")
	if code != exitOK {
		return b, nil, code
	}
	b.store = ""
	if given.job == "" {
		return b, b.sched.Jobs, exitOK
	}
	j, err := b.job(given.job)
	if err != nil {
		fmt.Fprintf(b.Stderr, "%s: %v\n", b.Name, err)
		return b, nil, exitUsage
	}
	return b, []soloist.Job{j}, exitOK
}

// display reads from when on ticks are shown, which may depend on the zone,
// and the zone to show them in; nil: the schedule's own. The error joins all
// that is wrong with the flags.
func (g *arguments) display(now func() time.Time) (from func(*time.Location) time.Time, zone *time.Location, err error) {
	errs := []error{g.count()}
	if g.set["tz"] {
		if zone, err = schedule.LoadZone(g.zone); err != nil {
			errs = append(errs, fmt.Errorf("--tz %.70q %w", g.zone, err))
			g.zone = "" // and is no fault of the schedule's
		}
	}
	from = func(*time.Location) time.Time { return now() }
	if g.set["at"] {
		if from, err = moments(g.at); err != nil {
			errs = append(errs, fmt.Errorf("--at is %.70q: %w", g.at, err))
		}
	}
	if g.set["schedule"] {
		if _, err := schedule.Parse(g.schedule, g.zone, g.job); err != nil {
			errs = append(errs, fmt.Errorf("--schedule %.80q: %w", g.schedule, err))
		}
	}
	return from, zone, errors.Join(errs...)
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
		at := time.Date(date.Year(), date.Month(), date.Day(), 0, 0, 0, 0, loc)
		if at.Format(time.DateOnly) < text { // midnight is in a gap, and at is before it
			_, at = at.ZoneBounds()
		}
		return at.Add(-1)
	}, nil
}

// look asks the schedule for its next ticks.
func look(s *schedule.Schedule, from time.Time, loc *time.Location, n int) outlook {
	o := outlook{Schedule: s.Words(), Text: s.String(), Zone: loc.String(), Ticks: []upcoming{},
		Warnings: append([]string{}, s.Warnings(from)...)}
	for range n {
		if from = s.Next(from); from.IsZero() {
			break
		}
		local := from.In(loc)
		o.Ticks = append(o.Ticks, upcoming{Tick: from, Local: local, Clock: clockChange(local)})
	}
	return o
}

// clockChange says how the clock of the zone changes on the local date of at.
func clockChange(at time.Time) string {
	begin, end := at.ZoneBounds()
	for _, change := range []time.Time{begin, end} {
		if change.IsZero() {
			continue
		}
		before, after := change.Add(-time.Second), change
		_, old := before.Zone()
		_, offset := after.Zone()
		day := at.Format(time.DateOnly)
		if old == offset || day != before.Format(time.DateOnly) && day != after.Format(time.DateOnly) {
			continue
		}
		way := "forward"
		if offset < old {
			way = "back"
		}
		return "clock goes " + way + " on " + after.Format(time.DateOnly)
	}
	return ""
}

func (a *app) printNext(all []outlook) {
	for i, o := range all {
		if i > 0 {
			fmt.Fprintln(a.Stdout)
		}
		if o.Job != "" {
			fmt.Fprintf(a.Stdout, "%s: ", o.Job)
		}
		fmt.Fprintf(a.Stdout, "%s\ntext: %s\n", o.Schedule, o.Text)
		if o.EveryReplica {
			fmt.Fprintln(a.Stdout, "each replica runs it")
		}
		if o.Paused {
			fmt.Fprintln(a.Stdout, "paused: its ticks are skipped")
		}
		for _, text := range o.Warnings {
			fmt.Fprintf(a.Stdout, "warning: %s\n", text)
		}
		fmt.Fprintln(a.Stdout)
		a.printTicks(o)
	}
}

// printTicks leaves out local times that are the same.
func (a *app) printTicks(o outlook) {
	if len(o.Ticks) == 0 {
		fmt.Fprintln(a.Stdout, "no tick from then on")
		return
	}
	titles, zoned := "TICK\tFROM NOW", o.Zone != "UTC"
	if zoned {
		titles = "TICK\t" + o.Zone + "\tFROM NOW"
	}
	w := table(a.Stdout, titles)
	for _, t := range o.Ticks {
		fmt.Fprint(w, stamp(t.Tick))
		if zoned {
			fmt.Fprint(w, "\t", t.Local.Format("Mon 2006-01-02 15:04:05 -07:00"))
		}
		fmt.Fprint(w, "\t", relative(t.Tick, a.Now()))
		if t.Clock != "" {
			fmt.Fprint(w, "\t", t.Clock)
		}
		fmt.Fprintln(w)
	}
	w.Flush()
}
