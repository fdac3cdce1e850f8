package runner

import (
	"context"
	"strings"
	"time"

	"github.com/soloist-go/soloist/internal/plan"
	"github.com/soloist-go/soloist/store"
)

// A follower reads the entries of its predecessors, and never writes them: only while a tick of
// its own has come and waits for them, ever more rarely. What this replica has settled of them it
// knows without a read. A reading may be old. That is safe: an outcome up to a watermark does not
// change any more, except for the end of a stalled run, so an old reading only knows less.

// After returns the names of the jobs that this one follows.
func (r *Runner) After() []string { return r.job.Policy.After }

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
				shared[key] = newPreceding(predecessors(byName, r.After()), &r.replica.reads)
			}
			r.learnFrom(shared[key])
		}
	}
}

// predecessors returns the jobs of some names.
func predecessors(byName map[string]*Runner, names []string) (jobs []predecessor) {
	for _, name := range names {
		r := byName[name]
		jobs = append(jobs, predecessor{r.replica.App, name, r.client, r.source.state, r.made})
	}
	return jobs
}

// learnFrom has the runner follow jobs.
func (r *Runner) learnFrom(jobs *preceding) {
	own := &following{jobs: jobs}
	jobs.wake = append(jobs.wake, r.alarm.Hurry)
	r.view.before = own
}

// lookBefore has the predecessors read if a tick waits for them and it is time. For a call of RunDue
// they are read after the begin of each step in which a tick waits. It returns true if a read has
// shown that the tick is decided, which another replica may have claimed by now: then a read of
// the own entry costs less than a lost race for its lease. The replica that has settled the last
// predecessor is the first to know, and does not read.
func (r *Runner) lookBefore(ctx context.Context, c *call, begin time.Time) (readAgain bool) {
	b, p := r.view.before, &r.job.Policy
	if b == nil {
		return false
	}
	defer r.leaveTo(c)
	v := r.decideBy(c)
	tick, waits := p.Awaits(v)
	if waits && b.tick.IsZero() {
		b.tick = tick
	}
	waited := b.tick
	if waits {
		l := look{tick: tick, now: v.Now}
		if c.bounded {
			l.after = begin
		}
		b.jobs.look(ctx, l, r.client.Jitter)
		tick, waits = p.Awaits(r.decideBy(c))
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
	switch {
	case err != nil:
		r.failed(err)
	case b.unread:
		r.answered()
	}
	b.unread = err != nil
}

// await notes why a follower waits, and returns for how long: until it reads its predecessors
// again, at most until its own entry is read.
func (r *Runner) await(a plan.Action) time.Duration {
	facts := r.view.before.jobs.get()
	r.notice(true, facts.trouble)
	r.noteUnread(facts.unread)
	return max(min(a.After, r.view.before.jobs.wait()), shortestAwait)
}

// shortestAwait keeps a loop from spinning.
const shortestAwait = 10 * time.Millisecond

// awaits returns the predecessors that the next tick waits for, as far as this runner knows them.
func (r *Runner) awaits() string {
	if r.view.before == nil || !r.view.known {
		return ""
	}
	p := &r.job.Policy
	if tick, waits := p.Awaits(r.decideBy(&call{})); waits && tick.Equal(p.NextTick(&r.view.rec)) {
		return r.view.before.jobs.get().undecided(tick)
	}
	return ""
}

// awaited returns the predecessors that a tick of the record waits for, as far as their records show.
func (r *Runner) awaited(rec *store.Record, state store.LeaseState, records map[string]*store.Record) (names []string) {
	p := &r.job.Policy
	v := plan.View{Record: rec, State: state, Now: r.now(), Since: rec.Definition.Since, Control: r.orders()}
	for _, name := range p.After {
		before := plan.Predecessor{Job: name}
		if of := records[name]; of != nil {
			before.Watermark = of.Watermark
		}
		v.Before = []plan.Predecessor{before}
		if tick, waits := p.Awaits(v); waits && tick.Equal(p.NextTick(rec)) {
			names = append(names, name)
		}
	}
	return names
}
