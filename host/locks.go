package host

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host/internal/app"
	"github.com/soloist-go/soloist/host/internal/format"
	"github.com/soloist-go/soloist/host/internal/locks"
	"github.com/soloist-go/soloist/host/internal/past"
	"github.com/soloist-go/soloist/host/internal/view"
	"github.com/soloist-go/soloist/store"
)

// fewLocks is how many locks status shows, and how much of what is done once, unless it is asked for
// more: their names are data.
const fewLocks = 20

// locksOf is what the app has besides its jobs. That it cannot be listed, as with a signature without
// that permission, is a note.
func locksOf(ctx context.Context, a *app.App) (locks.Reading, string) {
	lister, ok := a.Scheduler.Store.(store.Lister)
	if !ok {
		return locks.Reading{}, ""
	}
	r, err := locks.Read(ctx, lister, a.Settings.App)
	if err != nil {
		return r, "locks and what is done once cannot be listed: " + format.Line(err.Error())
	}
	return r, ""
}

// shownLocks is what status tells of them.
func shownLocks(ctx context.Context, a *app.App, most int) locks.Shown {
	r, note := locksOf(ctx, a)
	shown := r.Shown(most)
	if note != "" {
		shown.LocksNote = note
	}
	return shown
}

// printLocks shows a table of the locks, and one of what is done once.
func printLocks(c app.Console, a *app.App, shown locks.Shown) {
	if len(shown.Locks) > 0 {
		fmt.Fprintln(c.Stdout)
		w := format.Table(c.Stdout, "LOCK\tHELD\tHOLDER\tSINCE\tTOKEN\tLAST USED")
		for _, l := range shown.Locks {
			fmt.Fprintf(w, "%s\t%d of %d\t%s\t%s\t%s\t%s\n", lockName(l), l.Held, l.Slots, holderWords(l), format.Stamp(oldest(l)), format.Number(l.Token), format.Relative(l.Used, a.Now()))
		}
		w.Flush()
		printMore(c, shown.MoreLocks)
	}
	if len(shown.Once) > 0 {
		fmt.Fprintln(c.Stdout)
		w := format.Table(c.Stdout, "ONCE\tKEY\tSTATE\tREPLICA\tSINCE")
		for _, o := range shown.Once {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", format.Escape(o.Name), format.Join(format.Brief(o.Key)), onceWords(o), format.Join(format.Line(o.Replica)), format.Stamp(o.At))
		}
		w.Flush()
		printMore(c, shown.MoreOnce)
	}
	if shown.LocksNote != "" {
		fmt.Fprintf(c.Stdout, "\n%s\n", shown.LocksNote)
	}
}

func printMore(c app.Console, more int) {
	if more > 0 {
		fmt.Fprintf(c.Stdout, "and %d more: status --locks\n", more)
	}
}

func lockName(l locks.Lock) string {
	if l.Kind == "lock" {
		return format.Escape(l.Name)
	}
	return format.Escape(l.Name) + " (" + l.Kind + ")"
}

// holderWords names the first holders.
func holderWords(l locks.Lock) string {
	const most = 3
	var names []string
	for i, h := range l.Holders {
		switch {
		case i == most:
			names = append(names, fmt.Sprintf("%d more", len(l.Holders)-most))
		case i < most && h.Replica == "":
			names = append(names, "not claimed yet")
		case i < most:
			names = append(names, format.Line(h.Replica))
		}
	}
	if l.Error != "" {
		names = append(names, l.Error)
	}
	return format.Join(names...)
}

// oldest is when the first of the holders has claimed; zero: none has.
func oldest(l locks.Lock) (since time.Time) {
	for _, h := range l.Holders {
		if !h.Since.IsZero() && (since.IsZero() || h.Since.Before(since)) {
			since = h.Since
		}
	}
	return since
}

func onceWords(o locks.Once) string {
	text := string(o.State)
	if o.Failures > 0 && o.State != locks.Succeeded {
		text += fmt.Sprintf(", failed x%d (%s)", o.Failures, format.Brief(o.Reason))
	}
	if o.State == locks.Failed {
		text = strings.TrimPrefix(text, "failed, ")
	}
	return format.Join(text, o.Error)
}

// showLock is history of what is no job, such as lock:tenant-42.
func (c *historyCommand) showLock(ctx context.Context, a *app.App, named locks.Named) int {
	wanted, err := c.filter(a)
	if err != nil {
		for _, text := range format.Lines(err) {
			a.Console.Tell("%s", text)
		}
		return exitUsage
	}
	lister, ok := a.Scheduler.Store.(store.Lister)
	if !ok {
		a.Console.Tell("history: %s cannot be looked for: the store does not list its entries, for which it has to implement store.Lister", format.Line(named.String()))
		return exitFail
	}
	ctx, cancel := context.WithTimeout(ctx, statusTime)
	defer cancel()
	records, err := locks.PastOf(ctx, lister, a.Settings.App, named)
	if err != nil {
		a.Console.Complain(err)
		return exitFail
	}
	pasts, code := []jobHistory{}, exitOK
	for _, r := range records {
		p := wanted.lockHistory(r)
		if pasts = append(pasts, p); p.Error != "" {
			code = exitFail
		}
	}
	if len(pasts) == 0 {
		lines := []string{fmt.Sprintf("no record of %s of app %q in %s: it was never held there", format.Line(named.String()), a.Settings.App, a.Place)}
		body := view.New(a, pasts)
		return tellAbsence(a, c.jsonFlag, lines, &body)
	}
	if c.JSON {
		return max(code, printed(a.Console.JSON(view.New(a, pasts))))
	}
	printHistory(a, pasts)
	return code
}

// lockHistory is the history of one slot, or of one key.
func (f filter) lockHistory(r locks.Past) jobHistory {
	p := jobHistory{Name: format.Line(r.Name), Kind: r.Kind, State: view.State(r.State), History: []past.Run{}, Counts: r.Record.Counts}
	if p.Counts == nil {
		p.Counts = map[store.Status]int64{}
	}
	if r.Err != nil {
		p.Error = format.Line(r.Err.Error())
	}
	p.words = r.State
	if r.State == "held" && r.Record.MayRun() {
		p.words += " by " + format.Line(r.Record.Run.Replica)
	}
	p.History, _ = f.Select(p.Name, past.OfRecord(&soloist.JobStatus{Record: r.Record}), 0, f.limit)
	return p
}
