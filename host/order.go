package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/soloist-go/soloist/host/internal/app"
	"github.com/soloist-go/soloist/host/internal/format"
	"github.com/soloist-go/soloist/host/internal/past"
	"github.com/soloist-go/soloist/host/internal/view"
	"github.com/soloist-go/soloist/internal/desk"
	"github.com/soloist-go/soloist/internal/record"
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
	head
	Order   *record.Order `json:"order,omitempty"`   // as it was written
	Outcome *past.Run     `json:"outcome,omitempty"` // of run: what became of it
	Error   string        `json:"error,omitempty"`
}

// pauseCommand keeps a job from starting.
type pauseCommand struct {
	Job   string  `arg:"" name:"JOB" complete:"work" missing:"which job?" help:"the job or singleton"`
	Until *string `placeholder:"TIME" help:"when the pause ends by itself: a span from now on such as 2h, a date, or an instant; not given: resume ends it"`
	Yes   bool    `help:"do it, though another pause is in force: this one takes its place"`
	orderFlags
}

func (c *pauseCommand) do(ctx context.Context, a *app.App) int {
	until, err := readTime("pause: --until", c.Until, format.Clock{Now: a.Now()}.Later)
	if err != nil {
		return misused(a.Console, err)
	}
	before := ordersOf(ctx, a)
	for _, name := range a.Shards(c.Job) {
		if old := view.PauseReplaced(before.Jobs[name], a.Now()); old != "" && !c.Yes {
			return c.refused(a, name, fmt.Errorf("pause %s: %s: if that is meant, add --yes", name, old))
		}
	}
	return c.order(ctx, a, desk.Order{Kind: record.OrderPause, Job: c.Job, Until: until}, func(o record.Order) string {
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
}

// An orderCommand is an order with no flags but those of each order: resume, also for a job that has paused itself; cancel,
// which ends the run that is under way for good; and step-down, which hands it over to another replica.
type orderCommand struct {
	Job string `arg:"" name:"JOB" complete:"work" missing:"which job?" help:"the job or singleton"`
	orderFlags

	kind record.OrderKind
}

func (c *orderCommand) do(ctx context.Context, a *app.App) int {
	if c.kind == record.OrderResume && a.Paused(a.Shards(c.Job)[0]) {
		a.Console.Tell("resume %s: the settings here pause it too (Job.Paused, or SOLOIST_JOB_<NAME>_PAUSED). Where replicas have them, it stays paused", c.Job)
	}
	return c.order(ctx, a, desk.Order{Kind: c.kind, Job: c.Job}, func(o record.Order) string {
		switch by := format.Line(o.By); c.kind {
		case record.OrderResume:
			return fmt.Sprintf("resumed by %s; within %s every replica obeys", by, heeded)
		case record.OrderCancel:
			return fmt.Sprintf("its run is cancelled by %s: within %s its context ends, and its tick is not run again; a run that ignores its context goes on, and status shows it",
				by, heeded)
		default:
			return fmt.Sprintf("its run is to be handed over, by %s: within %s its replica begins to, as at a stop", by, heeded)
		}
	})
}

// order writes an order and prints it; for a job with shards, one for each shard.
func (f *orderFlags) order(ctx context.Context, a *app.App, o desk.Order, words func(record.Order) string) int {
	return eachShard(a, o.Job, func(name string) int {
		o.Job = name
		written, code := f.write(ctx, a, o)
		if code != exitOK {
			return code
		}
		text := words(written)
		return f.answer(a, exitOK, orderAnswer{head: newHead(a, name), Order: &written}, func() {
			fmt.Fprintf(a.Console.Stdout, "%s: %s\n", name, text)
		})
	})
}

// eachShard does the same for each shard of a job, or for the job. The code is the worst.
func eachShard(a *app.App, job string, do func(name string) int) (code int) {
	for _, name := range a.Shards(job) {
		code = max(code, do(name))
	}
	return code
}

// write writes an order. An error is printed, and the code returned.
func (f *orderFlags) write(ctx context.Context, a *app.App, o desk.Order) (record.Order, int) {
	if err := a.One(o.Job); err != nil {
		return record.Order{}, misused(a.Console, err)
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
	body := orderAnswer{head: newHead(a, job), Error: format.Error(err)}
	return f.answer(a, exitFail, body, func() { a.Console.Tell("%s", body.Error) })
}

// auditCommand shows who ordered what, and when: the last 100 orders.
type auditCommand struct {
	Job      string  `arg:"" optional:"" name:"JOB" complete:"work" help:"this job or singleton alone"`
	Limit    number  `short:"n" default:"20" help:"how many orders, 1 to 1000; the last 100 are kept"`
	Since    *string `placeholder:"TIME" help:"what was ordered since then: a span such as 24h or 7d, a date, today, yesterday, or an instant"`
	zoneFlag `embed:"" set:"unset=utc"`
	jsonFlag
}

// An auditAnswer is what audit prints in JSON.
type auditAnswer struct {
	head
	Orders []record.Order `json:"orders"` // newest first
}

func (c *auditCommand) do(ctx context.Context, a *app.App) int {
	times, wrongZone := c.read()
	since, err := readTime("--since", c.Since, times.clock(a, c.Job).Ago)
	if err = errors.Join(err, wrongZone); err != nil {
		err = fmt.Errorf("audit: %w", err)
	}
	if c.Job != "" {
		err = errors.Join(a.One(c.Job), err)
	}
	if err != nil {
		return misused(a.Console, err)
	}
	ctx, cancel := context.WithTimeout(ctx, statusTime)
	defer cancel()
	control, err := a.Control(ctx)
	if err != nil {
		a.Console.Tell("audit: %s", format.Error(err))
		return exitFail
	}
	orders := []record.Order{}
	for _, o := range control.Audit {
		if len(orders) < int(c.Limit) && (c.Job == "" || c.Job == o.Job) && !o.At.Before(since) {
			orders = append(orders, o)
		}
	}
	return c.answer(a, exitOK, auditAnswer{newHead(a, ""), orders}, func() { printOrders(a, orders, times) })
}

func printOrders(a *app.App, orders []record.Order, times zoning) {
	printHead(a, times)
	if len(orders) == 0 {
		fmt.Fprintln(a.Console.Stdout, "no orders")
		return
	}
	w := format.Table(a.Console.Stdout, "AT\tBY\tORDER\tJOB\tUNTIL\tREQUEST\tREASON")
	for _, o := range orders {
		clock := times.clock(a, o.Job)
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", clock.Stamp(o.At), format.Join(format.Line(o.By)), format.Line(string(o.Kind)), format.Line(o.Job),
			clock.Stamp(o.Until), format.Join(format.Line(o.Name)), format.Join(format.Line(o.Reason)))
	}
	w.Flush()
}
