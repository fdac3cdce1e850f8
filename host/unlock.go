package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/soloist-go/soloist"
)

// unlock ends the lease of whoever has it. It asks the store alone: no replica
// has to be up. That nobody has a lease is what was wanted, and no failure.
func unlock(ctx context.Context, a *app, given arguments) int {
	if err := a.unlockable(given.job); err != nil {
		fmt.Fprintf(a.Stderr, "%s: %v\n", a.Name, err)
		return exitUsage
	}
	ctx, cancel := context.WithTimeout(ctx, statusTime)
	defer cancel()
	st, err := a.statusOf(ctx, given.job)
	if err != nil {
		return a.notUnlocked(given.job, err)
	}
	l := a.lock(st)
	if !st.Lease.Live() {
		return a.unlocked(l)
	}
	if given.now {
		fmt.Fprintf(a.Stderr, "%s: unlock --now: %s\n", a.Name, l.warning())
	}
	err = a.sched.Unlock(ctx, given.job, given.now)
	switch {
	case errors.Is(err, soloist.ErrLost), errors.Is(err, fs.ErrNotExist): // it was given back just now
		l.state = soloist.Available
		return a.unlocked(l)
	case err != nil:
		return a.notUnlocked(given.job, err)
	}
	a.printUnlocked(l, given.now)
	return exitOK
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

// statusOf reads one record. One that makes no sense has a lease all the same.
func (a *app) statusOf(ctx context.Context, job string) (soloist.JobStatus, error) {
	all, err := a.sched.Status(ctx)
	if err != nil {
		return soloist.JobStatus{}, err
	}
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
	state  soloist.LeaseState // empty: there is no entry
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
	case l.Error != "":
		return "a replica that is not known, since the record cannot be read"
	case l.sure:
		return "a replica that has claimed nothing"
	}
	return line(l.Holder)
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
