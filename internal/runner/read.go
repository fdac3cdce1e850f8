package runner

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/soloist-go/soloist/internal/instant"
	"github.com/soloist-go/soloist/internal/lease"
	"github.com/soloist-go/soloist/internal/plan"
	"github.com/soloist-go/soloist/internal/swept"
	"github.com/soloist-go/soloist/store"
)

// read reads the entry into the view, and creates it if there is none. A record that
// cannot be used is an error, and the view stays as it was: nothing may run by it, and
// nothing may overwrite it. wake is the tick that the program was woken for; zero: not known.
func (r *Runner) read(ctx context.Context, wake time.Time) error {
	r.view.seen.Sends(time.Now())
	entry, err := r.replica.reads.Read(ctx, r.client.InHaste(&r.view.rec))
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		// Only an answer gives the service's time, on which the time of our start
		// depends. The step afterwards needs that to compare definitions.
		r.rank.since = instant.Later(r.replica.Started(), r.rank.adopted)
	}
	if errors.Is(err, fs.ErrNotExist) {
		entry, err = r.create(ctx, entry.Date, wake)
	}
	if err != nil {
		return err
	}
	// The same ETag is the same record, so the checks below are made already, except for its instants: see fromFuture.
	if r.view.known && entry.ETag == r.view.etag {
		if err := r.fromFuture(); err != nil {
			return err
		}
		entry.Record, r.view.entry = nil, &entry
		r.see()
		return nil
	}
	rec, err := r.usable(&entry, &r.view.rec)
	if err != nil {
		return &recordError{err}
	}
	r.recall(ctx, &rec)
	r.keep(&entry, rec)
	r.see()
	return nil
}

// recall takes in a record that was read. Before it the entry counts as never seen if a sweep may have removed what was seen.
func (r *Runner) recall(ctx context.Context, rec *store.Record) {
	known := r.source.state.get().entry
	if known.replacedBy(rec) {
		ctx, cancel := context.WithTimeout(ctx, r.client.CallTimeout())
		defer cancel()
		if swept.Forgets(ctx, r.client.Store, r.replica.App, r.job.Name, known.looked) {
			r.source.state.set(func(n *snapshot) { n.entry.created = time.Time{} })
		}
	}
	r.source.state.set(func(n *snapshot) { n.entry.recall(rec) })
}

// usable returns the record of an entry, or why it cannot be used. last is what was seen of it before; zero: nothing.
func (b *base) usable(e *store.Entry, last *store.Record) (rec store.Record, err error) {
	if rec, err = store.DecodeRecord(e.Record, b.replica.App, b.job.Name); err != nil {
		return rec, err
	}
	if plan.OlderThan(&rec, last) {
		return rec, fmt.Errorf("it is older than what it was at %s: somebody has put back an old version", last.Watermark.Format(time.RFC3339))
	}
	return rec, plan.Unusable(&rec, b.bounds())
}

// fromFuture returns that the record in the view has an instant in the future. The service's clock may be put back while the
// record stays.
func (r *Runner) fromFuture() error {
	bounds := r.bounds()
	if !r.view.latest.IsZero() && !bounds.Latest.Before(r.view.latest) {
		return nil
	}
	if err := plan.Unusable(&r.view.rec, bounds); err != nil {
		return &recordError{err}
	}
	r.view.latest = bounds.Latest
	return nil
}

// keep puts what was read into the view.
func (r *Runner) keep(e *store.Entry, rec store.Record) {
	e.Record = nil // the views of ten thousand jobs would keep its bytes for nothing
	r.view.known, r.view.entry, r.view.rec, r.view.etag, r.view.latest = true, e, rec, e.ETag, time.Time{}
	r.weigh()
}

// create creates the entry of a new job. If another replica was first, its entry is
// read instead.
func (r *Runner) create(ctx context.Context, date, wake time.Time) (store.Entry, error) {
	if date.IsZero() {
		date = r.clock.Wall()
	}
	before, err := r.view.before.made(ctx, wake, date)
	if err != nil {
		return store.Entry{}, err
	}
	rec := r.job.Policy.New(r.replica.App, r.job.Name, plan.View{Now: date, Since: r.rank.since, Before: before}, wake)
	b, err := rec.Encode()
	if err != nil {
		return store.Entry{}, err
	}
	done := r.replica.reads.Pass(ctx)
	entry, err := r.client.Create(ctx, b)
	done()
	switch {
	case errors.Is(err, fs.ErrExist):
		return r.client.Read(ctx)
	case err == nil:
		r.mayWrite()
	}
	return entry, err
}

// made returns what the entry says to a follower, and makes it if there is none. A record that cannot be used says
// nothing. Any goroutine may call it.
func (r *Runner) made(ctx context.Context, wake time.Time) (finding, error) {
	other := r.beside("of a follower")
	err := other.read(ctx, wake)
	if _, bad := errors.AsType[*recordError](err); bad {
		return finding{}, nil
	}
	if err != nil {
		return finding{}, fmt.Errorf("it waits for %s, whose entry cannot be read: %w", r.Name(), err)
	}
	return finding{etag: other.view.etag, record: &other.view.rec}, nil
}

