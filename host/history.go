package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/host/internal/app"
	"github.com/soloist-go/soloist/host/internal/format"
	"github.com/soloist-go/soloist/host/internal/locks"
	"github.com/soloist-go/soloist/host/internal/past"
	"github.com/soloist-go/soloist/host/internal/view"
	"github.com/soloist-go/soloist/host/internal/why"
	"github.com/soloist-go/soloist/internal/desk"
	"github.com/soloist-go/soloist/internal/record"
	"github.com/soloist-go/soloist/store"
)

// A jobHistory is what history shows of one job or singleton.
type jobHistory struct {
	Name     string                 `json:"job"`
	Kind     string                 `json:"kind"`               // job or singleton
	State    view.State             `json:"state"`              // as status shows it
	Failures int64                  `json:"failures,omitempty"` // as status shows it
	Progress *record.Progress       `json:"progress,omitempty"` // as status shows it
	History  []past.Run             `json:"history"`
	Counts   map[event.Status]int64 `json:"counts"`
	Error    string                 `json:"error,omitempty"` // why the record could not be read

	EveryReplica bool `json:"everyReplica,omitempty"` // each replica runs it: there is no record

	Why []string `json:"why,omitempty"` // with --why: of each outcome of History, empty if it succeeded

	words  string // the state
	status desk.Status
	lines  past.Lines // those that were read, with --why and as long as it has outcomes to show
	older  bool       // its log, which was not read, may have older outcomes
}

// historyCommand shows the outcomes that the records keep, newest first, and the outcomes
// in their logs where more are asked for: those of all jobs in one timeline. It fails
// if a record that was asked for could not be read.
type historyCommand struct {
	Job      string   `arg:"" optional:"" name:"JOB" complete:"work" help:"this job or singleton alone, or one run by its id, such as JOB@2026-03-29T01:00:00Z; lock:NAME or once:NAME, what became of those"`
	JobFlag  string   `name:"job" placeholder:"NAME" complete:"work" help:"the same as JOB"`
	Since    *string  `placeholder:"TIME" help:"what came due or ended since then: a span such as 24h or 7d, a date, today, yesterday, or an instant"`
	Outcome  []string `placeholder:"OUTCOME" complete:"outcome" help:"such outcomes alone; several are separated by commas"`
	Limit    *number  `short:"n" placeholder:"20" help:"how many outcomes, over all jobs if none is named, 1 to 1000; not given: 20, with --since or --outcome 1000"`
	Why      bool     `help:"with the reason of each outcome that is no success as a sentence, as the command why has it"`
	zoneFlag `embed:"" set:"unset=utc"`
	jsonFlag
}

func (c *historyCommand) do(ctx context.Context, a *app.App) int {
	wanted, err := c.filter(a)
	if err != nil {
		return misused(a.Console, err)
	}
	ctx, cancel := context.WithTimeout(ctx, statusTime)
	defer cancel()
	read := wanted.histories
	if wanted.named != nil {
		read = wanted.lockHistories
	}
	pasts, absent, err := read(ctx, a)
	if err != nil {
		a.Console.Complain(err)
		return exitFail
	}
	rows, more := newest(pasts, wanted.limit)
	if c.Why {
		addWhy(ctx, a, pasts)
	}
	body, code := view.New(a, pasts), exitOK
	if absent != nil {
		body.Error = strings.Join(absent, "; ")
		return c.absent(a, absent, body)
	}
	if slices.ContainsFunc(pasts, func(p jobHistory) bool { return p.Error != "" }) {
		code = exitFail
	}
	code = c.answer(a, code, body, func() { printHistory(a, pasts, rows, more, wanted) })
	return max(code, wanted.missing(a, pasts))
}

// printHistory has the outcomes, then what was counted since the record was made:
// the outcomes go when they are old, the counts stay. Of one run it has all that is known.
func printHistory(a *app.App, pasts []jobHistory, rows []row, more bool, wanted filter) {
	printHead(a, wanted.times)
	reason := format.Brief
	if wanted.Run != "" {
		reason = format.Line
	}
	printOutcomes(a, pasts, rows, more, wanted.times, reason)
	printDetails(a, pasts)
	w := format.Table(a.Console.Stdout, "JOB\tSTATE\tCOUNTS")
	for _, p := range pasts {
		fmt.Fprintf(w, "%s\t%s\t%s\n", p.Name, p.words, p.countWords())
	}
	w.Flush()
}

// printHead says of which app the rest is, and when it was asked for.
func printHead(a *app.App, times zoning) {
	clock := times.clock(a, "")
	fmt.Fprintf(a.Console.Stdout, "app %s on %s, %s\n\n", a.Settings.App, a.Place, clock.Date(clock.Now))
}

