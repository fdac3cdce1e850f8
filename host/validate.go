package host

import (
	"context"
	"fmt"
	"strings"

	"github.com/soloist-go/soloist/host/internal/app"
	"github.com/soloist-go/soloist/host/internal/format"
)

// A verdict is what validate prints in JSON.
type verdict struct {
	OK       bool     `json:"ok"`
	App      string   `json:"app"`
	Store    string   `json:"store,omitempty"`
	Mistakes []string `json:"mistakes"`
	Warnings []string `json:"warnings"`        // variables without effect, and what people often get wrong about such schedules
	Beats    []string `json:"beats,omitempty"` // what short leases cost
}

// validateCommand reads the settings itself, since its answer is what is wrong
// with them.
type validateCommand struct{ jsonFlag }

func (c *validateCommand) run(_ context.Context, p *Program) int {
	if !c.JSON {
		a, code := p.openOr(mode{checks: true})
		if code == exitOK {
			what := []string{format.Plural(len(a.Scheduler.Jobs), "job"), format.Plural(len(a.Scheduler.Singletons), "singleton")}
			if before := a.Before.Names(); before != nil {
				what = append(what, "before them "+strings.Join(before, ", "))
			}
			fmt.Fprintf(a.Console.Stdout, "ok: %s, app %s on %s\n", format.Join(what...), a.Settings.App, a.Place)
			for _, line := range a.Beats() {
				fmt.Fprintln(a.Console.Stdout, line)
			}
			for _, text := range app.ScheduleWarnings(a.Scheduler.Jobs, a.Now()) {
				fmt.Fprintf(a.Console.Stdout, "warning: %s\n", text)
			}
		}
		return code
	}
	a, err := p.open(mode{checks: true})
	v := verdict{OK: err == nil, App: a.Settings.App, Store: a.Place, Mistakes: []string{}, Warnings: append([]string{}, a.Strange...)}
	code := exitOK
	if err != nil {
		v.Mistakes, code = format.Lines(err), exitUsage
	} else {
		v.Beats, v.Warnings = a.Beats(), append(v.Warnings, app.ScheduleWarnings(a.Scheduler.Jobs, a.Now())...)
	}
	return max(code, printed(a.Console.JSON(v)))
}
