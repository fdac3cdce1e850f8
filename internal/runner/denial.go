package runner

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/internal/instant"
	"github.com/soloist-go/soloist/internal/lease"
	"github.com/soloist-go/soloist/internal/plan"
	"github.com/soloist-go/soloist/store"
)

// A denial is why this replica can lease the entry and not write it. It outlives the
// attempt: a replica that acquired the lease again at once, for nothing, would keep
// it from replicas that can write.
type denial struct {
	err    error          // nil: the last write succeeded, or none was tried
	etag   string         // of the record when the write failed; another one shows that some replica can write
	pause  *lease.Backoff // until this replica tries again
	writes int            // writes of this process that had succeeded by then
	until  time.Time      // monotonic: the end of that pause, or of the first one in doubt
	left   unanswered     // what this replica may have left at the entry

	unproved bool      // a claim or acquisition here failed or got no clear answer, and no write has succeeded since
	gaveWay  bool      // the others have had their head start for what is due
	tried    time.Time // the tick before which the last such acquisition was sent; zero: it was sent at the tick itself
}

// lift forgets why this replica could not write.
func (d *denial) lift() {
	d.err, d.unproved = nil, false
	d.pause.Reset()
}

// mayWrite notes that a write of this replica has succeeded, also for the loop if this is a manual run in parallel.
func (r *Runner) mayWrite() {
	r.denial.lift()
	r.source.state.set(func(n *snapshot) { n.writes++ })
}

// lasting reports whether the cause does not pass by itself: this replica may not
// write, or the record is too large.
func (d *denial) lasting() bool {
	return errors.Is(d.err, fs.ErrPermission) || errors.Is(d.err, lease.ErrNotEncoded)
}

// bars reports whether this replica does nothing before a tick, since it cannot write. It
// tries again now and then.
func (d *denial) bars(now time.Time) bool { return d.err != nil && now.Before(d.until) }

// A deniedError says that this replica can lease an entry and not write it, as with a
// role that lacks the right to write. Without this pause such a replica would lease the
// entry again and again, and other replicas would find it leased.
type deniedError struct{ err error }

func (e *deniedError) Unwrap() error { return e.err }

// Error says what the operator can do, which depends on the cause.
func (e *deniedError) Error() string {
	what, advice := "not write it", "see why the store fails writes"
	switch {
	case errors.Is(e.err, errAcquisition):
		what, advice = "gets no answer", "see what loses answers between it and the store"
	case errors.Is(e.err, lease.ErrNotEncoded):
		advice = "shorten the record"
	case errors.Is(e.err, fs.ErrPermission):
		advice = "grant it write access"
	}
	return fmt.Sprintf("this replica can lease the entry and %s: it leaves the job to other replicas and tries again within a minute of each failure: %s: %v", what, advice, e.err)
}

// standBack leaves the job to other replicas for a while, after a write that failed.
// A successful read does not end that: the credentials may be read-only. Only a write
// that succeeds does; see mayWrite and forgive.
func (r *Runner) standBack(err error) time.Duration {
	r.denial.err, r.denial.etag, r.denial.unproved = &deniedError{err}, r.view.etag, true
	r.denial.writes = r.source.state.get().writes
	r.note(r.denial.err)
	pause := r.denial.pause.Next()
	r.denial.until = time.Now().Add(pause)
	return r.readAgain(pause)
}

// forgive forgets a failed write once the record has been written since: the store
// takes writes again, and this replica may have nothing to write for long. It does not
// forget a missing permission or a record that is too large, which concern this replica
// however well others can write; a write of this replica since, by whichever runner, shows that they have passed too.
func (r *Runner) forgive() {
	switch d := &r.denial; {
	case r.source.state.get().writes != d.writes:
		d.lift()
	case !d.lasting() && r.view.etag != d.etag:
		d.err = nil
	}
}

// headStart is how long a replica waits before it acquires again after a stall, so that
// another one, where the task may not hang, gets the lease first; and before it acquires
// while it does not know whether its own writes arrive; see giveWay. The others
// poll every 100 ms by then, since the record said Stopping.
const headStart = 1500 * time.Millisecond

// headStart returns how long this replica waits for others. A tick must not miss its starting
// deadline for that, which is Lease under SkipMissed: there may be no other replica.
func (b *base) headStart() time.Duration {
	d := b.job.Policy.Lease
	if own := b.job.Policy.Late.Start; own > 0 {
		d = min(d, own)
	}
	return min(headStart, d/2)
}

// doubt notes that a call of this replica got no clear answer. It finds out in a minute at the
// soonest whether its writes arrive, if it has written nothing until then.
func (d *denial) doubt() {
	if !d.unproved {
		d.unproved, d.until = true, instant.Later(d.until, time.Now().Add(plan.LookEvery))
	}
}