// A row of the timeline is an outcome of one of the jobs.
type row struct {
	of, at int // which job, and which of its outcomes
	past.Run
}

// newest returns so many outcomes of all jobs, newest first, and whether there may be more of them. The jobs
// keep these alone.
func newest(pasts []jobHistory, limit int) (rows []row, more bool) {
	for i, p := range pasts {
		for _, o := range p.History {
			rows = append(rows, row{of: i, Run: o})
		}
	}
	slices.SortStableFunc(rows, func(a, b row) int { return past.When(&b.Outcome).Compare(past.When(&a.Outcome)) })
	more = slices.ContainsFunc(pasts, func(p jobHistory) bool { return p.older }) || len(rows) > limit
	rows = rows[:min(len(rows), limit)]
	for i := range pasts {
		pasts[i].History = []past.Run{}
	}
	for i, r := range rows {
		p := &pasts[r.of]
		rows[i].at, p.History = len(p.History), append(p.History, r.Run)
	}
	for i := range pasts {
		if len(pasts[i].History) == 0 {
			pasts[i].lines = nil
		}
	}
	return rows, more
}

func printOutcomes(a *app.App, pasts []jobHistory, rows []row, more bool, times zoning, reason func(string) string) {
	if len(rows) == 0 {
		return
	}
	w := format.Table(a.Console.Stdout, "JOB\tTICK\tOUTCOME\tATTEMPT\tREPLICA\tSTART\tTOOK\tTOKEN\tREASON")
	for _, f := range rows {
		name := pasts[f.of].Name
		clock := times.clock(a, name)
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", name, clock.Span(&f.Outcome), f.Status, format.Number(int64(f.Attempt)),
			format.Join(format.Line(f.Replica)), clock.Stamp(f.Start), format.Took(&f.Outcome), format.Number(f.Token), pasts[f.of].reason(f.at, reason))
		if f.Gap {
			fmt.Fprintf(w, "%s\tbefore this, outcomes may be lost\t-\t-\t-\t-\t-\t-\t-\n", name)
		}
	}
	w.Flush()
	if more {
		fmt.Fprintf(a.Console.Stdout, "these are the newest %d: -n, up to %d, shows older ones, if there are any\n", len(rows), maxOutcomes)
	}
	fmt.Fprintln(a.Console.Stdout)
}

// printDetails has what is known of failures besides their outcomes.
func printDetails(a *app.App, pasts []jobHistory) {
	for _, p := range pasts {
		for _, f := range p.History {
			if f.Detail == "" {
				continue
			}
			fmt.Fprintf(a.Console.Stdout, "%s, attempt %d\n%s\n", format.Line(f.ID), f.Attempt, format.Block(f.Detail, "  "))
		}
	}
}

// reason is that of an outcome, as a sentence if that was asked for, else as a line that text makes of it.
func (p *jobHistory) reason(i int, text func(string) string) string {
	if p.Why != nil && p.Why[i] != "" {
		return p.Why[i]
	}
	return format.Join(text(p.History[i].Reason))
}

// countWords are the counts, or why there are none.
func (p jobHistory) countWords() string {
	switch {
	case p.Error != "":
		return p.Error
	case p.EveryReplica:
		return "each replica runs it: there is no record"
	}
	return format.Tally(p.Counts)
}

// fewOutcomes is how many outcomes history shows, unless it is asked for more.
const fewOutcomes = 20

// A filter says which outcomes history shows.
type filter struct {
	past.Filter
	job   string       // empty: of all jobs
	named *locks.Named // in place of jobs; nil: jobs
	limit int
	times zoning
	why   bool // what was read is needed for the reasons, too
}

// filter reads the arguments. The error joins all that is wrong with them.
func (c *historyCommand) filter(a *app.App) (f filter, err error) {
	f.job, f.Run, _ = strings.Cut(cmp.Or(c.Job, c.JobFlag), "@")
	var errs []error
	if c.Job != "" && c.JobFlag != "" && c.Job != c.JobFlag {
		errs = append(errs, errors.New("history: JOB and --job name two jobs: want one"))
	}
	if named, ok := locks.NamedBy(cmp.Or(c.Job, c.JobFlag)); ok {
		f.job, f.Run, f.named = "", "", &named // a name may have an @ in it
		errs = append(errs, named.Check())
		if c.Why {
			errs = append(errs, errWhy)
		}
	} else if (f.job != "" || f.Run != "") && (f.Run != "" || len(a.Shards(f.job)) <= 1) {
		errs = append(errs, a.One(f.job)) // the name of one with shards means them all, but a run is one of a shard
	}
	f.why = c.Why
	if f.times, err = c.read(); err != nil {
		errs = append(errs, fmt.Errorf("history: %w", err))
	}
	f.Since, err = readTime("history: --since", c.Since, f.times.clock(a, f.job).Ago)
	errs = append(errs, err)
	for _, name := range c.Outcome {
		if err := f.Want(name); err != nil {
			errs = append(errs, fmt.Errorf("history: --%w", err))
		}
	}
	switch f.limit = fewOutcomes; {
	case c.Limit != nil:
		f.limit = int(*c.Limit)
	case c.Since != nil || len(c.Outcome) > 0:
		f.limit = maxOutcomes
	}
	return f, errors.Join(errs...)
}

