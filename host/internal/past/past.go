// Package past has the outcomes of a job: from its record and, where they are too few, from its log. It has the details of
// failures, too, and the cells that a strip of the page is made of.
package past

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/host/internal/app"
	"github.com/soloist-go/soloist/host/internal/format"
	"github.com/soloist-go/soloist/internal/desk"
	"github.com/soloist-go/soloist/internal/history"
)

// A Run is an outcome, with the id that logs have of its run.
type Run struct {
	ID string `json:"id,omitempty"` // as [soloist.Run.ID]; none of a range of ticks
	event.Outcome
	Gap    bool   `json:"gap,omitempty"`    // older outcomes, before this one, may be lost
	Detail string `json:"detail,omitempty"` // of a failure, where one run is asked for: tries, errors, panic, last lines
}

// When is what outcomes of several jobs are ordered by: the tick, or of a singleton the start of its term; of a run that was
// ordered, whose tick may be long ago, its end.
func When(o *event.Outcome) time.Time {
	if o.Request != "" {
		l := history.Line{Outcome: *o}
		return l.At()
	}
	return format.Moment(o)
}

// Lines are outcomes of a job.
type Lines []history.Line

// A Filter says which outcomes are wanted.
type Filter struct {
	Run      string         // what follows the @ of a run's id; empty: all runs
	Since    time.Time      // zero: all
	Outcomes []event.Status // empty: all
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
				page = append(page, RunOf(job, lines[i].Outcome))
			}
		}
		if n := len(page); lines[i].Gap && n > 0 && matched == offset+n {
			page[n-1].Gap = true
		}
	}
	return page, matched
}

