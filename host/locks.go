package host

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/soloist-go/soloist"
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
		return r, "locks and what is done once cannot be listed: " + format.Error(err)
	}
	return r, ""
}

// printLocks shows a table of the locks, and one of what is done once.
func printLocks(c app.Console, clock format.Clock, shown locks.Shown) {
	width := c.Width()
	if len(shown.Locks) > 0 {
		fmt.Fprintln(c.Stdout)
		g := format.NewGrid("LOCK\tHELD\tHOLDER\tSINCE\tTOKEN\tLAST USED", 8, 4, 8, 7, 0, 7)
		for _, l := range shown.Locks {
			g.Row(lockName(l), fmt.Sprintf("%d of %d", l.Held, l.Slots), holderWords(l), clock.Stamp(oldest(l)), format.Number(l.Token), clock.Relative(l.Used))
		}
		g.Print(c.Stdout, width, false)
		printMore(c, shown.MoreLocks)
	}
	if len(shown.Once) > 0 {
		fmt.Fprintln(c.Stdout)
		g := format.NewGrid("ONCE\tKEY\tSTATE\tREPLICA\tSINCE", 8, 6, 10, 8, 7)
		for _, o := range shown.Once {
			g.Row(format.Escape(o.Name), format.Join(format.Brief(o.Key)), onceWords(o), format.Join(format.Line(o.Replica)), clock.Stamp(o.At))
		}
		g.Print(c.Stdout, width, false)
		printMore(c, shown.MoreOnce)
	}
	if shown.LocksNote != "" {
		fmt.Fprintln(c.Stdout)
		format.Wrapped(c.Stdout, shown.LocksNote, width)
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

// sweepCommand removes the entries of locks that are no longer used. No replica has to be up, and
// those that are up are not disturbed.
type sweepCommand struct {
	Unused unused `default:"30d" help:"for how long nobody has held what is removed, such as 36h or 30d; at least 10m"`
	jsonFlag
}

// An unused is the time for which a lock has had no holder when it is removed.
type unused time.Duration

// leastUnused is the least that soloist.Sweep takes.
const leastUnused = 10 * time.Minute

func (u *unused) UnmarshalText(text []byte) error {
	d, ok := format.ReadSpan(string(text))
	switch {
	case !ok:
		return fmt.Errorf("%.70q is no span of time: want one such as 90m, 24h or 7d", text)
	case d < leastUnused:
		return fmt.Errorf("%.70q is too short: want %s or more", text, leastUnused)
	}
	*u = unused(d)
	return nil
}

// A sweeping is what sweep prints in JSON.
type sweeping struct {
	App     string   `json:"app"`
	Store   string   `json:"store"`
	Removed []string `json:"removed"` // names of entries, without the app
	Error   string   `json:"error,omitempty"`
}

// sweepTime bounds a sweep: a removal is a call for each entry.
const sweepTime = 10 * time.Minute

func (*sweepCommand) mode() mode { return mode{byOperator: true} }

func (c *sweepCommand) do(ctx context.Context, a *app.App) int {
	removed, err := sweep(ctx, a, time.Duration(c.Unused))
	body, code := sweeping{App: a.Settings.App, Store: a.Place, Removed: append([]string{}, removed...)}, exitOK
	if err != nil {
		body.Error, code = explained(a, err), exitFail
	}
	return c.answer(a, code, body, func() {
		for _, name := range removed {
			fmt.Fprintln(a.Console.Stdout, name)
		}
		if err != nil {
			a.Console.Tell("sweep: %s", body.Error)
			return
		}
		a.Console.Tell("%d removed", len(removed))
	})
}

func sweep(ctx context.Context, a *app.App, unused time.Duration) (removed []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, sweepTime)
	defer cancel()
	return soloist.Sweep(ctx, a.Store, a.Settings.App, unused)
}

// sweepDaily sweeps once a day if that is wanted. The replicas do so at different times, and what one of
// them has removed is nothing to the others.
func sweepDaily(ctx context.Context, a *app.App) {
	if a.Settings.Sweep == 0 {
		return
	}
	const day = 24 * time.Hour
	for wait := rand.N(time.Hour); ; wait = day - rand.N(time.Hour) {
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
		removed, err := sweep(ctx, a, a.Settings.Sweep)
		if len(removed) > 0 {
			a.Log.Info("locks that nobody uses were removed", "locks", len(removed), "first", strings.Join(removed[:min(3, len(removed))], " "))
		}
		if err != nil && ctx.Err() == nil {
			a.Log.Warn("locks that nobody uses could not all be removed", "error", explained(a, err))
		}
	}
}

// explained is an error of the store, with what to do about it.
func explained(a *app.App, err error) string {
	text, advice := a.Explain(err)
	return format.Line(strings.Join(slices.DeleteFunc([]string{cmp.Or(text, err.Error()), advice}, func(s string) bool { return s == "" }), ": "))
}