// histories leaves out the jobs that were not asked for: their trouble does not
// matter now. absent says that no job has a record.
func (f filter) histories(ctx context.Context, a *app.App) (pasts []jobHistory, absent []string, err error) {
	all := a.Statuses(ctx)
	views, back, kept := view.All(a, all, nil, nil), f.back(a, all), 0
	for i, st := range all {
		if !f.of(a, st.Name) {
			continue
		}
		v := views[i]
		p := jobHistory{Name: v.Name, Kind: v.Kind, State: v.State, Failures: v.Failures, Progress: v.Progress, Counts: v.Counts, Error: v.Error,
			EveryReplica: v.EveryReplica, History: []past.Run{}, words: v.StateWords(format.Clock{Now: a.Now()})}
		if p.Counts == nil {
			p.Counts = map[event.Status]int64{}
		}
		if st.Err == nil {
			lines, older, err := f.pastOf(ctx, a, &st, back)
			p.History, _ = f.Select(st.Name, lines, 0, f.limit+1)
			p.status, p.older = st, older
			if f.why {
				p.lines = lines
			}
			if f.Run != "" {
				err = errors.Join(err, past.AddDetails(ctx, a, &st, p.History))
			}
			if err != nil {
				p.Error = err.Error()
			}
		}
		pasts = append(pasts, p)
		if kept += len(p.History); kept > 10*maxOutcomes { // logs of many jobs are not kept in memory
			rows, _ := newest(pasts, f.limit+1)
			kept = len(rows)
		}
	}
	return pasts, absence(a, ctx, all), nil
}

// of reports whether a job was asked for, or the whole that it is a shard of.
func (f filter) of(a *app.App, name string) bool {
	return f.job == "" || f.job == name || f.job == a.Whole(name)
}

// back is how far back the outcomes go that are shown, by the records. The logs can only have newer ones in their place, so
// that they need not be read from further back. Zero: the records have too few.
func (f filter) back(a *app.App, all []desk.Status) time.Time {
	var at []time.Time
	for i := range all {
		if all[i].Err != nil || !f.of(a, all[i].Name) {
			continue
		}
		page, _ := f.Select(all[i].Name, past.OfRecord(&all[i]), 0, f.limit)
		for j := range page {
			at = append(at, past.When(&page[j].Outcome))
		}
	}
	if len(at) < f.limit {
		return time.Time{}
	}
	slices.SortFunc(at, func(a, b time.Time) int { return b.Compare(a) })
	return at[f.limit-1]
}

// reaches reports whether a record has all outcomes back to an instant. Those of a backfill are in the log alone.
func reaches(r *record.Record, back time.Time) bool {
	n := len(r.History)
	return !back.IsZero() && n > 0 && !past.When(&r.History[n-1]).After(back) && r.Backfill.Seq == 0
}

