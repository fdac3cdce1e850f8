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
)

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

func (c *sweepCommand) run(ctx context.Context, p *Program) int {
	return p.with(mode{byOperator: true}, func(a *app.App) int {
		ctx, cancel := context.WithTimeout(ctx, sweepTime)
		defer cancel()
		removed, err := soloist.Sweep(ctx, a.Store, a.Settings.App, time.Duration(c.Unused))
		return c.tell(a, removed, err)
	})
}

// tell says what is removed, and what is wrong.
func (c *sweepCommand) tell(a *app.App, removed []string, err error) int {
	answer, code := sweeping{App: a.Settings.App, Store: a.Place, Removed: append([]string{}, removed...)}, exitOK
	if err != nil {
		answer.Error, code = explained(a, err), exitFail
	}
	if c.JSON {
		a.Console.JSON(answer)
		return code
	}
	for _, name := range removed {
		fmt.Fprintln(a.Console.Stdout, name)
	}
	if err != nil {
		a.Console.Tell("sweep: %s", answer.Error)
		return code
	}
	fmt.Fprintf(a.Console.Stderr, "%s: %d removed\n", a.Console.Name, len(removed))
	return code
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
		sweepOnce(ctx, a)
	}
}

// sweepOnce logs what it has removed.
func sweepOnce(ctx context.Context, a *app.App) {
	ctx, cancel := context.WithTimeout(ctx, sweepTime)
	defer cancel()
	removed, err := soloist.Sweep(ctx, a.Store, a.Settings.App, a.Settings.Sweep)
	if len(removed) > 0 {
		a.Log.Info("locks that nobody uses were removed", "locks", len(removed), "first", strings.Join(removed[:min(3, len(removed))], " "))
	}
	if err != nil && ctx.Err() == nil {
		a.Log.Warn("locks that nobody uses could not all be removed", "error", explained(a, err))
	}
}

// explained is an error of the store, with what to do about it.
func explained(a *app.App, err error) string {
	text, advice := a.Explain(err)
	return format.Line(strings.Join(slices.DeleteFunc([]string{cmp.Or(text, err.Error()), advice}, func(s string) bool { return s == "" }), ": "))
}
