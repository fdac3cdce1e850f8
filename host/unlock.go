package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host/internal/app"
	"github.com/soloist-go/soloist/host/internal/format"
	"github.com/soloist-go/soloist/host/internal/view"
	"github.com/soloist-go/soloist/store"
)

// unlockCommand ends the lease of a job, whichever replica has it. It asks the store
// alone: no replica has to be up. That no replica has the lease is what was
// wanted, and no failure. A run that loses its lease by this may end its process, so
// it first shows who has the lease, and wants --yes. Where the app has no record at
// all, it has probably looked in the wrong place, which is a failure.
type unlockCommand struct {
	Job string `arg:"" name:"JOB" complete:"work" missing:"of which job?" help:"the job or singleton"`
	Now bool   `help:"end the lease at once, while its holder may still work"`
	Yes bool   `help:"do it, though a replica has the lease: its run loses it"`
	jsonFlag
}

// An unlocking is what unlock prints in JSON.
type unlocking struct {
	App      string           `json:"app"`
	Store    string           `json:"store"`
	Time     time.Time        `json:"time"`
	Job      string           `json:"job"`
	Unlocked bool             `json:"unlocked"`          // its lease was ended, or will end
	Lease    store.LeaseState `json:"lease,omitempty"`   // as it was found
	Replica  string           `json:"replica,omitempty"` // that runs the job by the record
	Ends     time.Time        `json:"ends,omitzero"`     // when the lease ends at the latest
	Next     time.Time        `json:"next,omitzero"`     // about when another replica can run the job
	Error    string           `json:"error,omitempty"`   // why it is not unlocked
}

func (c *unlockCommand) run(ctx context.Context, p *Program) int {
	return p.with(mode{byOperator: true}, func(a *app.App) int { return c.unlock(ctx, a) })
}

func (c *unlockCommand) unlock(ctx context.Context, a *app.App) int {
	if err := unlockable(a, c.Job); err != nil {
		a.Console.Tell("%v", err)
		return exitUsage
	}
	ctx, cancel := context.WithTimeout(ctx, statusTime)
	defer cancel()
	all, err := a.Scheduler.Status(ctx)
	if err != nil {
		return c.failed(a, format.Line(err.Error()))
	}
	st, err := statusOf(all, c.Job)
	if err != nil {
		return c.failed(a, format.Line(err.Error()))
	}
	if lines := absence(a, ctx, all); lines != nil {
		if c.JSON {
			return c.failed(a, strings.Join(lines, "; "))
		}
		return printAbsence(a, lines)
	}
	l := lockOf(a, st)
	if !st.Lease.Live() {
		return c.free(a, l)
	}
	if !c.Yes {
		c.failed(a, fmt.Sprintf("%s\nNothing is done yet. To unlock it: %s unlock %s --yes", l.cost(a.Now()), a.Console.Name, c.again()))
		return exitUsage
	}
	if c.Now {
		a.Console.Tell("unlock --now: %s", l.warning())
	}
	err = a.Scheduler.Unlock(ctx, c.Job, c.Now)
	switch {
	case errors.Is(err, soloist.ErrUntold):
		a.Console.Tell("unlock %s: %s", c.Job, format.Line(err.Error()))
	case errors.Is(err, store.ErrLost), errors.Is(err, fs.ErrNotExist): // it was given back just now
		l.state = store.Available
		return c.free(a, l)
	case err != nil:
		return c.failed(a, format.Line(err.Error()))
	}
	return c.done(a, l)
}

func unlockable(a *app.App, job string) error {
	if err := a.One(job); err != nil {
		return err
	}
	if a.EveryReplica(job) {
		return errors.New(app.WithoutLease(job))
	}
	return nil
}

// statusOf picks one job. A record that makes no sense still has a lease.
func statusOf(all []soloist.JobStatus, job string) (soloist.JobStatus, error) {
	for _, st := range all {
		switch {
		case st.Name != job:
		case view.Reached(st):
			return st, nil
		default:
			return st, st.Err
		}
	}
	return soloist.JobStatus{}, fs.ErrNotExist
}

// answer is what every outcome prints in JSON.
func (c *unlockCommand) answer(a *app.App) unlocking {
	return unlocking{App: a.Settings.App, Store: a.Place, Time: format.UTC(a.Now()), Job: c.Job}
}

// failed prints why the job is not unlocked.
func (c *unlockCommand) failed(a *app.App, why string) int {
	if !c.JSON {
		a.Console.Tell("unlock %s: %s", c.Job, why)
		return exitFail
	}
	body := c.answer(a)
	body.Error = strings.ReplaceAll(why, "\n", ". ")
	a.Console.JSON(body)
	return exitFail
}