func (f Filter) wants(job string, o *event.Outcome) bool {
	switch {
	case o.Tick.Before(f.Since) && o.End.Before(f.Since) && o.Start.Before(f.Since): // of a singleton that died only the start is known
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
func ofTick(o *event.Outcome) bool { return o.Request == "" || event.BackfillOf(o.Request) != 0 }

// RunOf is an outcome as JSON shows it, with the id of its run.
func RunOf(job string, o event.Outcome) Run {
	return Run{ID: runID(job, &o), Outcome: format.PlainOutcome(o)}
}

// runID is the [soloist.Run.ID] of an outcome. A range of ticks has none.
func runID(job string, o *event.Outcome) string {
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

// Want adds the outcomes of these names to those that are wanted.
func (f *Filter) Want(names ...string) error {
	known := format.Outcomes()
	for _, name := range names {
		if !slices.Contains(known, name) {
			return fmt.Errorf("outcome is %q: want one of %s%s", format.Brief(name), strings.Join(known, ", "), app.DidYouMean("; ", name, known))
		}
		f.Outcomes = append(f.Outcomes, event.Status(name))
	}
	return nil
}

// OfRecord returns the outcomes that a record has, the newest first.
func OfRecord(st *desk.Status) (lines Lines) {
	for _, o := range st.Record.History {
		lines = append(lines, history.Line{Outcome: o})
	}
	return lines
}

// Read returns the outcomes of a job's log and record since an instant, the newest first.
// If the log cannot be read, it returns the record's outcomes and an error.
func Read(ctx context.Context, a *app.App, st *desk.Status, since time.Time) (Lines, error) {
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

func entryOf(a *app.App, st *desk.Status) string { return a.Settings.App + "/" + st.Name }

const (
	staleAfter = 5 * time.Minute  // then a log is read again, since its oldest part may be gone
	failedFor  = 10 * time.Second // so long a log that could not be read is not read again
	readTime   = 10 * time.Second // bounds one reading

	newest   = 1000   // outcomes that are read where none in particular are asked for
	mostRead = 20_000 // outcomes that are read at most; the command history reads all
	mostKept = 60_000 // outcomes of all jobs, in memory
)

// A Cache keeps what logs had when they were asked for. The record brings it up to date, so
// however many ask, a log is read once in some minutes. One log is read at a time.
type Cache struct {
	app *app.App

	reading chan struct{} // full: a log is being read

	answers map[string]answer // of the one that reads

	mu  sync.Mutex
	all map[string]*kept
}

// kept is what is known of one job's log.
type kept struct {
	lines Lines     // the oldest first
	since time.Time // they are all since then; zero: all there are
	whole bool      // they are
	read  time.Time
	used  time.Time
	err   error // why the log could not be read
}

// NewCache returns an empty cache of a program's logs.
func NewCache(a *app.App) *Cache {
	return &Cache{app: a, reading: make(chan struct{}, 1), answers: map[string]answer{}, all: map[string]*kept{}}
}

// On reports whether the program keeps logs.
func (c *Cache) On() bool { return c.app.Logs != nil && c.app.Settings.History > 0 }

// Of returns the newest outcomes of a job, the newest first: enough for the filter, or as
// many as are read at most. whole reports whether there are no more of them. If the log
// cannot be read, it returns the record's outcomes and an error.
func (c *Cache) Of(ctx context.Context, st *desk.Status, f Filter) (lines Lines, whole bool, err error) {
	k := c.known(st, f)
	if k == nil {
		k = c.wait(ctx, st, f)
	}
	if k.err != nil {
		return OfRecord(st), false, notRead(k.err)
	}
	lines = slices.Clone(k.lines)
	slices.Reverse(lines)
	return lines, k.reaches(f.Since), nil
}

// wait waits for its turn to read a log. Others may wait for the same one, so it goes on
// when the caller is gone.
func (c *Cache) wait(ctx context.Context, st *desk.Status, f Filter) *kept {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readTime)
	defer cancel()
	select {
	case c.reading <- struct{}{}:
		defer func() { <-c.reading }()
	case <-ctx.Done():
		return &kept{err: ctx.Err()}
	}
	if k := c.known(st, f); k != nil { // another request has read it
		return k
	}
	return c.read(ctx, st, f)
}

// known returns what is kept of a job, brought up to date; nil if that does not do.
func (c *Cache) known(st *desk.Status, f Filter) *kept {
	c.mu.Lock()
	defer c.mu.Unlock()
	k, now := c.all[st.Name], time.Now()
	switch {
	case k == nil:
		return nil
	case k.err != nil:
		if now.Sub(k.read) < failedFor {
			return k
		}
		return nil
	case now.Sub(k.read) >= staleAfter, !k.answers(f):
		return nil
	}
	lines, ok := history.Update(k.lines, &st.Record)
	if !ok {
		return nil
	}
	up := *k
	up.lines, up.used = lines, now
	c.all[st.Name] = &up
	return &up
}

// answers reports whether a reading would find no more.
func (k *kept) answers(f Filter) bool { return len(k.lines) >= enough(f) || k.reaches(f.Since) }

// reaches reports whether all outcomes since an instant are there.
func (k *kept) reaches(since time.Time) bool {
	return k.whole && !k.since.After(since) || len(k.lines) > 0 && k.lines[0].At().Before(since)
}

// enough is how many outcomes are read for a filter.
func enough(f Filter) int {
	if f.Any() {
		return newest
	}
	return mostRead
}

// read reads a log, and keeps what it has.
func (c *Cache) read(ctx context.Context, st *desk.Status, f Filter) *kept {
	k := &kept{since: f.Since}
	k.lines, k.whole, k.err = history.Newest(ctx, c.app.Logs, entryOf(c.app, st), f.Since, enough(f), &st.Record)
	if k.whole && (len(k.lines) == 0 || !k.lines[0].At().Before(f.Since)) {
		k.since = time.Time{} // the reading came to the beginning of the log: there is nothing further back
	}
	k.read = time.Now()
	k.used = k.read
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all[st.Name] = k
	c.shrink()
	return k
}

// shrink forgets the logs that were not asked for for the longest time.
func (c *Cache) shrink() {
	for len(c.all) > 1 {
		total, oldest := 0, ""
		for job, k := range c.all {
			total += len(k.lines)
			if oldest == "" || k.used.Before(c.all[oldest].used) {
				oldest = job
			}
		}
		if total <= mostKept {
			return
		}
		delete(c.all, oldest)
	}
}
