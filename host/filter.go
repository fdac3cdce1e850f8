package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host/internal/app"
	"github.com/soloist-go/soloist/host/internal/format"
	"github.com/soloist-go/soloist/host/internal/view"
	"github.com/soloist-go/soloist/internal/history"
	"github.com/soloist-go/soloist/store"
)

// How many outcomes of each job history shows.
const (
	fewOutcomes = 20
	maxOutcomes = 1000
)

// A filter says which outcomes history shows.
type filter struct {
	job      string         // empty: of all jobs
	run      string         // what follows the @ of a run's id; empty: of all runs
	since    time.Time      // zero: all
	outcomes []store.Status // empty: all
	limit    int
}

// filter reads the arguments. The error joins all that is wrong with them.
func (c *historyCommand) filter(a *app.App) (f filter, err error) {
	f.job, f.run, _ = strings.Cut(cmp.Or(c.Job, c.JobFlag), "@")
	var errs []error
	if c.Job != "" && c.JobFlag != "" && c.Job != c.JobFlag {
		errs = append(errs, errors.New("history: JOB and --job name two jobs: want one"))
	}
	if f.job != "" || f.run != "" {
		errs = append(errs, app.Known(f.job, a.Names()))
	}
	if c.Since != nil {
		if f.since, err = ago(*c.Since, a.Now()); err != nil {
			errs = append(errs, fmt.Errorf("history: --since is %.70q: %w", *c.Since, err))
		}
	}
	for _, name := range c.Outcome {
		s, err := statusNamed(name)
		f.outcomes, errs = append(f.outcomes, s), append(errs, err)
	}
	f.limit, err = c.limit()
	return f, errors.Join(append(errs, err)...)
}

func (c *historyCommand) limit() (int, error) {
	if c.Limit != nil {
		if err := checkLimit(*c.Limit); err != nil {
			return 0, fmt.Errorf("history: %w", err)
		}
		return int(*c.Limit), nil
	}
	if c.Since != nil || len(c.Outcome) > 0 {
		return maxOutcomes, nil
	}
	return fewOutcomes, nil
}

// checkLimit returns what is wrong with -n.
func checkLimit(n number) error {
	if n < 1 || n > maxOutcomes {
		return fmt.Errorf("-n is %d: want 1 to %d", n, maxOutcomes)
	}
	return nil
}

func statusNamed(name string) (store.Status, error) {
	var names []string
	for _, s := range format.Outcomes() {
		if string(s) == name {
			return s, nil
		}
		names = append(names, string(s))
	}
	return "", fmt.Errorf("history: --outcome is %.70q: want one of %s%s", name, strings.Join(names, ", "), app.DidYouMean("; ", name, names))
}

// histories leaves out the jobs that were not asked for: their trouble does not
// matter now.
func (f filter) histories(ctx context.Context, a *app.App, all []soloist.JobStatus) (pasts []jobHistory) {
	views := view.All(a, all)
	for i, st := range all {
		if f.job != "" && f.job != st.Name {
			continue
		}
		v := views[i]
		p := jobHistory{Name: v.Name, Kind: v.Kind, State: v.State, Failures: v.Failures, Progress: v.Progress, Counts: v.Counts, Error: v.Error,
			EveryReplica: v.EveryReplica, History: []pastRun{}, words: v.StateWords(a.Now())}
		if p.Counts == nil {
			p.Counts = map[store.Status]int64{}
		}
		if st.Err == nil {
			lines, err := f.pastOf(ctx, a, &st)
			p.History = f.outcomesOf(st.Name, lines)
			if err != nil {
				p.Error = err.Error()
			}
		}
		pasts = append(pasts, p)
	}
	return pasts
}

// outcomesOf are the outcomes of one job that are wanted, newest first. What may be lost
// before one that is left out may be lost before the one that is shown after it.
func (f filter) outcomesOf(job string, lines []history.Line) []pastRun {
	found := []pastRun{}
	for _, l := range lines {
		o := format.PlainOutcomes([]store.Outcome{l.Outcome})[0]
		if f.wants(job, &o) {
			if len(found) == f.limit {
				break
			}
			found = append(found, pastRun{ID: runID(job, &o), Outcome: o})
		}
		if n := len(found); l.Gap && n > 0 {
			found[n-1].Gap = true
		}
	}
	return found
}

func (f filter) wants(job string, o *store.Outcome) bool {
	switch {
	case !f.since.IsZero() && o.Tick.Before(f.since) && o.End.Before(f.since):
		return false
	case len(f.outcomes) > 0 && !slices.Contains(f.outcomes, o.Status):
		return false
	case f.run == "":
		return true
	}
	at, isTick := instant(f.run)
	if isTick && !o.From.IsZero() { // a range has no id: its ticks did not run
		return at.After(o.From) && !at.After(o.Tick)
	}
	return runID(job, o) == job+"@"+f.run || isTick && o.Request == "" && at.Equal(o.Tick)
}

// runID is the [soloist.Run.ID] of an outcome. A range of ticks has none.
func runID(job string, o *store.Outcome) string {
	switch {
	case !o.From.IsZero():
		return ""
	case o.Request != "":
		return job + "@" + o.Request
	case o.Tick.IsZero():
		return fmt.Sprintf("%s@%d", job, o.Token)
	}
	return job + "@" + o.Tick.Format(time.RFC3339)
}

// missing tells that a run which was asked for is not in the history.
func (f filter) missing(a *app.App, pasts []jobHistory) int {
	if f.run == "" || slices.ContainsFunc(pasts, func(p jobHistory) bool { return len(p.History) > 0 || p.Error != "" }) {
		return exitOK
	}
	a.Console.Tell("history: the record has no outcome of %s: it keeps the newest ones only, and none of a run that has not ended, which status shows",
		format.Line(f.job+"@"+f.run))
	return exitFail
}
