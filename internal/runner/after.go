package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/soloist-go/soloist/internal/instant"
	"github.com/soloist-go/soloist/internal/lease"
	"github.com/soloist-go/soloist/internal/plan"
	"github.com/soloist-go/soloist/internal/reads"
	"github.com/soloist-go/soloist/internal/record"
)

// A follower reads the entries of its predecessors, and never writes them: only while a tick of
// its own has come and waits for them, ever more rarely. What this replica has settled of them it
// knows without a read. A reading may be old. That is safe: an outcome up to a watermark does not
// change any more, except for the end of a stalled run, so an old reading only knows less.

// After returns the names of the jobs that this one follows.
func (b *base) After() []string { return b.job.Policy.After }

// Follow lets runners of one replica know the jobs that their own follow. It is called before any
// is driven.
func Follow(runners []*Runner) {
	byName, shared := map[string]*Runner{}, map[string]*preceding{}
	for _, r := range runners {
		byName[r.Name()] = r
	}
	for _, r := range runners {
		if r.job.Policy.Follows() {
			key := strings.Join(r.After(), ",")
			if shared[key] == nil {
				var jobs []predecessor
				for _, name := range r.After() {
					jobs = append(jobs, predecessor{&byName[name].base, byName[name].made})
				}
				b := newPreceding(jobs, &r.replica.reads)
				for _, name := range r.After() {
					of := byName[name]
					of.alarm.follow = append(of.alarm.follow, b.hint)
				}
				shared[key] = b
			}
			shared[key].wake = append(shared[key].wake, r.alarm.Hurry)
			r.view.before = &following{jobs: shared[key]}
		}
	}
}

// lookBefore has the predecessors of a follower read if a tick waits for them and it is time. For a call of RunDue
// they are read after the begin of each step in which a tick waits. It returns true if a read has
// shown that the tick is decided, which another replica may have claimed by now: then a read of
// the own entry costs less than a lost race for its lease. The replica that has settled the last
// predecessor is the first to know, and does not read.
func (d *driver) lookBefore(begin time.Time) (readAgain bool) {
	b, p := d.view.before, &d.job.Policy
	defer d.leaveTo()
	v := d.decideBy()
	tick, waits := p.Awaits(v)
	if waits && b.tick.IsZero() {
		b.tick = tick
	}
	waited := b.tick
	if waits {
		after := time.Time{}
		if d.bounded {
			after = begin
		}
		b.jobs.look(d.ctx, tick, v.Now, after, d.client.Jitter)
		tick, waits = p.Awaits(d.decideBy())
	}
	if b.tick = tick; !waits {
		b.tick = time.Time{}
	}
	facts := b.jobs.get()
	return !waited.IsZero() && !facts.by.Before(waited) && !facts.told
}

// waitsInVain reports whether a tick waits for a job whose entry cannot be read.
func (r *Runner) waitsInVain() bool { return r.view.before != nil && r.view.before.unread }

// noteUnread notes that a tick waits for a job whose entry cannot be read, or that it does not.
func (r *Runner) noteUnread(err error) {
	b := r.view.before
	if err != nil || b.unread {
		r.trouble(err)
	}
	b.unread = err != nil
}

// await notes why a follower waits, and returns for how long: until it reads its predecessors
// again, at most until its own entry is read.
func (d *driver) await(a plan.Action) time.Duration {
	facts := d.view.before.jobs.get()
	d.notice(true, facts.trouble)
	d.noteUnread(facts.unread)
	return max(min(a.After, d.view.before.jobs.wait()), shortestAwait)
}

// shortestAwait keeps a loop from spinning.
const shortestAwait = 10 * time.Millisecond

// awaits returns the predecessors that the next tick waits for, as far as this runner knows them.
func (d *driver) awaits() string {
	if d.view.before == nil || !d.view.known {
		return ""
	}
	p := &d.job.Policy
	if tick, waits := p.Awaits(d.decideBy()); waits && tick.Equal(p.NextTick(&d.view.rec)) {
		return d.view.before.jobs.get().undecided(tick)
	}
	return ""
}

// A preceding is what a replica knows of jobs that others follow. All runners that follow the same
// jobs share it: an entry is read once for all of them. What this replica writes itself it takes in
// without a read.
type preceding struct {
	jobs  []predecessor // in the order of After
	reads *reads.Gathering
	wake  []func()      // of the followers: a tick is decided
	turn  chan struct{} // has room for the follower that reads

	mu     sync.Mutex
	facts  facts
	tick   time.Time // the newest that they were read for, or are to be
	readAt time.Time // monotonic: when the last reading began
	lookAt time.Time // monotonic: when they are read again
}

