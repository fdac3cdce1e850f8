package runner

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/internal/control"
	"github.com/soloist-go/soloist/internal/instant"
	"github.com/soloist-go/soloist/internal/lease"
	"github.com/soloist-go/soloist/internal/plan"
	"github.com/soloist-go/soloist/internal/reads"
	"github.com/soloist-go/soloist/internal/record"
	"github.com/soloist-go/soloist/store"
)

// A Status is what the store says about one job; soloist.JobStatus explains the fields.
type Status struct {
	Name         string
	Shard        Shard // which part the job is
	Singleton    bool
	EveryReplica bool
	Schedule     string
	Lease        store.LeaseState
	Record       record.Record
	Checkpoint   int64
	Next         time.Time
	Foreign      bool
	Waits        time.Time
	Paused       bool
	Pause        record.Pause // of the orders, while it is in force
	Err          error
	Occupied     error
	After        string
	Late         record.Late
	Awaits       string
	Begins       time.Time
	Over         time.Time
	Backfill     record.BackfillProgress
}

// Statuses returns the statuses of the runners, which are all of one replica. It changes
// neither the entries nor the views of the runners, so that any goroutine may call it.
func Statuses(ctx context.Context, runners []*Runner) []Status {
	all, known := make([]Status, len(runners)), listAll(ctx, runners)
	var wait sync.WaitGroup
	for i, r := range runners {
		wait.Go(func() {
			if r.job.EveryReplica {
				all[i] = inquire(r).statusHere(r.clock.Wall())
				return
			}
			entry, err := known.Entry(ctx, r.client)
			all[i] = inquire(r).status(&entry, err)
		})
	}
	wait.Wait()
	addAwaited(runners, all)
	return all
}

// An inquiry is what is known of a job at one instant besides its record. It changes nothing that a runner decides by.
type inquiry struct {
	base
	at     time.Time
	orders record.JobControl
}

func inquire(r *Runner) inquiry { return inquiry{r.base, r.clock.Best(), r.orders()} }

// addAwaited adds to the statuses of followers what their next tick waits for.
func addAwaited(runners []*Runner, all []Status) {
	records := make(map[string]*record.Record, len(all))
	for i := range all {
		if st := &all[i]; st.Err == nil {
			records[st.Name] = &st.Record
		}
	}
	for i, r := range runners {
		if st := &all[i]; r.job.Policy.Follows() {
			st.After = strings.Join(r.job.Policy.After, ", ")
			if st.Err == nil && st.Lease != "" && !st.Foreign {
				st.Awaits = strings.Join(inquire(r).awaited(&st.Record, st.Lease, records), ", ")
			}
		}
	}
}

