package host

import (
	"context"
	"fmt"
	"time"

	"github.com/soloist-go/soloist/host/internal/app"
	"github.com/soloist-go/soloist/host/internal/format"
	"github.com/soloist-go/soloist/store"
)

// auditCommand shows who ordered what, and when: the last 100 orders.
type auditCommand struct {
	Job   string  `arg:"" optional:"" name:"JOB" complete:"work" help:"this job or singleton alone"`
	Limit number  `short:"n" default:"20" help:"how many orders, 1 to 1000; the last 100 are kept"`
	Since *string `placeholder:"TIME" help:"what was ordered since then: a span such as 24h or 7d, a date, or an instant"`
	jsonFlag
}

// An auditAnswer is what audit prints in JSON.
type auditAnswer struct {
	App    string        `json:"app"`
	Store  string        `json:"store"`
	Time   time.Time     `json:"time"`
	Orders []store.Order `json:"orders"` // newest first
}

func (c *auditCommand) run(ctx context.Context, p *Program) int {
	return p.with(mode{}, func(a *app.App) int { return c.show(ctx, a) })
}

func (c *auditCommand) show(ctx context.Context, a *app.App) int {
	since, err := c.check(a)
	if err != nil {
		a.Console.Tell("%v", err)
		return exitUsage
	}
	ctx, cancel := context.WithTimeout(ctx, statusTime)
	defer cancel()
	control, err := a.Scheduler.Control(ctx)
	if err != nil {
		a.Console.Tell("audit: %s", format.Line(err.Error()))
		return exitFail
	}
	orders := []store.Order{}
	for _, o := range control.Audit {
		if len(orders) < int(c.Limit) && (c.Job == "" || c.Job == o.Job) && !o.At.Before(since) {
			orders = append(orders, o)
		}
	}
	if c.JSON {
		return printed(a.Console.JSON(auditAnswer{App: a.Settings.App, Store: a.Place, Time: format.UTC(a.Now()), Orders: orders}))
	}
	printOrders(a, orders)
	return exitOK
}

// check reads the arguments.
func (c *auditCommand) check(a *app.App) (since time.Time, err error) {
	if err := checkLimit(c.Limit); err != nil {
		return since, fmt.Errorf("audit: %w", err)
	}
	if c.Job != "" {
		if err := a.One(c.Job); err != nil {
			return since, err
		}
	}
	if c.Since != nil {
		if since, err = format.Ago(*c.Since, a.Now()); err != nil {
			return since, fmt.Errorf("audit: --since is %.70q: %w", *c.Since, err)
		}
	}
	return since, nil
}

func printOrders(a *app.App, orders []store.Order) {
	fmt.Fprintf(a.Console.Stdout, "app %s on %s, %s\n\n", a.Settings.App, a.Place, format.Stamp(a.Now()))
	if len(orders) == 0 {
		fmt.Fprintln(a.Console.Stdout, "no orders")
		return
	}
	w := format.Table(a.Console.Stdout, "AT\tBY\tORDER\tJOB\tUNTIL\tREQUEST\tREASON")
	for _, o := range orders {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", format.Stamp(o.At), format.Join(format.Line(o.By)), format.Line(string(o.Kind)), format.Line(o.Job),
			format.Stamp(o.Until), format.Join(format.Line(o.Name)), format.Join(format.Line(o.Reason)))
	}
	w.Flush()
}