// A following is what a runner has of the jobs before its own.
type following struct {
	jobs   *preceding
	tick   time.Time                 // that waits for them; zero: none does
	unread bool                      // an outage of the store was reported, since one of them cannot be read
	left   atomic.Pointer[time.Time] // the first tick that the call which drives the runner leaves to others; nil: none has begun
}

// hasNews reports whether a tick is decided that the call which drives the runner leaves to others, or
// does not know of. It may be called on nil, and by any goroutine.
func (f *following) hasNews() bool {
	if f == nil {
		return false
	}
	by, left := f.jobs.get().by, f.left.Load()
	return !by.IsZero() && (left == nil || !left.IsZero() && !left.After(by))
}

// made reads the predecessors of a follower that is new, or is to follow other jobs, and makes the entries that are missing: a
// follower that is older would miss ticks that its predecessors never had. It may be called on nil.
func (f *following) made(ctx context.Context, wake, now time.Time) ([]plan.Predecessor, error) {
	if f == nil {
		return nil, nil
	}
	found, failed := make([]finding, len(f.jobs.jobs)), make([]error, len(f.jobs.jobs))
	var all sync.WaitGroup
	for i, p := range f.jobs.jobs {
		all.Go(func() { found[i], failed[i] = p.made(ctx, wake) })
	}
	all.Wait()
	f.jobs.learn(found, now, false, false)
	return f.jobs.get().known, errors.Join(failed...)
}

// A predecessor is a job that others follow.
type predecessor struct {
	*base
	made func(context.Context, time.Time) (finding, error) // what its entry says, which is made if there is none
}

// The facts about some predecessors. They are never changed in place.
type facts struct {
	known   []plan.Predecessor // in the order of After
	seen    []sighting         // in the same order
	by      time.Time          // all ticks up to here have outcomes
	told    bool               // this replica has written the last of these outcomes itself
	trouble error              // why one of them cannot be used; nil: none is known
	unread  error              // why the entry of one of them could not be read; nil: each could
}

// A sighting is the record of one predecessor that was taken in last.
type sighting struct {
	etag   string         // empty: this replica has written it
	record *record.Record // no more of it than what plan.OlderThan compares
}

// A finding is what one read of a predecessor has shown, or what this replica has written of it.
type finding struct {
	etag    string
	record  *record.Record // nil: nothing new
	trouble error
	unread  error
}

func newPreceding(jobs []predecessor, from *reads.Gathering) *preceding {
	b := &preceding{jobs: jobs, reads: from, turn: make(chan struct{}, 1)}
	b.facts.seen = make([]sighting, len(jobs))
	for i, p := range jobs {
		b.facts.seen[i].record = &record.Record{}
		b.facts.known = append(b.facts.known, plan.Predecessor{Job: p.job.Name})
		p.source.state.followed = append(p.source.state.followed, func(rec *record.Record, settles bool, now time.Time) {
			found := make([]finding, len(jobs))
			found[i].record = rec
			b.learn(found, now, true, settles)
		})
	}
	return b
}

// get returns the facts.
func (b *preceding) get() facts {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.facts
}

// wait returns how long it is until the predecessors are read again.
func (b *preceding) wait() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	return time.Until(b.lookAt)
}

// hint has the predecessors read soon if a tick waits for them: one may have changed.
func (b *preceding) hint() {
	b.mu.Lock()
	at := instant.Later(time.Now(), b.readAt.Add(hintPace))
	waits := b.facts.by.Before(b.tick) && at.Before(b.lookAt)
	if waits {
		b.lookAt = at
	}
	b.mu.Unlock()
	if waits {
		for _, wake := range b.wake {
			wake()
		}
	}
}

// due reports whether the predecessors are to be read now for a tick; see look.
func (b *preceding) due(tick, now, after time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if tick.After(b.tick) {
		b.tick, b.lookAt = tick, instant.Later(b.readAt, time.Now().Add(tick.Sub(now))).Add(plan.AwaitPace(0))
	}
	return b.readAt.Before(after) || time.Until(b.lookAt) <= 0
}

