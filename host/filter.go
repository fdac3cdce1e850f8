package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host/internal/app"
	"github.com/soloist-go/soloist/host/internal/format"
	"github.com/soloist-go/soloist/host/internal/locks"
	"github.com/soloist-go/soloist/host/internal/past"
	"github.com/soloist-go/soloist/host/internal/view"
	"github.com/soloist-go/soloist/store"
)

// fewOutcomes is how many outcomes of each job history shows, unless it is asked for more.
const fewOutcomes = 20

// A filter says which outcomes history shows.
type filter struct {
	past.Filter
	job   string // empty: of all jobs
	limit int
}

// filter reads the arguments. The error joins all that is wrong with them.
func (c *historyCommand) filter(a *app.App) (f filter, err error) {
	f.job, f.Run, _ = strings.Cut(cmp.Or(c.Job, c.JobFlag), "@")
	var errs []error
	if c.Job != "" && c.JobFlag != "" && c.Job != c.JobFlag {
		errs = append(errs, errors.New("history: JOB and --job name two jobs: want one"))
	}
	if named, ok := locks.NamedBy(cmp.Or(c.Job, c.JobFlag)); ok {
		f.job, f.Run = "", "" // a name may have an @ in it
		errs = append(errs, named.Check())
	} else if f.job != "" || f.Run != "" {
		errs = append(errs, knownPast(a, f))
	}
	if c.Since != nil {
		if f.Since, err = format.Ago(*c.Since, a.Now()); err != nil {
			errs = append(errs, fmt.Errorf("history: --since is %.70q: %w", *c.Since, err))
		}
	}
	for _, name := range c.Outcome {
		if err := f.Want(name); err != nil {
			errs = append(errs, fmt.Errorf("history: --%w", err))
		}
	}
	f.limit, err = c.limit()
	return f, errors.Join(append(errs, err)...)
}

// knownPast returns what is wrong with the job that history is asked for. The name of one with shards
// means them all, but a run is one of a shard.
func knownPast(a *app.App, f filter) error {
	if f.Run == "" && len(a.Shards(f.job)) > 1 {
		return nil
	}
	return a.One(f.job)
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

// histories leaves out the jobs that were not asked for: their trouble does not
// matter now.
func (f filter) histories(ctx context.Context, a *app.App, all []soloist.JobStatus) (pasts []jobHistory) {
	views := view.All(a, all, nil, nil)
	for i, st := range all {
		if f.job != "" && f.job != st.Name && f.job != a.Whole(st.Name) {
			continue
		}
		v := views[i]
		p := jobHistory{Name: v.Name, Kind: v.Kind, State: v.State, Failures: v.Failures, Progress: v.Progress, Counts: v.Counts, Error: v.Error,
			EveryReplica: v.EveryReplica, History: []past.Run{}, words: v.StateWords(a.Now())}
		if p.Counts == nil {
			p.Counts = map[store.Status]int64{}
		}
		if st.Err == nil {
			lines, err := f.pastOf(ctx, a, &st)
			p.History, _ = f.Select(st.Name, lines, 0, f.limit)
			if err != nil {
				p.Error = err.Error()
			}
		}
		pasts = append(pasts, p)
	}
	return pasts
}

// pastOf returns the outcomes of a job, newest first: from its record and, where they may
// be too few, from its log.
func (f filter) pastOf(ctx context.Context, a *app.App, st *soloist.JobStatus) (past.Lines, error) {
	few := f.Any() && f.limit <= len(st.Record.History)
	if a.Logs == nil || few || st.Lease == "" {
		return past.OfRecord(st), nil
	}
	return past.Read(ctx, a, st, f.Since)
}

// missing reports that a run which was asked for is not in the history.
func (f filter) missing(a *app.App, pasts []jobHistory) int {
	if f.Run == "" || slices.ContainsFunc(pasts, func(p jobHistory) bool { return len(p.History) > 0 || p.Error != "" }) {
		return exitOK
	}
	a.Console.Tell("history: the record has no outcome of %s: it keeps the newest ones only, and none of a run that has not ended, which status shows",
		format.Line(f.job+"@"+f.Run))
	return exitFail
}
