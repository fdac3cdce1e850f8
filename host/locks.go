package host

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/soloist-go/soloist/host/internal/app"
	"github.com/soloist-go/soloist/host/internal/format"
	"github.com/soloist-go/soloist/host/internal/locks"
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

// shownLocks is what status shows of them.
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