// pastOf returns the outcomes of a job back to an instant, newest first: from its record and, if that does not reach so far, its
// log. older reports whether the log, which was not read, may have older ones.
func (f filter) pastOf(ctx context.Context, a *app.App, st *desk.Status, back time.Time) (lines past.Lines, older bool, err error) {
	if a.Logs == nil || st.Lease == "" {
		return past.OfRecord(st), false, nil
	}
	if reaches(&st.Record, back) {
		return past.OfRecord(st), true, nil
	}
	if back.Before(f.Since) {
		back = f.Since
	}
	lines, err = past.Read(ctx, a, st, back)
	return lines, false, err
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

// lockHistories are the histories of what is no job, such as lock:tenant-42; absent says that there are none.
func (f filter) lockHistories(ctx context.Context, a *app.App) (pasts []jobHistory, absent []string, err error) {
	name := format.Line(f.named.String())
	lister, ok := a.Scheduler.Store.(store.Lister)
	if !ok {
		return nil, nil, fmt.Errorf("history: %s cannot be looked for: the store does not list its entries, for which it has to implement store.Lister", name)
	}
	records, err := locks.PastOf(ctx, lister, a.Settings.App, *f.named)
	for _, r := range records {
		pasts = append(pasts, f.lockHistory(r))
	}
	if len(pasts) == 0 {
		absent = []string{fmt.Sprintf("no record of %s of app %q in %s: it was never held there", name, a.Settings.App, a.Place)}
	}
	return pasts, absent, err
}

// lockHistory is the history of one slot, or of one key.
func (f filter) lockHistory(r locks.Past) jobHistory {
	p := jobHistory{Name: format.Line(r.Name), Kind: r.Kind, State: view.State(r.State), History: []past.Run{},
		Counts: r.Record.Counts, Error: format.Error(r.Err)}
	if p.Counts == nil {
		p.Counts = map[event.Status]int64{}
	}
	p.words = r.State
	if r.State == "held" && r.Record.MayRun() {
		p.words += " by " + format.Line(r.Record.Run.Replica)
	}
	p.History, _ = f.Select(p.Name, past.OfRecord(&desk.Status{Record: r.Record}), 0, f.limit+1)
	return p
}

// whyCommand says why a tick did not run, or what became of it.
type whyCommand struct {
	Job  string  `arg:"" name:"JOB" complete:"work" missing:"of which job?" help:"the job or singleton, or a tick of it by its id, such as JOB@2026-03-29T01:00:00Z"`
	Time *string `arg:"" optional:"" name:"TIME" help:"which tick: its instant, a time of the job's time zone such as 02:30 or 2026-03-29T02:30, a date, or a span ago such as 2h, which means the last tick up to then; not given: the newest that did not succeed, else the state now"`
	jsonFlag
}

// A whyAnswer is what why prints in JSON.
type whyAnswer struct {
	head
	why.Answer
}

func (c *whyCommand) do(ctx context.Context, a *app.App) int {
	if job, tick, ok := strings.Cut(c.Job, "@"); ok && c.Time == nil { // as history shows it
		c.Job, c.Time = job, &tick
	}
	var m why.Moment
	err := a.One(c.Job)
	if err == nil && c.Time != nil {
		if m, err = why.ReadMoment(*c.Time, a.Now(), app.ZoneOf(a, c.Job)); err != nil {
			err = fmt.Errorf("%.70q: %w", *c.Time, err)
		}
	}
	if err != nil {
		return misused(a.Console, fmt.Errorf("why: %w", err))
	}
	ctx, cancel := context.WithTimeout(ctx, statusTime)
	defer cancel()
	facts := why.Read(ctx, a).Facts(ctx, c.Job, m)
	body, code := whyAnswer{newHead(a, c.Job), facts.Of(m)}, exitOK
	if body.Cause == why.Unread {
		code = exitFail
	}
	return c.answer(a, code, body, func() { printWhy(a, c.Job, body.Answer) })
}

// printWhy prints the sentence, then what it rests on.
func printWhy(a *app.App, job string, w why.Answer) {
	about := job
	if !w.Tick.IsZero() {
		about += ", tick of " + format.Stamp(w.Tick)
	}
	fmt.Fprintf(a.Console.Stdout, "%s: %s\n", about, w.Sentence)
	for _, text := range w.Known {
		fmt.Fprintf(a.Console.Stdout, "  known: %s\n", text)
	}
	for _, text := range w.NotKnown {
		fmt.Fprintf(a.Console.Stdout, "  not known: %s\n", text)
	}
	if w.State != "" {
		fmt.Fprintf(a.Console.Stdout, "  now: %s\n", w.State)
	}
}

var errWhy = errors.New("history: --why is about the ticks of jobs: lock:NAME and once:NAME have none")

// addWhy adds the sentences of all outcomes that are no success.
func addWhy(ctx context.Context, a *app.App, pasts []jobHistory) {
	source := why.Read(ctx, a)
	read := map[string]desk.Status{}
	for _, p := range pasts {
		read[p.Name] = p.status
	}
	source.Status = func(ctx context.Context, job string) (desk.Status, error) {
		if st, ok := read[job]; ok {
			return st, nil
		}
		return a.Status(ctx, job)
	}
	for i := range pasts {
		p := &pasts[i]
		var facts *why.Facts
		p.Why = make([]string, len(p.History))
		for k := range p.History {
			o := &p.History[k].Outcome
			if o.Status == event.Succeeded || o.Request != "" {
				continue
			}
			if facts == nil {
				facts = source.With(ctx, p.status, p.lines)
			}
			p.Why[k] = facts.OfOutcome(o).Sentence
		}
	}
}
