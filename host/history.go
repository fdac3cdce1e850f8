package host

import (
	"context"
	"fmt"
	"slices"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/store"
)

// A past is what history tells of one job or singleton.
type past struct {
	Name     string                 `json:"job"`
	Kind     string                 `json:"kind"`               // job or singleton
	State    state                  `json:"state"`              // as status tells it
	Failures int64                  `json:"failures,omitempty"` // as status tells it
	Progress *store.Progress        `json:"progress,omitempty"` // as status tells it
	History  []store.Outcome        `json:"history"`
	Counts   map[store.Status]int64 `json:"counts"`
	Error    string                 `json:"error,omitempty"` // why the record could not be read

	EveryReplica bool `json:"everyReplica,omitempty"` // each replica runs it: there is no record

	words string // the state
}

// history shows the outcomes that the records keep, newest first. It fails if a
// record that was asked for could not be read.
func history(ctx context.Context, a *app, given arguments) int {
	if err := given.count(); err != nil {
		fmt.Fprintf(a.Stderr, "%s: history: %v\n", a.Name, err)
		return exitUsage
	}
	if given.job != "" {
		if err := known(given.job, a.all()); err != nil {
			fmt.Fprintf(a.Stderr, "%s: %v\n", a.Name, err)
			return exitUsage
		}
	}
	ctx, cancel := context.WithTimeout(ctx, statusTime)
	defer cancel()
	all, err := a.sched.Status(ctx)
	if err != nil {
		a.complain(err)
		return exitFail
	}
	pasts, code := a.pasts(all, given), exitOK
	if absent := a.absence(ctx, all); absent != nil {
		body := newAnswer(a, pasts)
		return tellAbsence(a, given, absent, &body)
	}
	for _, p := range pasts {
		if p.Error != "" {
			code = exitFail
		}
	}
	if given.json {
		return max(code, a.printJSON(newAnswer(a, pasts)))
	}
	a.printHistory(pasts)
	return code
}

// pasts leaves out whom nobody asked for: their trouble is no trouble now.
func (a *app) pasts(all []soloist.JobStatus, given arguments) (pasts []past) {
	for _, st := range all {
		if given.job != "" && given.job != st.Name {
			continue
		}
		v := a.view(st)
		p := past{Name: v.Name, Kind: v.Kind, State: v.State, Failures: v.Failures, Progress: v.Progress, Counts: v.Counts, Error: v.Error,
			EveryReplica: v.EveryReplica, words: v.StateWords(a.Now())}
		if p.Counts == nil {
			p.Counts = map[store.Status]int64{}
		}
		p.History = []store.Outcome{}
		if st.Err == nil {
			p.History = plainOutcomes(st.Record.History[:min(given.n, len(st.Record.History))])
		}
		pasts = append(pasts, p)
	}
	return pasts
}

// printHistory has the outcomes, then what was counted since the record was made:
// the outcomes go when they are old, the counts stay.
func (a *app) printHistory(pasts []past) {
	fmt.Fprintf(a.Stdout, "app %s on %s, %s\n\n", a.App, a.store, stamp(a.Now()))
	a.printOutcomes(pasts)
	w := table(a.Stdout, "JOB\tSTATE\tCOUNTS")
	for _, p := range pasts {
		fmt.Fprintf(w, "%s\t%s\t%s\n", p.Name, p.words, p.countWords())
	}
	w.Flush()
}

func (a *app) printOutcomes(pasts []past) {
	if !slices.ContainsFunc(pasts, func(p past) bool { return len(p.History) > 0 }) {
		return
	}
	w := table(a.Stdout, "JOB\tTICK\tFATE\tATTEMPT\tREPLICA\tSTART\tTOOK\tTOKEN\tREASON")
	for _, p := range pasts {
		for _, f := range p.History {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", p.Name, span(&f), f.Status, some(int64(f.Attempt)),
				join(line(f.Replica)), stamp(f.Start), took(&f), some(f.Token), join(line(f.Reason)))
		}
	}
	w.Flush()
	fmt.Fprintln(a.Stdout)
}

// countWords are the counts, or why there are none.
func (p past) countWords() string {
	switch {
	case p.Error != "":
		return p.Error
	case p.EveryReplica:
		return "each replica runs it: there is no record"
	}
	return tally(p.Counts)
}