// look reads, all at once, the predecessors that are not known to have an outcome of a tick, if that is due. One of the
// followers does it; the others wait for it. A reading that began before the (monotonic) time after is not enough; zero: any
// is. This replica need not read what it is about to write itself; its claim shows what has come before.
func (b *preceding) look(ctx context.Context, tick, now, after time.Time, jitter *lease.Jitter) {
	if !b.due(tick, now, after) {
		return
	}
	select {
	case b.turn <- struct{}{}:
		defer func() { <-b.turn }()
	case <-ctx.Done():
		return
	}
	if !b.due(tick, now, after) { // another follower has read them
		return
	}
	b.mu.Lock()
	b.readAt = time.Now()
	before, found := b.facts, make([]finding, len(b.jobs))
	b.mu.Unlock()
	var all sync.WaitGroup
	for i, p := range b.jobs {
		if before.known[i].Watermark.Before(tick) && !p.source.state.get().busy {
			all.Go(func() { found[i] = p.find(ctx, b.reads, &before.seen[i]) })
		}
	}
	all.Wait()
	if ctx.Err() == nil { // else a failure says nothing about the store
		b.learn(found, now, false, false)
	}
	pace := plan.AwaitPace(now.Sub(tick))
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lookAt = time.Now().Add(pace - jitter.UpTo(pace/4))
}

// find reads the entry. last is what was seen of it before.
func (p *predecessor) find(ctx context.Context, from *reads.Gathering, last *sighting) (f finding) {
	entry, err := from.Read(ctx, p.client)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		f.trouble = fmt.Errorf("it waits for %s, which has no entry", p.job.Name)
		return f
	case err != nil:
		f.unread = fmt.Errorf("it waits for %s, whose entry cannot be read: %w", p.job.Name, err)
		return f
	case entry.ETag == last.etag:
		return f
	}
	rec, err := p.usable(&entry, last.record)
	if err != nil {
		f.trouble = fmt.Errorf("it waits for %s, whose record cannot be used: %w", p.job.Name, err)
		return f
	}
	f.etag, f.record = entry.ETag, &rec
	return f
}

// learn takes in what a reading has found of each predecessor, or, as its own, what this replica has written of one, after which
// a reading that was under way may show what was before. settles says that such a write has settled ticks, so that no other
// replica has known of them before. It has the followers look at a tick that is decided.
func (b *preceding) learn(found []finding, now time.Time, own, settles bool) {
	b.mu.Lock()
	next := b.facts.with(found, now)
	if !own {
		next.trouble, next.unread = nil, nil // the first of each kind
		for _, f := range found {
			next.trouble, next.unread = cmp.Or(next.trouble, f.trouble), cmp.Or(next.unread, f.unread)
		}
	}
	hurries := next.by.After(b.facts.by)
	if hurries {
		next.told = settles
	}
	if !next.by.Before(b.tick) { // no tick waits
		next.trouble, next.unread = nil, nil
	}
	b.facts = next
	if settles && b.waitsForOthers() { // this replica may have ended the last of them
		b.lookAt, hurries = time.Now(), true
	}
	b.mu.Unlock()
	if hurries {
		for _, wake := range b.wake {
			wake()
		}
	}
}

// waitsForOthers reports whether a tick waits for predecessors, and this replica runs none of those. The
// caller holds mu.
func (b *preceding) waitsForOthers() bool {
	if !b.facts.by.Before(b.tick) {
		return false
	}
	for i, p := range b.jobs {
		if b.facts.known[i].Watermark.Before(b.tick) && p.source.state.get().busy {
			return false
		}
	}
	return true
}

// with returns the facts with the records that were found.
func (f facts) with(found []finding, now time.Time) facts {
	f.known, f.seen = slices.Clone(f.known), slices.Clone(f.seen)
	for i := range found {
		rec, k := found[i].record, &f.known[i]
		if rec == nil || plan.OlderThan(rec, f.seen[i].record) {
			continue
		}
		*k = k.Updated(rec, now)
		f.seen[i] = sighting{found[i].etag, &record.Record{Created: rec.Created, Token: rec.Token, Watermark: rec.Watermark}}
	}
	f.by = plan.DecidedBy(f.known)
	return f
}

// undecided returns the names of those that have no outcome of a tick.
func (f facts) undecided(tick time.Time) string {
	var names []string
	for _, b := range f.known {
		if b.Watermark.Before(tick) {
			names = append(names, b.Job)
		}
	}
	return strings.Join(names, ", ")
}
