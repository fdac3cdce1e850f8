package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/internal/instant"
	"github.com/soloist-go/soloist/internal/lease"
	"github.com/soloist-go/soloist/internal/plan"
	"github.com/soloist-go/soloist/internal/record"
	"github.com/soloist-go/soloist/store"
)

// annotate changes the record of an entry that was seen free, without a claim: it
// acquires the lease, writes once and releases. It spends no token and starts no run.
// Unlike a claim, a write of unclear outcome may be followed by the release: the store
// refuses it once the lease is gone, and it claims nothing.
func (r *Runner) annotate(ctx context.Context, draft lease.Draft) error {
	s, err := lease.Acquire(ctx, r.client, r.view.entry.ETag, &r.view.rec, r.job.Policy.LeaseAfter(&r.view.rec, r.view.entry.State))
	if err != nil {
		if !lease.Definite(err) {
			r.denial.left = unanswered{s, err, true}
		}
		return err
	}
	err = s.WriteConfirmed(ctx, draft)
	if rerr := s.Release(ctx); rerr != nil {
		r.notReleased(rerr)
		r.denial.left = unanswered{s, cmp.Or(err, rerr), true}
	}
	if err != nil {
		return err
	}
	r.written(s)
	// What the release has left. If the lease is not released after all, the next
	// acquisition finds out.
	r.view.entry = &store.Entry{Revision: store.Revision{ETag: s.Revision().ETag}, State: store.Available}
	r.see()
	r.reached()
	r.mayWrite()
	return nil
}

// notAnnotated returns how long to wait after an annotation that failed.
func (d *driver) notAnnotated(err error) time.Duration {
	switch {
	case errors.Is(err, lease.ErrNotWritten) && errors.Is(err, fs.ErrPermission), errors.Is(err, lease.ErrNotEncoded):
		return d.standBack(err)
	case lease.Definite(err): // another replica was first
		return d.readAgain(firstLook + d.client.Jitter.UpTo(firstLook))
	}
	return d.unusable(err)
}

// yield leaves the job to the replicas of a younger definition. If the action says so,
// it also writes a mark that asks whether any of them is still up; see definition.go of
// internal/plan.
func (d *driver) yield(a plan.Action) time.Duration {
	rec, spec, differ := &d.view.rec, d.job.Policy.Spec, ""
	if what := plan.Difference(rec.Definition.Spec, spec); what != "" { // of definitions that have the same texts
		differ = " (the same text, but " + what + " differ)"
	}
	why := fmt.Errorf("a replica that started at %s has another %s for this job%s: this one leaves it alone, and takes it back once no replica with that definition has answered for %s",
		rec.Definition.Since.Format(time.RFC3339), d.job.Shard.definition(), differ, plan.InheritAfter)
	d.note(cmp.Or(d.denial.err, why))
	if rec.Definition.Mark.Spec == spec {
		d.view.seen.AskedAt = time.Now()
	}
	if a.What != plan.Mark {
		return d.wait(a)
	}
	if err := d.annotate(d.ctx, func(rec *record.Record) { rec.Definition.Mark = record.Mark{Spec: spec, Since: d.rank.since} }); err != nil {
		return d.notAnnotated(err)
	}
	d.view.seen.AskedAt = time.Now()
	d.detail("asked whether replicas with the definition in force are up", nil)
	return d.wait(a)
}

// tryToProve finds out between two ticks whether the writes of this replica arrive again, by a
// write of the record as it is: others acquire before it at each tick, so it would have nothing to
// write. If another replica holds the lease for a tick it looks again after that tick. The lease is
// free again when the others look before the next one. It returns how long to wait: as long as it
// would without that, if there is nothing to find out.
func (d *driver) tryToProve(v plan.View, what plan.What, wait time.Duration) time.Duration {
	next := d.job.Policy.Upcoming(v, &d.view.seen)
	left, room := next.Sub(v.Now), d.room(next, v.Now)
	switch {
	// Without an entry it is about to be read again.
	case next.IsZero() || d.view.entry == nil || time.Now().Before(d.denial.until):
		return wait
	case what == plan.Expect:
		return d.readAgain(min(max(firstLook, left/3), plan.LookEvery))
	// If the release gets no answer either, the next read releases the lease.
	case what != plan.Wait || v.State.Live() || room <= 0:
		return wait
	}
	brief, cancel := context.WithTimeout(d.ctx, room)
	defer cancel()
	switch err := d.annotate(brief, func(*record.Record) {}); {
	case err != nil && d.denial.unproved && !lease.Definite(err) && d.denial.left.session == nil && d.ctx.Err() == nil:
		return d.standBack(err)
	case err != nil:
		return d.notAnnotated(err)
	}
	d.note(nil)
	return 0
}

