package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host/internal/app"
	"github.com/soloist-go/soloist/host/internal/format"
	"github.com/soloist-go/soloist/host/internal/past"
	"github.com/soloist-go/soloist/host/internal/view"
	"github.com/soloist-go/soloist/store"
)

// Orders of an operator go into the store, where replicas read them. So these
// commands work from any machine that may write to the storage, whether replicas are
// up or not.

// heeded is how long it takes at most until each replica that is up obeys an order.
const heeded = 8 * time.Second

// orderFlags are embedded by each command that orders something.
type orderFlags struct {
	Reason string `placeholder:"TEXT" help:"why; it is kept with the order, and shown"`
	By     string `placeholder:"NAME" help:"who orders it; not given: SOLOIST_BY, else USER@MACHINE"`
	jsonFlag
}

// An orderAnswer is what these commands print in JSON.
type orderAnswer struct {
	App     string       `json:"app"`
	Store   string       `json:"store"`
	Time    time.Time    `json:"time"`
	Job     string       `json:"job"`
	Order   *store.Order `json:"order,omitempty"`   // as it was written
	Outcome *past.Run    `json:"outcome,omitempty"` // of run: what became of it
	Error   string       `json:"error,omitempty"`
}

// pauseCommand keeps a job from starting.
type pauseCommand struct {
	Job   string  `arg:"" name:"JOB" complete:"work" missing:"which job?" help:"the job or singleton"`
	Until *string `placeholder:"TIME" help:"when the pause ends by itself: a span from now on such as 2h, a date, or an instant; not given: resume ends it"`
	orderFlags
}

func (c *pauseCommand) run(ctx context.Context, p *Program) int {
	return p.with(mode{}, func(a *app.App) int {
		o := soloist.Order{Kind: store.OrderPause, Job: c.Job}
		if c.Until != nil {
			var err error
			if o.Until, err = format.Later(*c.Until, a.Now()); err != nil {
				a.Console.Tell("pause: --until is %.70q: %v", *c.Until, err)
				return exitUsage
			}
		}
		before := ordersOf(ctx, a)
		return c.order(ctx, a, o, func(o store.Order) string {
			if old := view.PauseReplaced(before.Jobs[o.Job], a.Now()); old != "" {
				a.Console.Tell("pause %s: %s", o.Job, old)
			}
			end := "until " + a.Console.Name + " resume " + c.Job
			if !o.Until.IsZero() {
				end = "until " + format.Stamp(o.Until) + ", " + format.Relative(o.Until, a.Now())
			}
			return fmt.Sprintf("paused by %s %s: its ticks are skipped; within %s every replica obeys; a run that is under way goes on, and %s cancel %s ends it",
				format.Line(o.By), end, heeded, a.Console.Name, c.Job)
		})
	})
}

// resumeCommand ends a pause, also one of a job that has paused itself.
type resumeCommand struct {
	Job string `arg:"" name:"JOB" complete:"work" missing:"which job?" help:"the job or singleton"`
	orderFlags
}

func (c *resumeCommand) run(ctx context.Context, p *Program) int {
	return p.with(mode{}, func(a *app.App) int {
		if a.Paused(a.Shards(c.Job)[0]) {
			a.Console.Tell("resume %s: the settings here pause it too (Job.Paused, or SOLOIST_JOB_<NAME>_PAUSED). Where replicas have them, it stays paused", c.Job)
		}
		return c.order(ctx, a, soloist.Order{Kind: store.OrderResume, Job: c.Job}, func(o store.Order) string {
			return fmt.Sprintf("resumed by %s; within %s every replica obeys", format.Line(o.By), heeded)
		})
	})
}

// cancelCommand ends the run that is under way, for good.
type cancelCommand struct {
	Job string `arg:"" name:"JOB" complete:"work" missing:"which job?" help:"the job or singleton"`
	orderFlags
}

func (c *cancelCommand) run(ctx context.Context, p *Program) int {
	return p.with(mode{}, func(a *app.App) int {
		return c.order(ctx, a, soloist.Order{Kind: store.OrderCancel, Job: c.Job}, func(o store.Order) string {
			return fmt.Sprintf("its run is cancelled by %s: within %s its context ends, and its tick is not run again; a run that ignores its context goes on, and status shows it",
				format.Line(o.By), heeded)
		})
	})
}

// stepDownCommand hands a run over to another replica.
type stepDownCommand struct {
	Job string `arg:"" name:"JOB" complete:"work" missing:"which job?" help:"the job or singleton"`
	orderFlags
}

func (c *stepDownCommand) run(ctx context.Context, p *Program) int {
	return p.with(mode{}, func(a *app.App) int {
		return c.order(ctx, a, soloist.Order{Kind: store.OrderStepDown, Job: c.Job}, func(o store.Order) string {
			return fmt.Sprintf("its run is to be handed over, by %s: within %s its replica begins to, as at a stop", format.Line(o.By), heeded)
		})
	})
}

// order writes an order and prints it; for a job with shards, one for each shard.
func (f *orderFlags) order(ctx context.Context, a *app.App, o soloist.Order, words func(store.Order) string) (code int) {
	for _, name := range a.Shards(o.Job) {
		o.Job = name
		code = max(code, f.orderOne(ctx, a, o, words))
	}
	return code
}

// orderOne writes one order and prints it.
func (f *orderFlags) orderOne(ctx context.Context, a *app.App, o soloist.Order, words func(store.Order) string) int {
	written, code := f.write(ctx, a, o)
	if code != exitOK {
		return code
	}
	text := words(written)
	if f.JSON {
		body := newOrderAnswer(a, o.Job)
		body.Order = &written
		return printed(a.Console.JSON(body))
	}
	fmt.Fprintf(a.Console.Stdout, "%s: %s\n", o.Job, text)
	return exitOK
}

// write writes an order. An error is printed, and the code returned.
func (f *orderFlags) write(ctx context.Context, a *app.App, o soloist.Order) (store.Order, int) {
	if err := a.One(o.Job); err != nil {
		a.Console.Tell("%v", err)
		return store.Order{}, exitUsage
	}
	ctx, cancel := context.WithTimeout(ctx, statusTime)
	defer cancel()
	o.By, o.Reason = cmp.Or(f.By, a.Settings.By, operator()), f.Reason
	written, err := a.Order(ctx, o)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%s %s: there is no record of it in %s, so no replica has ever started it: check SOLOIST_APP (it is %s), SOLOIST_CONTAINER and SOLOIST_STORAGE", o.Kind, o.Job, a.Place, a.Settings.App)
	}
	if err != nil {
		return written, f.refused(a, o.Job, err)
	}
	return written, exitOK
}

// refused prints why an order is not carried out.
func (f *orderFlags) refused(a *app.App, job string, err error) int {
	if !f.JSON {
		a.Console.Tell("%s", format.Line(err.Error()))
		return exitFail
	}
	body := newOrderAnswer(a, job)
	body.Error = format.Line(err.Error())
	a.Console.JSON(body)
	return exitFail
}

func newOrderAnswer(a *app.App, job string) orderAnswer {
	return orderAnswer{App: a.Settings.App, Store: a.Place, Time: format.UTC(a.Now()), Job: job}
}

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
