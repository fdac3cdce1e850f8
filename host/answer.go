package host

import (
	"context"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/store"
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
	a.drifted = a.driftWords()
	views, code := a.views(all), exitOK
	if absent := a.absence(ctx, all); absent != nil {
		body := a.statusAnswer(views)
		if !given.json {
			a.printDrift()
		}
		return tellAbsence(a, given, absent, &body)
	}
	for _, v := range views {
		if v.Error != "" {
			code = exitFail
		}
	}
	if given.json {
		return max(code, a.printJSON(a.statusAnswer(views)))
	}
	a.printStatus(views)
	a.printAdvice(all)
	return code
}

// printAdvice says once what to do where the store did not answer.
func (a *app) printAdvice(all []soloist.JobStatus) {
	for _, st := range all {
		if st.Err == nil || reached(st) {
			continue
		}
		if _, advice := a.explain(st.Err); advice != "" {
			fmt.Fprintf(a.Stderr, "%s: %s\n", a.Name, line(advice))
			return
		}
	}
}

// An answer is what commands tell in JSON: J is what they tell of one job.
type answer[J any] struct {
	App   string    `json:"app,omitempty"`   // of next --schedule: there is none
	Store string    `json:"store,omitempty"` // of next: it asks none
	Time  time.Time `json:"time"`
	Jobs  []J       `json:"jobs"`
	Next  time.Time `json:"next,omitzero"` // of tick: when the next one of any job is due

	// Of status: seconds that this machine's clock is ahead of the store's, as
	// far as that is proved.
	Skew float64 `json:"skew,omitzero"`
	Note string  `json:"note,omitempty"` // of /api/jobs: how old this is, if that is worth a word

	// Of status, in Functions: what is deployed and is not what the jobs need.
	Functions []string `json:"functions,omitempty"`

	// Of status and history: why there is nothing to show.
	Error string `json:"error,omitempty"`
}

func newAnswer[J any](a *app, jobs []J) answer[J] {
	if jobs == nil {
		jobs = []J{} // whoever reads it wants a list
	}
	return answer[J]{App: a.App, Store: a.store, Time: utc(a.Now()), Jobs: jobs}
}

func (a *app) statusAnswer(views []view) answer[view] {
	body := newAnswer(a, views)
	body.Skew, body.Functions = skewSeconds(a.skew()), a.drifted
	return body
}

func (p *Program) printJSON(body any) int {
	if err := writeJSON(p.Stdout, body, "  "); err != nil {
		fmt.Fprintf(p.Stderr, "%s: the answer cannot be written as JSON: %s\n", p.Name, line(err.Error()))
		return exitFail
	}
	return exitOK
}

func (a *app) printDrift() {
	for _, text := range a.drifted {
		fmt.Fprintln(a.Stdout, text)
	}
}

func (a *app) printStatus(views []view) {
	now := a.Now()
	fmt.Fprintf(a.Stdout, "app %s on %s, %s\n", a.App, a.store, stamp(now))
	if text := skewNote(a.skew()); text != "" {
		fmt.Fprintln(a.Stdout, text)
	}
	a.printDrift()
	fmt.Fprintln(a.Stdout)
	colour := a.onTerminal(a.Stdout) && wantsColour()
	w := table(a.Stdout, "NAME\tSCHEDULE\t"+paint(colour, normal, "STATE")+"\tLAST\tNEXT\tCOUNTS")
	for _, v := range views {
		schedule := v.Schedule
		switch {
		case v.Kind == "singleton":
			schedule = "(singleton)"
		case v.Foreign:
			schedule = "(differs)"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", v.Name, schedule, paint(colour, v.tone(), v.StateWords(now)), v.LastWords(now), v.NextWords(now), v.CountWords())
	}
	w.Flush()
	for _, v := range views {
		if v.Error != "" {
			fmt.Fprintf(a.Stdout, "\n%s: %s\n", v.Name, v.Error)
		}
		for _, text := range v.Differs {
			fmt.Fprintf(a.Stdout, "\n%s: %s\n", v.Name, text)
		}
	}
}

// table aligns columns under their titles. Flush prints it.
func table(w io.Writer, titles string) *tabwriter.Writer {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, titles)
	return t
}

// A ticked is what tick tells of one job in JSON.
type ticked struct {
	Job     string          `json:"job"`
	Ran     []store.Outcome `json:"ran"`               // what was run here, in order
	Replica string          `json:"replica,omitempty"` // the other replica that runs it
	Next    time.Time       `json:"next,omitzero"`
	Error   string          `json:"error,omitempty"` // why it could not be looked after
}

// tick runs what is due and tells what was done.
func tick(ctx context.Context, a *app, given arguments) int {
	report, err := a.sched.RunDue(ctx, soloist.Wake{})
	(&clockWatch{log: a.log, skew: a.skew}).look(ctx)
	code := exitOK
	if err != nil || slices.ContainsFunc(report.Jobs, failed) {
		code = exitFail
	}
	if given.json {
		return max(code, a.printTicked(report))
	}
	w := table(a.Stdout, "JOB\tTICK\tDONE\tNEXT")
	for _, j := range report.Jobs {
		if len(j.Ran) == 0 {
			fmt.Fprintf(w, "%s\t-\t%s\t%s\n", j.Job, idleWords(j), stamp(j.Next))
		}
		for _, f := range j.Ran {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", j.Job, stamp(f.Tick), outcome(&f), stamp(j.Next))
		}
	}
	w.Flush()
	if !report.Next.IsZero() {
		fmt.Fprintf(a.Stdout, "\nnext tick %s, %s\n", stamp(report.Next), ahead(report.Next, a.Now()))
	}
	return code
}

// failed reports whether a tick that was run here came to a bad end.
func failed(j soloist.JobReport) bool {
	return slices.ContainsFunc(j.Ran, func(f store.Outcome) bool {
		return f.Status == store.Failed || f.Status == store.Stalled || f.Status == store.Abandoned
	})
}

func (a *app) printTicked(report soloist.Report) int {
	var jobs []ticked
	for _, j := range report.Jobs {
		jobs = append(jobs, newTicked(j))
	}
	body := newAnswer(a, jobs)
	body.Next = utc(report.Next)
	return a.printJSON(body)
}

// idleWords says why nothing was run.
func idleWords(j soloist.JobReport) string {
	switch {
	case j.Err != nil:
		return "error: " + brief(j.Err.Error())
	case j.Replica != "":
		return "runs on " + line(j.Replica)
	}
	return "nothing is due"
}

func (a *app) job(name string) (soloist.Job, error) {
	for _, j := range a.sched.Jobs {
		if j.Name == name {
			return j, nil
		}
	}
	return soloist.Job{}, known(name, a.names())
}

// known returns an error that lists the names if it is none of them.
func known(name string, names []string) error {
	if slices.Contains(names, name) {
		return nil
	}
	return fmt.Errorf("there is no job %q: want one of %s%s", name, join(names...), didYouMean("; ", name, names))
}