// answer removes a mark from the record: a replica of the definition in force is up.
// The new ETag is what the other replica waits for.
func (d *driver) answer() time.Duration {
	err := d.annotate(d.ctx, func(rec *record.Record) {
		rec.Definition.Mark, rec.Definition.Since = record.Mark{}, instant.Later(rec.Definition.Since, d.rank.since)
	})
	if err != nil {
		return d.notAnnotated(err)
	}
	d.detail("answered a replica with an older definition", nil)
	return 0
}

// lateSpread is how much later than its time a tick is reported at most during a run.
const lateSpread = time.Second

// judge notes in a record that is about to be written which ticks are late, and returns those that
// were not reported before. The view holds the record before that: what it has settled is reported too if
// no program before this one has asked for it. Alone says that the write has no other purpose.
func (r *Runner) judge(rec *record.Record, alone bool) plan.Lateness {
	p := &r.job.Policy
	switch {
	case p.Late.Finish == 0:
		return plan.Lateness{}
	case rec.Past.Judged.IsZero():
		rec.Past.Judged = r.view.rec.Watermark
	}
	if alone {
		return plan.Report(p, rec, r.clock.Best(), r.orders())
	}
	return plan.Judge(p, rec, r.clock.Best(), r.orders())
}

// emitLate reports late ticks, once the record says that they are reported. err is the write's: if
// it may have been taken, they are reported now, since nothing reports them later.
func (r *Runner) emitLate(late plan.Lateness, err error) {
	if late.Count == 0 || err != nil && surelyNotWritten(err) || !late.Tick.After(r.view.toldLate) {
		return
	}
	r.view.toldLate = late.Tick
	r.emit(event.Event{Kind: event.Late, Run: event.Run{Tick: late.Tick}, Count: late.Count, Note: late.Why})
}

// tellLate writes which ticks are late into the record of an entry that was seen free.
func (d *driver) tellLate(rest time.Duration) time.Duration {
	if d.denial.bars(time.Now()) {
		return rest
	}
	var late plan.Lateness
	err := d.annotate(d.ctx, func(rec *record.Record) { late = d.judge(rec, true) })
	d.emitLate(late, err)
	if err != nil {
		return d.notAnnotated(err)
	}
	return 0
}

// watchLate reports ticks that become late while this replica runs the job: no other replica can write
// meanwhile. It returns what ends that, and waits for its end.
func (h *hold) watchLate() (end func()) {
	if h.job.Policy.Late.Finish == 0 {
		return func() {}
	}
	s := h.session
	ctx, cancel := context.WithCancel(s.Context())
	over := make(chan struct{})
	rec := s.Record()
	jitter := lease.NewJitter(fmt.Sprint(h.replica.Name, h.Name(), rec.Token)) // of its own: it does not matter what else draws meanwhile
	go func() {
		defer close(over)
		for least := time.Duration(0); ; {
			rec := s.Record()
			wait := plan.UntilTell(&h.job.Policy, &rec, h.clock.Best(), h.orders())
			// A little later, so that the writes of jobs with one schedule do not come at one time.
			lease.Sleep(ctx, min(max(wait, least), maxSleep)+jitter.UpTo(lateSpread))
			if ctx.Err() != nil {
				return
			}
			if wait > maxSleep { // timers stand still while a machine is suspended
				least = 0
				continue
			}
			least = maxSleep // if the write fails
			h.tellLateUnder(ctx)
		}
	}()
	return func() { cancel(); <-over }
}

// tellLateUnder writes which ticks are late under the lease of a run. If that fails, the end of the run
// or the next claim reports them.
func (h *hold) tellLateUnder(ctx context.Context) {
	s := h.session
	rec := s.Record()
	if h.judge(&rec, false).Count == 0 || s.Expired() { // the next holder reports them, or did while this machine was suspended
		return
	}
	ctx, cancel := context.WithTimeout(ctx, s.Brief)
	defer cancel()
	var late plan.Lateness
	err := s.WriteOrForget(ctx, func(rec *record.Record) { late = h.judge(rec, true) })
	h.emitLate(late, err)
}
