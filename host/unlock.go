package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/store"
)

// unlock ends the lease of a job, whichever replica has it. It asks the store
// alone: no replica has to be up. That no replica has the lease is what was
// wanted, and no failure. Where a run loses its lease by this, its process may
// end: then it tells so first, and wants --yes. Where the app has no record at
// all, it has probably looked in the wrong place, which is a failure.
func unlock(ctx context.Context, a *app, given arguments) int {
	if err := a.unlockable(given.job); err != nil {
		fmt.Fprintf(a.Stderr, "%s: %v\n", a.Name, err)
		return exitUsage
	}
	ctx, cancel := context.WithTimeout(ctx, statusTime)
	defer cancel()
	all, err := a.sched.Status(ctx)
	if err != nil {
		return a.notUnlocked(given.job, err)
	}
	st, err := statusOf(all, given.job)
	if err != nil {
		return a.notUnlocked(given.job, err)
	}
	if lines := a.absence(ctx, all); lines != nil {
		return a.printAbsence(lines)
	}
	l := a.lock(st)
	if !st.Lease.Live() {
		return a.unlocked(l)
	}
	if l.runs() && !given.yes {
		fmt.Fprintf(a.Stderr, "%s: unlock %s: %s\nNothing is done yet. To unlock it: %s unlock %s --yes\n", a.Name, l.Name, l.cost(a.Now()), a.Name, given.unlocking())
		return exitUsage
	}
	if given.now {
		fmt.Fprintf(a.Stderr, "%s: unlock --now: %s\n", a.Name, l.warning())
	}
	err = a.sched.Unlock(ctx, given.job, given.now)
	switch {
	case errors.Is(err, soloist.ErrUntold):
		fmt.Fprintf(a.Stderr, "%s: unlock %s: %s\n", a.Name, given.job, line(err.Error()))
	case errors.Is(err, store.ErrLost), errors.Is(err, fs.ErrNotExist): // it was given back just now
		l.state = store.Available
		return a.unlocked(l)
	case err != nil:
		return a.notUnlocked(given.job, err)
	}
	a.printUnlocked(l, given.now)
	return exitOK
}

// operator is who calls this program.
func operator() string {
	name := cmp.Or(os.Getenv("USER"), os.Getenv("USERNAME"), "unknown")
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	machine, err := os.Hostname()
	if err != nil {
		machine = "unknown"
	}
	return name + "@" + machine
}

// unlocking is what was asked for, as arguments.
func (g *arguments) unlocking() string {
	if g.now {
		return g.job + " --now"
	}
	return g.job
}

func (a *app) unlockable(job string) error {
	if err := known(job, a.all()); err != nil {
		return err
	}
	if a.everywhere(job) {
		return errors.New(onEach(job))
	}
	return nil
}

// statusOf picks one job. A record that makes no sense has a lease all the same.
func statusOf(all []soloist.JobStatus, job string) (soloist.JobStatus, error) {
	for _, st := range all {
		switch {
		case st.Name != job:
		case reached(st):
			return st, nil
		default:
			return st, st.Err
		}
	}
	return soloist.JobStatus{}, fs.ErrNotExist
}

func (a *app) notUnlocked(job string, err error) int {
	fmt.Fprintf(a.Stderr, "%s: unlock %s: %s\n", a.Name, job, line(err.Error()))
	return exitFail
}

// A lock is a lease as unlock found it.
type lock struct {
	view
	state  store.LeaseState // empty: there is no entry
	length time.Duration
	sure   bool // its holder has claimed nothing, so that nothing can still go on
}

func (a *app) lock(st soloist.JobStatus) lock {
	return lock{view: a.view(st), state: st.Lease,
		length: cmp.Or(time.Duration(st.Record.Lease), a.leaseOf(st.Name)),
		sure:   st.Err == nil && !mayRun(&st.Record)}
}

// holder is who has the lease.
func (l lock) holder() string {
	switch {
	case l.sure:
		return "a replica that has claimed nothing"
	case l.State == waiting:
		return "a replica that waits after an earlier unlock"
	case l.Error != "":
		return "a replica that is not known, since the record cannot be read"
	}
	return line(l.Replica)
}

// runs reports whether the holder may be running the job.
func (l lock) runs() bool { return !l.sure && l.State != waiting }

// cost is what an unlock of a job that runs may cost.
func (l lock) cost(now time.Time) string {
	text := l.holder() + " may run it"
	if l.Error == "" {
		text = l.holder() + " runs it since " + roughly(now.Sub(l.Claimed))
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

// unlocked says that there was nothing to do.
func (a *app) unlocked(l lock) int {
	why := "it is " + string(l.state)
	if l.state == "" {
		why = "there is no record yet"
	}
	fmt.Fprintf(a.Stdout, "%s: nobody has a lease: %s\n", l.Name, why)
	return exitOK
}

// printUnlocked tells what the lease was, and when it matters no more.
func (a *app) printUnlocked(l lock, now bool) {
	at := a.Now()
	fmt.Fprintf(a.Stdout, "%s: the lease was %s, held by %s\n", l.Name, l.state, l.holder())
	if !l.sure {
		fmt.Fprintf(a.Stdout, "state: %s\n", l.StateWords(at))
	}
	end := at
	if now {
		fmt.Fprintln(a.Stdout, "lease: ended now")
	} else {
		end = end.Add(l.length)
		fmt.Fprintf(a.Stdout, "lease: it cannot be renewed any more, which its holder notices within %s; it ends by %s, %s\n",
			l.notice(), stamp(end), relative(end, at))
	}
	switch {
	case !l.sure:
		end = end.Add(l.length)
		fmt.Fprintf(a.Stdout, "next: another replica can run it from about %s on, %s; one that starts later, %s after its start\n", stamp(end), relative(end, at), l.length)
	case now:
		fmt.Fprintln(a.Stdout, "next: another replica can run it now")
	default:
		fmt.Fprintln(a.Stdout, "next: another replica can run it from then on")
	}
}