// see adds one read to the observation. It counts from the first read that showed
// something, so a hold-off that was cut short need not start again.
func (r *Runner) see() {
	r.view.seen.At = time.Now()
	r.looked()
	r.view.seen.See(r.view.entry, &r.view.rec, r.clock.Best())
	r.reportApplied()
}

// decideBy collects what plan decides by at this moment: the view, the clock, and what
// other runners of the same job in this process have seen of the entry.
func (d *driver) decideBy() plan.View {
	n := d.source.state.get()
	o := &d.view.seen
	o.At, o.RecreatedAt, o.LastLease = time.Now(), n.entry.recreated, n.entry.lease
	v := plan.View{Record: &d.view.rec, Now: d.clock.Best(), Since: d.rank.since, Request: d.request, Control: d.orders(), Waited: d.view.waited, Claims: d.claims}
	if d.slot.none {
		v.Claims = plan.NoRun
	}
	_, v.Break.Able = d.client.Store.(store.ConditionalBreaker)
	v.Break.ByOperator = o.Unlocked(&d.view.rec)
	if d.view.before != nil {
		v.Before = d.view.before.jobs.get().known
	}
	if d.view.entry != nil {
		v.State, v.ETag = d.view.entry.State, d.view.entry.ETag
	}
	return v
}

// ordered is a view of a record for what depends on the time, on orders and on the definition in force alone.
func (r *Runner) ordered(rec *store.Record) plan.View {
	return plan.View{Record: rec, Now: r.clock.Best(), Since: r.rank.since, Control: r.orders()}
}

// lookBy returns when the entry is read again at the latest, together with other jobs' entries.
// It is zero if a tick comes before a read is due: such a job is not read between its ticks.
func (r *Runner) lookBy(now time.Time) time.Time {
	looked, due := r.view.seen.LookedAt, r.view.rec.Due
	if !r.replica.reads.Many() {
		return time.Time{}
	}
	if !due.IsZero() && due.Sub(now) <= plan.LookEvery-time.Since(looked) {
		return time.Time{}
	}
	return r.replica.reads.LookBy(looked)
}

// bounds returns the limits that a record has to keep for the store and its clock.
func (b *base) bounds() (limits plan.Bounds) {
	limits.Shortest, limits.Longest = b.client.Store.Limits()
	if _, latest, ok := b.clock.Now(); ok {
		limits.Latest = latest
	}
	return limits
}

// readAgain forgets the entry, so that it is read after d and not before. It returns d,
// which is usually how long the step waits. Where there are many jobs, d becomes a little longer,
// so that their reads come together.
func (r *Runner) readAgain(d time.Duration) time.Duration {
	d = r.replica.reads.Round(d)
	r.view.entry, r.view.readAt = nil, time.Now().Add(d)
	return d
}

// lookedAway notes a time in which this replica did not watch the entry: it may have
// changed and changed back, so nothing seen before counts as seen without a break.
func (r *Runner) lookedAway() {
	r.view.entry = nil
	r.view.seen.At = time.Now()
	r.view.seen.LookedAway()
}

// frozen reports whether the wall clock has counted more time than the monotonic clock
// since the entry was last read or written here. A platform may freeze a process between
// two calls, and the monotonic clock then stands still. A wall clock that was set looks
// the same, and costs one more read.
func (r *Runner) frozen() bool {
	return r.clock.Wall().Sub(r.view.seenAt)-time.Since(r.view.seen.LookedAt) > time.Second
}

// wait returns how long an action makes this replica wait, with its jitter.
func (r *Runner) wait(a plan.Action) time.Duration {
	d := a.After
	if a.Jitter > 0 && !(a.Read && r.replica.reads.Many()) { // readAgain has instants that differ between replicas
		d += r.client.Jitter.UpTo(a.Jitter)
	}
	if a.Most > 0 {
		d = min(d, a.Most)
	}
	if a.Read {
		return r.readAgain(d)
	}
	return d
}

// written takes over what a session has written as what this replica has seen. The followers of
// the job may wait for what it has settled, or for what another replica had settled before: they do
// not read the entry while this replica is busy with the job.
func (r *Runner) written(s *lease.Session) {
	through := r.view.rec.Watermark
	r.view.rec, r.view.etag, r.view.latest = s.Record(), s.ETag(), time.Time{}
	r.precede(&r.view.rec, r.view.rec.Watermark.After(through))
	r.weigh()
	r.view.seen.Dated(s.ETag(), s.WrittenAt())
}

// precede notifies the followers of the job of what a record says that this replica has written. settles
// says that this write has settled ticks.
func (r *Runner) precede(rec *store.Record, settles bool) {
	for _, tell := range r.source.state.followed {
		tell(rec, settles, r.clock.Best())
	}
}
