package runner

import (
	"context"
	"errors"
	"io/fs"
	"sync"
	"time"

	"github.com/soloist-go/soloist/internal/control"
	"github.com/soloist-go/soloist/internal/instant"
	"github.com/soloist-go/soloist/internal/lease"
	"github.com/soloist-go/soloist/internal/plan"
	"github.com/soloist-go/soloist/internal/reads"
	"github.com/soloist-go/soloist/store"
)

// wantedUnread is when a replica is wanted that may learn what this one could not read.
const wantedUnread = time.Minute

// A wish is what an entry says about when a replica is wanted.
type wish struct {
	entry store.Entry
	rec   store.Record
	read  error // the entry could not be read
	bad   error // its record cannot be used
}

// Wanted returns when a replica is wanted next for any job of the runners, which all belong to one replica; now or
// before: there is something to do. Zero: never. It changes neither the entries nor the views of the runners, so that any
// goroutine may call it.
func Wanted(ctx context.Context, runners []*Runner) (next time.Time) {
	replica := runners[0].replica
	orders := knowOrders(ctx, replica)
	wishes, awaited := readWishes(ctx, runners), awaited(runners)
	now := replica.Clock.Best()
	for _, r := range runners {
		if !r.job.EveryReplica && !r.Singleton() {
			next = sooner(next, r.wanted(wishes, awaited[r.Name()], now))
		}
	}
	if !orders { // an order may be newer than what is known
		next = sooner(next, now.Add(wantedUnread))
	}
	return next
}

// awaited returns the jobs whose outcomes a follower with AfterAny waits for, also through jobs that follow them:
// what those skip is an outcome too.
func awaited(runners []*Runner) map[string]bool {
	all, after := map[string]bool{}, map[string][]string{}
	for _, r := range runners {
		after[r.Name()] = r.job.Policy.After
	}
	var add func(jobs []string)
	add = func(jobs []string) {
		for _, job := range jobs {
			if !all[job] {
				all[job] = true
				add(after[job])
			}
		}
	}
	for _, r := range runners {
		if r.job.Policy.AfterAny {
			add(r.job.Policy.After)
		}
	}
	return all
}

// knowOrders reads the orders of operators, and reports whether it could. What was known before says nothing of an order
// that has come since. If that fails it tries once more, a moment after the jobs of the same replica: one read is then
// enough for all.
func knowOrders(ctx context.Context, r *Replica) bool {
	if r.Orders.Read(ctx, r.Orders.Now()) {
		return true
	}
	again := r.Orders.Now()
	lease.Sleep(ctx, control.Again+control.Again/10)
	return r.Orders.Read(ctx, again)
}

// readWishes reads the entries of the jobs that have one, each by its name.
func readWishes(ctx context.Context, runners []*Runner) map[string]*wish {
	all, known := map[string]*wish{}, listAll(ctx, runners)
	var wait sync.WaitGroup
	for _, r := range runners {
		if r.job.EveryReplica || r.Singleton() {
			continue
		}
		w := &wish{}
		all[r.Name()] = w
		wait.Go(func() { r.readWish(ctx, &known, w) })
	}
	wait.Wait()
	return all
}

// readWish reads the entry. A missing entry counts as made now: it is made by the next pass.
func (r *Runner) readWish(ctx context.Context, known *reads.Listing, w *wish) {
	w.entry, w.read = known.Entry(ctx, r.client)
	if errors.Is(w.read, fs.ErrNotExist) {
		w.read, w.entry.State = nil, store.Available
		w.rec = r.job.Policy.New(r.replica.App, r.job.Name, plan.View{Now: r.now(), Since: r.replica.Started()}, time.Time{})
		return
	}
	if w.read != nil {
		return
	}
	if w.rec, w.bad = store.DecodeRecord(w.entry.Record, r.replica.App, r.job.Name); w.bad == nil {
		w.bad = plan.Unusable(&w.rec, boundsOf(r.client))
	}
}

// wanted returns when a replica is wanted for this job. A record that cannot be used stays as it is until a person corrects
// it, so there is nothing to look for before the next tick.
func (r *Runner) wanted(all map[string]*wish, awaited bool, now time.Time) time.Time {
	p, w := &r.job.Policy, all[r.Name()]
	switch {
	case w.read != nil:
		return sooner(now.Add(wantedUnread), p.Ticks.Next(now))
	case w.bad != nil:
		return p.Ticks.Next(now)
	}
	v := plan.View{Record: &w.rec, State: w.entry.State, ETag: w.entry.ETag, Now: now, Since: r.replica.Started(), Control: r.orders(), Awaited: awaited}
	_, v.Break.Able = r.client.Store.(store.ConditionalBreaker)
	for _, name := range p.After {
		before := plan.Predecessor{Job: name}
		if b := all[name]; b.read == nil && b.bad == nil {
			before = plan.PredecessorOf(&b.rec, now)
		}
		v.Before = append(v.Before, before)
	}
	return p.Wanted(v)
}

// sooner returns the earlier of two instants; zero is never.
func sooner(a, b time.Time) time.Time {
	if a.IsZero() || b.IsZero() {
		return instant.Later(a, b)
	}
	return instant.Earlier(a, b)
}
