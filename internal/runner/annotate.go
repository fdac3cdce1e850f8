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
	r.view.entry = &store.Entry{Revision: store.Revision{ETag: s.ETag()}, State: store.Available}
	r.see()
	r.reached()
	r.mayWrite()
	return nil
}

// notAnnotated returns how long to wait after an annotation that failed.
func (r *Runner) notAnnotated(ctx context.Context, err error) time.Duration {
	switch {
	case errors.Is(err, lease.ErrNotWritten) && errors.Is(err, fs.ErrPermission), errors.Is(err, lease.ErrNotEncoded):
		return r.standBack(err)
	case lease.Definite(err): // another replica was first
		return r.readAgain(firstLook + r.client.Jitter.UpTo(firstLook))
	}
	return r.unusable(ctx.Err() != nil, err)
}

// yield leaves the job to the replicas of a younger definition. If the action says so,
// it also writes a mark that asks whether any of them is still up; see definition.go of
// internal/plan.
func (r *Runner) yield(ctx context.Context, a plan.Action) time.Duration {
	rec := &r.view.rec
	why := fmt.Errorf("a replica that started at %s has another %s for this job%s: this one leaves it alone, and takes it back once no replica with that definition has answered for %s",
		rec.Definition.Since.Format(time.RFC3339), r.job.Shard.definition(), inWhat(rec.Definition.Spec, r.job.Policy.Spec), plan.InheritAfter)
	r.note(cmp.Or(r.denial.err, why))
	spec := r.job.Policy.Spec
	if rec.Definition.Mark.Spec == spec {
		r.view.seen.AskedAt = time.Now()
	}
	if a.What != plan.Mark {
		return r.wait(a)
	}
	if err := r.annotate(ctx, func(rec *store.Record) { rec.Definition.Mark = store.Mark{Spec: spec, Since: r.rank.since} }); err != nil {
		return r.notAnnotated(ctx, err)
	}
	r.view.seen.AskedAt = time.Now()
	r.detail("asked whether replicas with the definition in force are up", nil)
	return r.wait(a)
}

// inWhat completes a sentence about two definitions which have the same texts: it says what differs.
func inWhat(a, b string) string {
	if what := plan.Difference(a, b); what != "" {
		return " (the same text, but " + what + " differ)"
	}
	return ""
}

// inherit makes the definition of this replica the one in force, since no replica of
// the younger definition has answered the mark. The claim that follows writes it.
func (r *Runner) inherit(since time.Time) {
	r.emit(event.Event{Kind: event.Inherited, Former: event.Former{Since: r.view.rec.Definition.Since}, Took: time.Since(r.view.seen.UnchangedSince).Truncate(time.Minute)})
	r.rank.since = since
}

// tryToProve finds out between two ticks whether the writes of this replica arrive again, by a
// write of the record as it is: others acquire before it at each tick, so it would have nothing to
// write. If another replica holds the lease for a tick it looks again after that tick. The lease is
// free again when the others look before the next one. It returns how long to wait: as long as it
// would without that, if there is nothing to find out.
func (r *Runner) tryToProve(ctx context.Context, v plan.View, what plan.What, wait time.Duration) time.Duration {
	next := r.job.Policy.Upcoming(v, &r.view.seen)
	left, room := next.Sub(v.Now), r.room(next, v.Now)
	switch {
	// Without an entry it is about to be read again.
	case next.IsZero() || r.view.entry == nil || time.Now().Before(r.denial.until):
		return wait
	case what == plan.Expect:
		return r.readAgain(min(max(firstLook, left/3), plan.LookEvery))
	// If the release gets no answer either, the next read releases the lease.
	case what != plan.Wait || v.State.Live() || room <= 0:
		return wait
	}
	brief, cancel := context.WithTimeout(ctx, room)
	defer cancel()
	switch err := r.annotate(brief, func(*store.Record) {}); {
	case err != nil && r.denial.unproved && !lease.Definite(err) && r.denial.left.session == nil && ctx.Err() == nil:
		return r.standBack(err)
	case err != nil:
		return r.notAnnotated(ctx, err)
	}
	r.note(nil)
	return 0
}

// answer removes a mark from the record: a replica of the definition in force is up.
// The new ETag is what the other replica waits for.
func (r *Runner) answer(ctx context.Context) time.Duration {
	err := r.annotate(ctx, func(rec *store.Record) {
		rec.Definition.Mark, rec.Definition.Since = store.Mark{}, instant.Later(rec.Definition.Since, r.rank.since)
	})
	if err != nil {
		return r.notAnnotated(ctx, err)
	}
	r.detail("answered a replica with an older definition", nil)
	return 0
}