// awaited returns the predecessors that a tick of the record waits for, as far as their records show.
func (q inquiry) awaited(rec *record.Record, state store.LeaseState, records map[string]*record.Record) (names []string) {
	p := &q.job.Policy
	v := plan.View{Record: rec, State: state, Now: q.at, Since: rec.Definition.Since, Control: q.orders}
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

// listAll lists the entries of the runners, if that is cheaper than to read each.
func listAll(ctx context.Context, runners []*Runner) reads.Listing {
	var clients []*lease.Client
	for _, r := range runners {
		if !r.job.EveryReplica {
			clients = append(clients, r.client)
		}
	}
	return reads.List(ctx, runners[0].replica.App, clients)
}

// statusHere is the status of a job that runs on each replica, by its wall clock.
func (q inquiry) statusHere(now time.Time) Status {
	p := &q.job.Policy
	return Status{Name: q.job.Name, Schedule: q.job.Schedule(), EveryReplica: true, Next: p.Ticks.Next(now),
		Paused: q.paused(&record.Record{}), Pause: q.pause(), Begins: plan.Begins(p.Ticks, now), Over: p.Over(&record.Record{Watermark: now}, now)}
}

// paused reports whether ticks are skipped, by the settings of this replica, by the record,
// or by the orders that this replica has read.
func (q inquiry) paused(rec *record.Record) bool {
	p := &q.job.Policy
	return p.Paused || plan.View{Now: q.at, Record: rec, Control: q.orders}.IsPaused()
}

// pause returns the order that pauses the job, zero if none does.
func (q inquiry) pause() record.Pause {
	if p := q.orders.Pause; p.On(q.at) {
		return p
	}
	return record.Pause{}
}

// status returns what an answer to a read of the entry says.
func (q inquiry) status(entry *store.Entry, err error) Status {
	j, p := q.job, &q.job.Policy
	st := Status{Name: j.Name, Shard: j.Shard, Singleton: q.Singleton()}
	if !st.Singleton {
		st.Schedule = j.Schedule()
	}
	rec := &st.Record
	switch {
	case errors.Is(err, fs.ErrNotExist): // it is made when a scheduler starts
		none := &record.Record{Watermark: q.at}
		st.Next, st.Begins, st.Over = p.NextTick(none), plan.Begins(p.Ticks, q.at), p.Over(none, q.at)
	case err != nil:
		st.Err = err
	default:
		q.readable() // whatever the record says
		st.Lease, st.Checkpoint = entry.State, entry.Checkpoint
		if *rec, st.Err = q.decode(entry); st.Err == nil {
			st.Err = plan.Unusable(rec, q.bounds())
			st.Next, st.Waits, st.Begins, st.Over = p.NextTick(rec), p.Waits(rec, q.at), plan.Begins(p.Ticks, q.at), p.Over(rec, q.at)
		}
		if st.Err != nil {
			break
		}
		if rec.Definition.Spec != "" && rec.Definition.Spec != p.Spec {
			st.Foreign, st.Next, st.Begins, st.Over = true, plan.Due(rec), time.Time{}, time.Time{}
		}
		st.Late = plan.LateNow(p, rec, q.at, q.orders)
		st.Occupied = q.occupied(&st)
	}
	st.Paused, st.Pause = st.Err == nil && q.paused(rec), q.pause()
	st.Backfill = q.backfill(rec)
	// Ticks of a pause do not count as due: a caller that waits for the next one would not wait.
	if st.Paused && !p.Paused && !st.Foreign && p.Ticks != nil && st.Next.Before(q.at) {
		st.Next = p.Ticks.Next(q.at)
	}
	return st
}

// occupied returns that a client which claims nothing holds the lease. This replica
// may have watched it; a process that has only just started judges by how long a tick
// has been due.
func (q inquiry) occupied(st *Status) error {
	if !st.Lease.Live() || st.Record.MayRun() {
		return nil
	}
	seen := q.source.state.get().broken
	if err, ok := errors.AsType[*occupiedError](seen); ok {
		return err
	}
	if _, denied := errors.AsType[*deniedError](seen); denied { // the lease may be this replica's own
		return nil
	}
	if late := q.at.Sub(st.Next); !st.Next.IsZero() && late > q.job.Policy.OccupiedAfter(&st.Record) {
		return fmt.Errorf("leased by a client that has claimed nothing in the %s since a tick came due: if that goes on, `unlock %s` frees it", late.Round(time.Second), q.job.Name)
	}
	return nil
}

// A decoded is the record that the last status of a job has shown. A page that reads the
// statuses of many jobs every few seconds decodes only those that have changed.
type decoded struct {
	mu   sync.Mutex
	etag string // of rec; empty: nothing is kept
	rec  record.Record
}

// decode returns the record of an entry, which shares its history with earlier answers and nothing that can be written
// in place.
func (q inquiry) decode(e *store.Entry) (record.Record, error) {
	if q.source.state.shown.Load() == nil {
		q.source.state.shown.CompareAndSwap(nil, &decoded{}) // it is as large as all else that a job keeps
	}
	d := q.source.state.shown.Load()
	d.mu.Lock()
	defer d.mu.Unlock()
	if e.ETag == "" || e.ETag != d.etag {
		rec, err := record.Decode(e.Record, q.replica.App, q.job.Name)
		if err != nil {
			return rec, err
		}
		d.etag, d.rec = e.ETag, rec
	}
	rec := d.rec.Clone()
	rec.Counts = maps.Clone(rec.Counts) // what a caller writes there is its own
	rec.Backfill.Counts, rec.Backfill.Open = maps.Clone(rec.Backfill.Counts), slices.Clone(rec.Backfill.Open)
	return rec, nil
}

// backfill returns what is known of the last backfill of the job, from its record and the orders that this
// replica has read.
func (q inquiry) backfill(rec *record.Record) (b record.BackfillProgress) {
	b.Order = q.orders.Backfill
	b.Order.Spans = slices.Clone(b.Order.Spans) // the spans of a status are the caller's
	if b.Order.Seq == 0 || q.job.Policy.Ticks == nil {
		return record.BackfillProgress{}
	}
	if rec.Backfill.Seq == b.Order.Seq {
		b.Done = rec.Backfill
	}
	if rec.Run.Status == event.Running && event.BackfillOf(rec.Run.Request) == b.Order.Seq {
		b.Tick, b.Beside = underWay(rec)
	}
	b.Over = b.Tick.IsZero() && q.job.Policy.BackfillOver(rec, &b.Order)
	return b
}

// underWay returns the first tick of a run that has no outcome, zero if there is none, and how many others there are.
func underWay(rec *record.Record) (first time.Time, beside int) {
	if !plan.Several(rec) {
		return rec.Run.Tick, 0
	}
	all := plan.UnderWay(rec)
	if len(all) == 0 {
		return time.Time{}, 0
	}
	return all[0].Tick, len(all) - 1
}

// wantedUnread is when a replica is wanted that may learn what this one could not read.
const wantedUnread = time.Minute

// A wish is what an entry says about when a replica is wanted.
type wish struct {
	entry store.Entry
	rec   record.Record
	read  error // the entry could not be read
	bad   error // its record cannot be used
}

// Wanted returns when a replica is wanted next for any job of the runners, which all belong to one replica; now or
// before: there is something to do. Zero: never. It changes neither the entries nor the views of the runners, so that any
// goroutine may call it.
func Wanted(ctx context.Context, runners []*Runner) (next time.Time) {
	replica := runners[0].replica
	// What was known of the orders says nothing of one that has come since. If they cannot be read they are read once more, a
	// moment after the jobs of the same replica: one read is then enough for all.
	orders := replica.Orders.Read(ctx, replica.Orders.Now())
	if !orders {
		again := replica.Orders.Now()
		lease.Sleep(ctx, control.Again+control.Again/10)
		orders = replica.Orders.Read(ctx, again)
	}
	wishes, awaited := readWishes(ctx, runners), awaited(runners)
	for _, r := range runners {
		if !r.job.EveryReplica && !r.Singleton() {
			next = sooner(next, inquire(r).wanted(wishes, awaited[r.job.Name]))
		}
	}
	if !orders { // an order may be newer than what is known
		next = sooner(next, replica.Clock.Best().Add(wantedUnread))
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

// readWishes reads the entries of the jobs that have one, each by its name.
func readWishes(ctx context.Context, runners []*Runner) map[string]*wish {
	all, known := map[string]*wish{}, listAll(ctx, runners)
	var wait sync.WaitGroup
	for _, r := range runners {
		if r.job.EveryReplica || r.Singleton() {
			continue
		}
		w := &wish{}
		all[r.job.Name] = w
		wait.Go(func() {
			w.entry, w.read = known.Entry(ctx, r.client)
			inquire(r).take(w)
		})
	}
	wait.Wait()
	return all
}

// take takes in what was read. A missing entry counts as made now: it is made by the next pass.
func (q inquiry) take(w *wish) {
	switch {
	case errors.Is(w.read, fs.ErrNotExist):
		w.read, w.entry.State = nil, store.Available
		w.rec = q.job.Policy.New(q.replica.App, q.job.Name, plan.View{Now: q.at, Since: q.replica.Started()}, time.Time{})
	case w.read == nil:
		w.rec, w.bad = q.usable(&w.entry, &record.Record{})
	}
}

// wanted returns when a replica is wanted for this job. A record that cannot be used stays as it is until a person corrects
// it, so there is nothing to look for before the next tick, unless time corrects it.
func (q inquiry) wanted(all map[string]*wish, awaited bool) time.Time {
	p, w := &q.job.Policy, all[q.job.Name]
	switch {
	case w.read != nil:
		return sooner(q.at.Add(wantedUnread), p.Ticks.Next(q.at))
	case w.bad != nil:
		next := p.Ticks.Next(q.at)
		if again := plan.RightAgain(&w.rec); again.After(q.at) {
			return sooner(again, next)
		}
		return next
	}
	v := plan.View{Record: &w.rec, State: w.entry.State, ETag: w.entry.ETag, Now: q.at, Since: q.replica.Started(), Control: q.orders, Awaited: awaited}
	_, v.Break.Able = q.client.Store.(store.ConditionalBreaker)
	for _, name := range p.After {
		before := plan.Predecessor{Job: name}
		if b := all[name]; b.read == nil && b.bad == nil {
			before = before.Updated(&b.rec, q.at)
		}
		v.Before = append(v.Before, before)
	}
	return plan.Wanted(p, v)
}

// sooner returns the earlier of two instants; zero is never.
func sooner(a, b time.Time) time.Time {
	if a.IsZero() || b.IsZero() {
		return instant.Later(a, b)
	}
	return instant.Earlier(a, b)
}
