package host

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/internal/schedule"
)

// statusTime bounds the reads of status: somebody waits for it.
const statusTime = 10 * time.Second

// status shows what the records tell. It fails if one could not be read.
func status(ctx context.Context, a *app, given arguments) int {
	ctx, cancel := context.WithTimeout(ctx, statusTime)
	defer cancel()
	all, err := a.sched.Status(ctx)
	if err != nil {
		a.complain(err)
		return exitFail
	}
	views, code := a.views(all), exitOK
	for _, v := range views {
		if v.Error != "" {
			code = exitFail
		}
	}
	if given.json {
		return max(code, a.printJSON(views))
	}
	a.printStatus(views)
	return code
}

// An answer is what status tells in JSON.
type answer struct {
	App   string    `json:"app"`
	Store string    `json:"store"`
	Time  time.Time `json:"time"`
	Jobs  []view    `json:"jobs"`
}

func (a *app) printJSON(views []view) int {
	e := json.NewEncoder(a.Stdout)
	e.SetIndent("", "  ")
	if err := e.Encode(answer{a.App, a.store, a.Now().UTC().Truncate(time.Millisecond), views}); err != nil {
		return exitFail
	}
	return exitOK
}

func (a *app) printStatus(views []view) {
	now := a.Now()
	fmt.Fprintf(a.Stdout, "app %s on %s, %s\n\n", a.App, a.store, stamp(now))
	w := table(a.Stdout, "NAME\tSCHEDULE\tSTATE\tLAST\tNEXT\tCOUNTS")
	for _, v := range views {
		schedule := v.Schedule
		if v.Kind == "singleton" {
			schedule = "(singleton)"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", v.Name, schedule, v.StateWords(now), v.LastWords(now), v.NextWords(now), v.CountWords())
	}
	w.Flush()
	for _, v := range views {
		if v.Error != "" {
			fmt.Fprintf(a.Stdout, "\n%s: %s\n", v.Name, v.Error)
		}
	}
}

// table aligns columns under their titles. Flush prints it.
func table(w io.Writer, titles string) *tabwriter.Writer {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, titles)
	return t
}

// tick runs what is due and tells what was done.
func tick(ctx context.Context, a *app, _ arguments) int {
	report, err := a.sched.RunDue(ctx)
	code := exitOK
	if err != nil {
		code = exitFail
	}
	w := table(a.Stdout, "JOB\tTICK\tDONE\tNEXT")
	for _, j := range report.Jobs {
		next := stamp(j.Next)
		if len(j.Ran) == 0 {
			fmt.Fprintf(w, "%s\t-\t%s\t%s\n", j.Job, idleWords(j), next)
		}
		for _, f := range j.Ran {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", j.Job, stamp(f.Tick), fate(&f), next)
			if f.Status == soloist.Failed || f.Status == soloist.Abandoned {
				code = exitFail
			}
		}
	}
	w.Flush()
	if !report.Next.IsZero() {
		fmt.Fprintf(a.Stdout, "\nnext tick %s, %s\n", stamp(report.Next), ahead(report.Next, a.Now()))
	}
	return code
}

// idleWords says why nothing was run.
func idleWords(j soloist.JobReport) string {
	switch {
	case j.Err != nil:
		return "error: " + line(j.Err.Error())
	case j.Holder != "":
		return "runs on " + line(j.Holder)
	}
	return "nothing is due"
}

// next tells ticks by the schedules alone: the records know which of them are
// settled, and status tells that.
func next(_ context.Context, a *app, given arguments) int {
	jobs := a.sched.Jobs
	if given.job != "" {
		j, err := a.job(given.job)
		if err != nil {
			fmt.Fprintf(a.Stderr, "%s: %v\n", a.Name, err)
			return exitUsage
		}
		jobs = []soloist.Job{j}
	}
	now := a.Now()
	w := table(a.Stdout, "JOB\tTICK\tLOCAL\tFROM NOW")
	for _, j := range jobs {
		s, err := schedule.Parse(j.Schedule, j.TimeZone, j.Name)
		for at, n := now, 0; err == nil && n < given.n; n++ {
			if at = s.Next(at); at.IsZero() {
				break
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", j.Name, stamp(at), localTime(at, j.TimeZone), relative(at, now))
		}
	}
	w.Flush()
	return exitOK
}

// localTime is the time of day where the job lives.
func localTime(at time.Time, zone string) string {
	loc, err := time.LoadLocation(zone)
	if err != nil || loc == time.UTC {
		return "-"
	}
	return at.In(loc).Format("Mon 15:04:05 MST")
}

func (a *app) job(name string) (soloist.Job, error) {
	for _, j := range a.sched.Jobs {
		if j.Name == name {
			return j, nil
		}
	}
	return soloist.Job{}, fmt.Errorf("there is no job %q: want one of %s", name, join(a.names()...))
}