// giveWay returns for how long the others get a head start for what is due; zero: they have
// had it. After a claim or an acquisition that failed, or got no clear answer, this replica may
// be one whose writes never arrive: it would win half of the races for a tick, and hold the
// lease in vain each time. Its own writes alone prove that they arrive.
func (d *driver) giveWay(v *plan.View) time.Duration {
	own := &d.denial
	if own.gaveWay = own.unproved && !own.gaveWay; own.gaveWay {
		return d.headStart()
	}
	if !own.unproved || d.bounded || !d.mayActAhead() || d.Singleton() {
		return 0
	}
	wait := d.untilLooked(v)
	own.gaveWay = wait > 0
	return wait
}

// untilLooked returns how long it takes until the others have looked before the next tick, if that
// is near: to hold the lease in vain while they look would cost them what is due, and that tick.
func (r *Runner) untilLooked(v *plan.View) time.Duration {
	p := &r.job.Policy
	next := p.Ticks.Next(v.Now)
	wait := next.Sub(v.Now) - r.lastOfAll()
	if next.IsZero() || wait <= 0 || r.room(next, v.Now) > 0 {
		return 0
	}
	if !r.denial.lasting() && p.TooLate(v.Now.Add(wait).Sub(p.Ticks.Last(v.Now))) { // there may be no others
		return 0
	}
	return wait
}

// room returns how much time a replica that may not be able to write has for a write in vain, so that
// it is over before the others look; zero or less: the next tick is too near.
func (b *base) room(next, now time.Time) time.Duration {
	p, left := &b.job.Policy, next.Sub(now)
	room := left - p.Lead()*5/4
	if next.IsZero() || room < p.Lead()/4 || left < min(p.Lease, plan.Gap(p.Ticks, next)/2) {
		return 0
	}
	return room
}

// lastOfAll is how long before a tick such a replica acts: the others come at p.Cede() at the latest, or
// at an eighth of it; see keeps.
func (b *base) lastOfAll() time.Duration { return b.job.Policy.Cede() / 10 }

// An unanswered is a session whose acquisition or write got no answer, and neither did the
// call after it that would have shown or ended the lease. Nothing runs under it, but its
// lease may last and keep the job from replicas that are answered.
type unanswered struct {
	session *lease.Session // nil: there is none
	err     error          // of the acquisition or the claim
	idle    bool           // it writes no claim
}

// errAcquisition wraps why the outcome of an acquisition is not known.
var errAcquisition = errors.New("the acquisition was not confirmed")

// freeUnanswered follows a read. If the entry has a lease, and shows no run that may go on, the lease is released, as it would
// have been if the store had answered in time. The release names the id of the session, so it ends no
// other lease, and the store refuses a claim that is still under way from then on. It
// returns why this replica should yield: nil if the lease was not the session's.
//
// Over a run that may go on the lease has to expire. If the
// record is the claim itself, the call learns that it names a run which will not be started.
func (d *driver) freeUnanswered() error {
	u := d.denial.left
	d.denial.left = unanswered{}
	if u.session == nil {
		return nil
	}
	if run := &d.view.rec.Run; !u.idle && run.Status == event.Running && slices.Contains(u.session.Sent(), d.view.rec.Writer) {
		d.undone = fmt.Errorf("its tick %s was claimed and not run: %w", run.Tick.Format(time.RFC3339), u.err)
	}
	switch {
	case !d.view.entry.State.Live():
		if len(u.session.Sent()) > 0 && u.session.Revision().ETag == d.view.entry.ETag { // it may yet acquire the lease and claim
			d.denial.left = u
		}
		return nil
	case !u.idle && d.view.rec.MayRun(): // perhaps by the claim
		d.leaves(u.session)
		return nil
	}
	err := u.session.Release(d.ctx)
	switch {
	case lease.Definite(err):
		return nil
	case err != nil: // the claim may arrive yet
		d.denial.left = u
		d.leaves(u.session)
		d.notReleased(err)
	default:
		d.view.entry.State = store.Available
		d.looked()
	}
	return u.err
}

// A contradiction is an ETag that reads of the entry show and that the store refuses in
// each acquisition. At first other replicas may have changed the entry. Later no change
// explains it, since no ETag comes back: something on the way changes ETags, or answers
// reads from a cache. Without a word of it the job would not run, with all calls answered.
type contradiction struct {
	etag  string
	since time.Time // monotonic: the first refusal
	lasts bool      // for longer than the store and other replicas can explain
}

// refuse adds the refusal of an acquisition at etag, after which the entry is read again.
// A lease that is held says nothing of the ETag: a store may be late to free it.
func (c *contradiction) refuse(etag string, err error, patience time.Duration) {
	switch {
	case errors.Is(err, store.ErrHeld):
	case c.etag != etag:
		*c = contradiction{etag: etag, since: time.Now()}
	default:
		c.lasts = time.Since(c.since) > patience
	}
}

// of returns the trouble with etag, nil if there is none.
func (c *contradiction) of(etag string) error {
	if !c.lasts || c.etag != etag {
		return nil
	}
	return fmt.Errorf("the store refuses to lease the entry at the ETag that its reads show, %.80s: is a cache or a proxy on the way that changes or keeps answers?", etag)
}
