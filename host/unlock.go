package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host/internal/app"
	"github.com/soloist-go/soloist/host/internal/format"
	"github.com/soloist-go/soloist/host/internal/view"
	"github.com/soloist-go/soloist/internal/desk"
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
	head
	Unlocked bool             `json:"unlocked"`          // its lease was ended, or will end
	Lease    store.LeaseState `json:"lease,omitempty"`   // as it was found
	Replica  string           `json:"replica,omitempty"` // that runs the job by the record
	Ends     time.Time        `json:"ends,omitzero"`     // when the lease ends at the latest
	Next     time.Time        `json:"next,omitzero"`     // about when another replica can run the job
	Error    string           `json:"error,omitempty"`   // why it is not unlocked
}

func (*unlockCommand) mode() mode { return mode{byOperator: true} }

func (c *unlockCommand) do(ctx context.Context, a *app.App) int {
	err := a.One(c.Job)
	if err == nil && a.EveryReplica(c.Job) {
		err = errors.New(app.WithoutLease(c.Job))
	}
	if err != nil {
		return misused(a.Console, err)
	}
	ctx, cancel := context.WithTimeout(ctx, statusTime)
	defer cancel()
	all := a.Statuses(ctx)
	st := all[slices.IndexFunc(all, func(st desk.Status) bool { return st.Name == c.Job })]
	if !view.Reached(st) { // where it is, a record that makes no sense still has a lease
		return c.failed(a, format.Error(st.Err))
	}
	if lines := absence(a, ctx, all); lines != nil {
		return c.absent(a, lines, unlocking{head: newHead(a, c.Job), Error: strings.Join(lines, "; ")})
	}
	l := lockOf(a, st)
	if !st.Lease.Live() {
		return c.free(a, l)
	}
	if !c.Yes {
		again := c.Job
		if c.Now {
			again += " --now"
		}
		c.failed(a, fmt.Sprintf("%s\nNothing is done yet. To unlock it: %s unlock %s --yes", l.cost(a.Now()), a.Console.Name, again))
		return exitUsage
	}
	if c.Now {
		a.Console.Tell("unlock --now: %s", l.warning())
	}
	err = a.Scheduler.Unlock(ctx, c.Job, c.Now)
	switch {
	case errors.Is(err, soloist.ErrUntold):
		a.Console.Tell("unlock %s: %s", c.Job, format.Error(err))
	case errors.Is(err, store.ErrLost), errors.Is(err, fs.ErrNotExist): // it was given back just now
		l.state = store.Available
		return c.free(a, l)
	case err != nil:
		return c.failed(a, format.Error(err))
	}
	end, next := l.ends(a.Now(), c.Now)
	body := unlocking{newHead(a, c.Job), true, l.state, l.job.Replica, format.UTC(end), format.UTC(next), ""}
	return c.answer(a, exitOK, body, func() { printUnlocked(a, l, c.Now) })
}

// failed prints why the job is not unlocked.
func (c *unlockCommand) failed(a *app.App, why string) int {
	body := unlocking{head: newHead(a, c.Job), Error: strings.ReplaceAll(why, "\n", ". ")}
	return c.answer(a, exitFail, body, func() { a.Console.Tell("unlock %s: %s", c.Job, why) })
}

// A lock is a lease as unlock found it.
type lock struct {
	job    view.Job
	state  store.LeaseState // empty: there is no entry
	length time.Duration
	sure   bool // its holder has claimed nothing, so that nothing can still go on
}

func lockOf(a *app.App, st desk.Status) lock {
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
	return c.answer(a, exitOK, unlocking{head: newHead(a, c.Job), Lease: l.state}, func() {
		why := "it is " + string(l.state)
		if l.state == "" {
			why = "there is no record yet"
		}
		fmt.Fprintf(a.Console.Stdout, "%s: nobody has a lease: %s\n", l.job.Name, why)
	})
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

// printUnlocked prints what the lease was, and when it matters no more.
func printUnlocked(a *app.App, l lock, now bool) {
	at := a.Now()
	fmt.Fprintf(a.Console.Stdout, "%s: the lease was %s, held by %s\n", l.job.Name, l.state, l.holder())
	if !l.sure {
		fmt.Fprintf(a.Console.Stdout, "state: %s\n", l.job.StateWords(format.Clock{Now: at}))
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
