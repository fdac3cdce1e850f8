// Package past has the outcomes of a job: from its record and, where they are too few,
// from its log.
package past

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host/internal/app"
	"github.com/soloist-go/soloist/host/internal/format"
	"github.com/soloist-go/soloist/internal/history"
	"github.com/soloist-go/soloist/store"
)

// A Run is an outcome, with the id that logs have of its run.
type Run struct {
	ID string `json:"id,omitempty"` // as [soloist.Run.ID]; none of a range of ticks
	store.Outcome
	Gap bool `json:"gap,omitempty"` // older outcomes, before this one, may be lost
}

// Lines are outcomes of a job.
type Lines []history.Line

// A Filter says which outcomes are wanted.
type Filter struct {
	Run      string         // what follows the @ of a run's id; empty: all runs
	Since    time.Time      // zero: all
	Outcomes []store.Status // empty: all
}

// Any reports whether all outcomes are wanted.
func (f Filter) Any() bool { return f.Run == "" && f.Since.IsZero() && len(f.Outcomes) == 0 }

// Select returns the outcomes of one job that are wanted, after it skips as many as
// offset, and how many there are in all. Lines are the newest first, and so is the result.
// A gap before an outcome that is left out counts as a gap before the outcome shown
// after it.
func (f Filter) Select(job string, lines Lines, offset, limit int) (page []Run, matched int) {
	page = []Run{}
	for i := range lines {
		if f.wants(job, &lines[i].Outcome) {
			if matched++; matched > offset && len(page) < limit {
				o := format.PlainOutcomes([]store.Outcome{lines[i].Outcome})[0]
				page = append(page, Run{ID: runID(job, &o), Outcome: o})
			}
		}
		if n := len(page); lines[i].Gap && n > 0 && matched == offset+n {
			page[n-1].Gap = true
		}
	}
	return page, matched
}

func (f Filter) wants(job string, o *store.Outcome) bool {
	switch {
	case !f.Since.IsZero() && o.Tick.Before(f.Since) && o.End.Before(f.Since):
		return false
	case len(f.Outcomes) > 0 && !slices.Contains(f.Outcomes, o.Status):
		return false
	case f.Run == "":
		return true
	}
	at, isTick := format.Instant(f.Run)
	if isTick && !o.From.IsZero() { // a range has no id: its ticks did not run
		return at.After(o.From) && !at.After(o.Tick)
	}
	return runID(job, o) == job+"@"+f.Run || isTick && ofTick(o) && at.Equal(o.Tick)
}

// ofTick reports whether an outcome belongs to a tick, also to a tick that a backfill has run again.
func ofTick(o *store.Outcome) bool { return o.Request == "" || store.BackfillOf(o.Request) != 0 }

// runID is the [soloist.Run.ID] of an outcome. A range of ticks has none.
func runID(job string, o *store.Outcome) string {
	switch {
	case !o.From.IsZero():
		return ""
	case !ofTick(o):
		return job + "@" + o.Request
	case o.Tick.IsZero():
		return fmt.Sprintf("%s@%d", job, o.Token)
	}
	return job + "@" + o.Tick.UTC().Format(time.RFC3339)
}

// Named returns the outcome of that name.
func Named(name string) (store.Status, error) {
	var names []string
	for _, s := range format.Outcomes() {
		if string(s) == name {
			return s, nil
		}
		names = append(names, string(s))
	}
	return "", fmt.Errorf("outcome is %q: want one of %s%s", format.Brief(name), strings.Join(names, ", "), app.DidYouMean("; ", name, names))
}

// OfRecord returns the outcomes that a record has, the newest first.
func OfRecord(st *soloist.JobStatus) (lines Lines) {
	for _, o := range st.Record.History {
		lines = append(lines, history.Line{Outcome: o})
	}
	return lines
}

// Read returns the outcomes of a job's log and record since an instant, the newest first.
// If the log cannot be read, it returns the record's outcomes and an error.
func Read(ctx context.Context, a *app.App, st *soloist.JobStatus, since time.Time) (Lines, error) {
	lines, err := history.Read(ctx, a.Logs, entryOf(a, st), since, &st.Record)
	if err != nil {
		return OfRecord(st), notRead(err)
	}
	slices.Reverse(lines)
	return lines, nil
}

func notRead(err error) error {
	return fmt.Errorf("the log of outcomes could not be read, so this is what the record has: %w", err)
}

func entryOf(a *app.App, st *soloist.JobStatus) string { return a.Settings.App + "/" + st.Name }
