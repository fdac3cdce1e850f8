package host

import (
	"context"
	"fmt"

	"github.com/soloist-go/soloist/host/internal/app"
	"github.com/soloist-go/soloist/host/internal/doctor"
)

// doctorCommand reads the settings itself, since the doctor looks at them first.
type doctorCommand struct{ jsonFlag }

func (c *doctorCommand) run(ctx context.Context, p *Program) int {
	a, wrong := p.open(mode{checks: true})
	o := doctor.Options{Hurry: p.hurry}
	if !c.JSON {
		o.Tell = func(f doctor.Finding) { printFinding(a.Console, f) }
	}
	d := doctor.Examine(ctx, a, wrong, o)
	code := exitOK
	switch {
	case wrong != nil:
		code = exitUsage
	case !d.OK:
		code = exitFail
	}
	if !c.JSON {
		return code
	}
	return max(code, printed(a.Console.JSON(d)))
}

func printFinding(c app.Console, f doctor.Finding) {
	if f.Advice != "" {
		f.Text += ": " + f.Advice
	}
	fmt.Fprintf(c.Stdout, "%-4s  %-11s  %s\n", f.Result, f.Check, f.Text)
}