// A lock is a lease as unlock found it.
type lock struct {
	job    view.Job
	state  store.LeaseState // empty: there is no entry
	length time.Duration
	sure   bool // its holder has claimed nothing, so that nothing can still go on
}

func lockOf(a *app.App, st soloist.JobStatus) lock {
	return lock{job: view.Of(a, st), state: st.Lease,
		length: cmp.Or(time.Duration(st.Record.Run.Lease), a.LeaseOf(st.Name)),
		sure:   st.Err == nil && !st.Record.MayRun()}
}

// holder is who has the lease.
func (l lock) holder() string {
	switch {
	case l.sure:
		return "a replica that has claimed nothing"
	case l.job.State == view.Waiting:
		return "a replica that waits after an earlier unlock"
	case l.job.Error != "":
		return "a replica that is not known, since the record cannot be read"
	}
	return format.Line(l.job.Replica)
}

// cost is what an unlock may cost. Also a holder that has claimed nothing may do so at any moment.
func (l lock) cost(now time.Time) string {
	text := l.holder() + " may run it"
	if l.job.Error == "" && !l.sure && l.job.State != view.Waiting {
		text = l.holder() + " runs it since " + format.Roughly(now.Sub(l.job.Claimed))
	}
	return fmt.Sprintf("%s. The run loses its lease: its context ends within %s. If the run does not return within %s after that, its process exits with code %d, %d in Functions, and its other jobs end too",
		text, l.notice(), (l.length / 6).Round(100*time.Millisecond), exitOverrun, exitRestart)
}

func (l lock) warning() string {
	if l.sure {
		return "its holder is " + l.holder()
	}
	return fmt.Sprintf("%s may still work until it notices, up to %s, a third of its lease; the next holder waits for %s, one lease, before it does anything",
		l.holder(), l.notice(), l.length)
}

// notice is how long the holder does not know: until its next renewal.
func (l lock) notice() time.Duration { return (l.length / 3).Round(100 * time.Millisecond) }

// free says that there was nothing to do.
func (c *unlockCommand) free(a *app.App, l lock) int {
	if c.JSON {
		body := c.answer(a)
		body.Lease = l.state
		return printed(a.Console.JSON(body))
	}
	why := "it is " + string(l.state)
	if l.state == "" {
		why = "there is no record yet"
	}
	fmt.Fprintf(a.Console.Stdout, "%s: nobody has a lease: %s\n", l.job.Name, why)
	return exitOK
}

// ends is when the lease that was ended is over, and about when another replica
// can run the job.
func (l lock) ends(at time.Time, now bool) (end, next time.Time) {
	end = at
	if !now {
		end = at.Add(l.length)
	}
	if l.sure {
		return end, end
	}
	return end, end.Add(l.length)
}

// done prints what was ended.
func (c *unlockCommand) done(a *app.App, l lock) int {
	if !c.JSON {
		printUnlocked(a, l, c.Now)
		return exitOK
	}
	body, at := c.answer(a), a.Now()
	body.Unlocked, body.Lease, body.Replica = true, l.state, l.job.Replica
	end, next := l.ends(at, c.Now)
	body.Ends, body.Next = format.UTC(end), format.UTC(next)
	return printed(a.Console.JSON(body))
}

// printUnlocked prints what the lease was, and when it matters no more.
func printUnlocked(a *app.App, l lock, now bool) {
	at := a.Now()
	fmt.Fprintf(a.Console.Stdout, "%s: the lease was %s, held by %s\n", l.job.Name, l.state, l.holder())
	if !l.sure {
		fmt.Fprintf(a.Console.Stdout, "state: %s\n", l.job.StateWords(at))
	}
	end, next := l.ends(at, now)
	if now {
		fmt.Fprintln(a.Console.Stdout, "lease: ended now")
	} else {
		fmt.Fprintf(a.Console.Stdout, "lease: it cannot be renewed any more, which its holder notices within %s; it ends by %s, %s\n",
			l.notice(), format.Stamp(end), format.Relative(end, at))
	}
	switch {
	case !l.sure:
		fmt.Fprintf(a.Console.Stdout, "next: another replica can run it from about %s on, %s; one that starts later, %s after its start\n", format.Stamp(next), format.Relative(next, at), l.length)
	case now:
		fmt.Fprintln(a.Console.Stdout, "next: another replica can run it now")
	default:
		fmt.Fprintln(a.Console.Stdout, "next: another replica can run it from then on")
	}
}

// again is what was asked for, as arguments.
func (c *unlockCommand) again() string {
	if c.Now {
		return c.Job + " --now"
	}
	return c.Job
}
