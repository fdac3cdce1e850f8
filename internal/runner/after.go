package runner

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/soloist-go/soloist/internal/plan"
	"github.com/soloist-go/soloist/store"
)

// A follower reads the entries of its predecessors, and never writes them: only while a tick of
// its own has come and waits for them, ever more rarely, and at once when this replica has settled
// ticks of one of them. A reading may be old. That is safe: an outcome up to a watermark does not
// change any more, but for the end of a stalled run, so an old reading only knows less.

// After returns the names of the jobs that this one follows.
func (r *Runner) After() []string { return r.job.Policy.After }

// Tell has a follower read the entry of this job at once when ticks of it are settled on this
// replica. It is called before any runner is driven.
func (r *Runner) Tell(follower *Runner) {
	st := r.source.state
	st.settled = append(st.settled, func() {
		follower.view.before.hurried.Store(true)
		follower.alarm.Hurry()
	})
}

// lookBefore reads the predecessors if a tick waits for them and it is time. A call of RunDue or
// RunNow reads them in each step in which a tick waits. It returns true if that has shown that a
// tick is decided which another replica may have claimed by now: then a read of the own entry
// costs less than a lost race for its lease. The replica that has settled the last predecessor is
// the first to know, and does not read.
func (r *Runner) lookBefore(ctx context.Context, c *call) (readAgain bool) {
	b, p := r.view.before, &r.job.Policy
	if b == nil {
		return false
	}
	v := r.decideBy(c)
	tick, waits := p.Awaits(v)
	if !waits {
		return false
	}
	if !tick.Equal(b.tick) {
		b.tick, b.lookAt = tick, time.Now().Add(plan.AwaitPace(0)-v.Now.Sub(tick))
	}
	hurried := b.hurried.Swap(false)
	if !hurried && !c.bounded && time.Until(b.lookAt) > 0 {
		return false
	}
	r.readBefore(ctx, tick)
	next, waits := p.Awaits(r.decideBy(c))
	if waits {
		b.tick = next
	}
	pace := plan.AwaitPace(v.Now.Sub(tick))
	b.lookAt = time.Now().Add(pace - r.client.Jitter.UpTo(pace/4))
	return !hurried && !next.Equal(tick)
}

// readBefore reads the predecessors that are not known to have an outcome of a tick. All of them
// together take no longer than one call.
func (r *Runner) readBefore(ctx context.Context, tick time.Time) {
	b := r.view.before
	reading, cancel := context.WithTimeout(ctx, r.client.CallTimeout())
	defer cancel()
	b.trouble = nil
	for i := range b.clients {
		if !b.known[i].Watermark.Before(tick) {
			continue
		}
		entry, err := r.replica.reads.read(reading, b.clients[i])
		if ctx.Err() != nil {
			return
		}
		r.learn(i, &entry, err)
	}
}

// learn takes in the answer to a read of a predecessor. If that is of no use, what is known of the
// predecessor stays as it is.
func (r *Runner) learn(i int, entry *store.Entry, err error) {
	b := r.view.before
	name := b.known[i].Job
	switch {
	case errors.Is(err, fs.ErrNotExist):
		b.trouble = fmt.Errorf("it waits for %s, which has no entry", name)
		return
	case err != nil:
		b.failing = true
		r.failed(fmt.Errorf("it waits for %s, whose entry cannot be read: %w", name, err))
		return
	}
	if b.failing {
		b.failing = false
		r.answered()
	}
	rec, err := store.DecodeRecord(entry.Record, r.replica.App, name)
	if err == nil {
		err = plan.Unusable(&rec, r.bounds())
	}
	if last := &b.records[i]; err == nil && plan.OlderThan(&rec, last) {
		err = fmt.Errorf("it is older than what it was at %s: somebody has put back an old version", last.Watermark.Format(time.RFC3339))
	}
	if err != nil {
		b.trouble = fmt.Errorf("it waits for %s, whose record cannot be used: %w", name, err)
		return
	}
	b.take(i, rec, r.now())
}

// await returns how long a follower waits until it looks at its predecessors again, at most until
// its own entry is read.
func (r *Runner) await(a plan.Action) time.Duration {
	return max(min(a.After, time.Until(r.view.before.lookAt)), shortestAwait)
}

// shortestAwait keeps a loop from spinning.
const shortestAwait = 10 * time.Millisecond

// awaits returns the predecessors that the next tick waits for, as far as this runner knows them.
func (r *Runner) awaits() string {
	if r.view.before == nil || !r.view.known {
		return ""
	}
	var names []string
	if tick, waits := r.job.Policy.Awaits(r.decideBy(&call{})); waits {
		for _, b := range r.view.before.known {
			if b.Watermark.Before(tick) {
				names = append(names, b.Job)
			}
		}
	}
	return strings.Join(names, ", ")
}

// awaited returns the predecessors that a tick of the record waits for, as far as their records tell.
func (r *Runner) awaited(rec *store.Record, state store.LeaseState, records map[string]*store.Record) (names []string) {
	p := &r.job.Policy
	v := plan.View{Record: rec, State: state, Now: r.now(), Since: rec.Definition.Since, Control: r.orders()}
	for _, name := range p.After {
		before := plan.Predecessor{Job: name}
		if of := records[name]; of != nil {
			before.Watermark = of.Watermark
		}
		v.Before = []plan.Predecessor{before}
		if _, waits := p.Awaits(v); waits {
			names = append(names, name)
		}
	}
	return names
}
