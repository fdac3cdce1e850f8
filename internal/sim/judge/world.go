package judge

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/soloist-go/soloist/internal/entry"
	"github.com/soloist-go/soloist/internal/instant"
	"github.com/soloist-go/soloist/internal/sim/trace"
)

const (
	slack   = 15 * time.Millisecond // timers go by true time, and clocks do not
	noticed = time.Second + slack   // until a machine sees that it was suspended
	rests   = 2 * time.Minute       // until a healed cluster has left behind what befell it
)

// forever comes after each log.
var forever = time.Unix(1<<40, 0)

// A world is an index of a log.
type world struct {
	*trace.Log
	entries  map[string]*entryLog
	logs     []*entryLog // all entries, by name
	jobs     []*entryLog // those that are of no lock, group or key
	runs     []*run      // of all entries
	claims   []*claim
	of       map[trace.What][]*trace.Event
	frozen   map[string][]span // by replica, each with the time until that is noticed
	crashed  map[string]time.Time
	left     map[string]time.Time    // when a replica was killed or had stopped
	stopping map[string]*trace.Event // when it was asked to

	healed, calm, settled time.Time // zero if faults go on to the end
	aborted               time.Time // when the last replica of an aborted deploy came up; zero: there was none
	tasks                 []task    // whose progress is judged
	faults                []*fault  // where one comes at a time
}

// A task is a job or singleton of the last version of the program.
type task struct {
	*entryLog
	*trace.Definition
	paused bool // by its record in the end, or a job that it follows is
}

// due reports whether ticks come due for a task by its own schedule alone.
func (t *task) due() bool { return t.Every > 0 && t.Follows == "" && t.Group == "" && !t.paused }

// calm is from when on the progress of a task is judged. Others notice by a tick that is not run that the replica of an
// aborted deploy is gone, and take the job back minutes later.
func (t *task) calm(w *world) time.Time {
	if w.aborted.IsZero() {
		return w.calm
	}
	return later(w.calm, t.After(w.aborted).Add(trace.Patience))
}

// A fault is one thing that has happened to the cluster, or a job, or a run.
type fault struct {
	*trace.Event
	until time.Time // the next one comes
	e     *entryLog
	d     *trace.Definition
	r     *run // that it has hit
	hits  []*fault
}

func newWorld(l *trace.Log) *world {
	w := &world{Log: l, entries: map[string]*entryLog{}, of: map[trace.What][]*trace.Event{}, frozen: map[string][]span{},
		crashed: map[string]time.Time{}, left: map[string]time.Time{}, stopping: map[string]*trace.Event{}}
	slices.SortStableFunc(l.Events, func(a, b *trace.Event) int { return a.Time.Compare(b.Time) })
	for _, e := range l.Events {
		w.of[e.What] = append(w.of[e.What], e)
		switch e.What {
		case trace.Crash, trace.Gone:
			if w.left[e.Replica] = first(w.left[e.Replica], e.Time); e.What == trace.Crash {
				w.crashed[e.Replica] = e.Time
			}
		case trace.Stop:
			w.stopping[e.Replica] = e
		case trace.Freeze:
			w.frozen[e.Replica] = append(w.frozen[e.Replica], span{e.Time, e.End.Add(noticed)})
		case trace.Request:
			w.addRequest(e)
		}
	}
	for _, e := range slices.Concat(w.of[trace.Corrupted], w.of[trace.Loaded], w.of[trace.Effect]) {
		if on := w.entries[nameOf(e)]; on != nil {
			on.of[e.What] = append(on.of[e.What], e)
		}
	}
	slices.SortFunc(w.logs, func(a, b *entryLog) int { return cmp.Compare(a.name, b.name) })
	for _, e := range w.logs {
		if e.follow(w); !trace.IsSlot(e.name) {
			w.jobs = append(w.jobs, e)
		}
		w.claims = append(w.claims, e.claims...)
	}
	w.addRuns()
	w.findCalm()
	return w
}

// addRequest keeps a request about a job, a singleton, a slot or a key, and none about a document or a list.
func (w *world) addRequest(e *trace.Event) {
	if e.Job == "" || e.OfDocument() || strings.HasPrefix(e.Job, ".") {
		return
	}
	on := w.entries[e.Job]
	if on == nil {
		on = newEntryLog(e.Job)
		w.entries[e.Job], w.logs = on, append(w.logs, on)
	}
	on.requests = append(on.requests, e)
}

// addRuns finds the calls of functions. What a replica goes on with in our memory after its crash does not count.
func (w *world) addRuns() {
	for _, e := range w.of[trace.Ran] {
		on, c := w.entries[nameOf(e)], w.crashed[e.Replica]
		if on == nil || !c.IsZero() && e.Time.After(c) {
			continue
		}
		r := &run{Event: *e, e: on, d: w.definition(e.Replica, on.name)}
		if !c.IsZero() && r.goesOn(c) {
			r.End, r.Result = c, ""
		}
		if !c.IsZero() && r.Cancelled.After(c) {
			r.Cancelled, r.Why = time.Time{}, ""
		}
		if r.live = w.lives(r); r.d == nil || !r.d.EveryReplica {
			on.addRun(r)
		}
	}
	for _, e := range w.logs {
		w.runs = append(w.runs, e.runs...)
	}
}

// nameOf is the entry that a run or its effect is about.
func nameOf(e *trace.Event) string {
	if e.Lock != "" {
		return entry.OfSlot(entry.Lock, e.Slot, e.Lock)
	}
	return e.Job
}

// lives returns when the context of a run lives, less the suspensions of its machine.
func (w *world) lives(r *run) (all []span) {
	life := span{r.Time, r.over()}
	if life.to.IsZero() {
		life.to = w.end()
	}
	for _, f := range w.frozen[r.Replica] {
		if f.from.Before(life.to) && f.to.After(life.from) {
			all = append(all, span{life.from, f.from})
			life.from = f.to
		}
	}
	return slices.DeleteFunc(append(all, life), func(s span) bool { return !s.from.Before(s.to) })
}

// end is the time of the last event.
func (w *world) end() time.Time { return w.Events[len(w.Events)-1].Time }

// sleeps reports whether a machine was suspended at some moment of a time.
func (w *world) sleeps(replica string, from, to time.Time) bool {
	return slices.ContainsFunc(w.frozen[replica], func(f span) bool { return !f.from.After(to) && !f.to.Before(from) })
}

// isUp reports whether a replica that came up is still there at a time.
func (w *world) isUp(u *trace.Event, at time.Time) bool {
	gone := w.left[u.Replica]
	return !u.Time.After(at) && (gone.IsZero() || gone.After(at))
}

// upAt are the replicas that are up to stay.
func (w *world) upAt(at time.Time) []*trace.Event {
	return slices.DeleteFunc(slices.Clone(w.of[trace.Up]), func(u *trace.Event) bool { return u.Cause != "" || !w.isUp(u, at) })
}

// definition is what a replica has of a job, nil for nothing.
func (w *world) definition(replica, job string) *trace.Definition {
	all := w.Fleet[replica]
	if i := slices.IndexFunc(all, func(d trace.Definition) bool { return d.Name == job }); i >= 0 {
		return &all[i]
	}
	return nil
}

// latest is the definition of a job on the replica that came up last, to stay.
func (w *world) latest(job string) (d *trace.Definition) {
	for _, u := range w.of[trace.Up] {
		if one := w.definition(u.Replica, job); one != nil && u.Cause != trace.Aborted {
			d = one
		}
	}
	return d
}

// containerLost reports whether an operator deleted all entries, and all orders, between two times.
func (w *world) containerLost(from, to time.Time) bool {
	return w.befell(trace.Deleted, "", from, to.Add(1), "")
}

// befell reports whether something of some kinds has happened to a job between two times.
func (w *world) befell(what trace.What, job string, from, to time.Time, kinds ...string) bool {
	return slices.ContainsFunc(w.of[what], func(e *trace.Event) bool {
		return e.Job == job && slices.Contains(kinds, e.Op) && e.Time.After(from) && e.Time.Before(to)
	})
}

// findCalm finds when all faults were over, from when on progress is judged, and when everything due has its outcome. A log in
// which nothing heals has no tasks.
func (w *world) findCalm() {
	for _, u := range w.of[trace.Up] {
		if u.Cause == trace.Aborted {
			w.aborted = u.Time
		}
	}
	for _, e := range w.of[trace.Healed] {
		w.healed, w.calm, w.settled = e.Time, e.Time.Add(rests), later(e.End, e.Time.Add(trace.Settling))
	}
	for _, e := range w.jobs {
		if d := w.latest(e.name); !w.healed.IsZero() && d != nil && !d.EveryReplica && e.name != trace.Foreign {
			w.tasks = append(w.tasks, task{e, d, w.pausedItself(e.name)})
		}
	}
}

// pausedItself reports whether a job, or a job that it follows, is paused by its record in the end.
func (w *world) pausedItself(job string) bool {
	d, e := w.latest(job), w.entries[job]
	if e == nil || d == nil {
		return false
	}
	last := e.last(forever)
	return last != nil && !last.Orders.Paused.At.IsZero() || slices.ContainsFunc(d.Before(), w.pausedItself)
}

// first is the first of two times, of which a may be zero.
func first(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}

func later(a, b time.Time) time.Time { return instant.Later(a, b) }

// after is the index of the first of the events that comes after a time.
func after[T any](all []T, t time.Time, of func(T) time.Time) int {
	n, _ := slices.BinarySearchFunc(all, t, func(x T, t time.Time) int { return cmp.Or(of(x).Compare(t), -1) })
	return n
}

func clock(t time.Time) string { return trace.TimeOfDay(t) }

// A report says that a property does not hold at a time.
type report func(at time.Time, format string, args ...any)

// A property is something that holds in every log.
type property struct {
	name  string
	judge func(w *world, bad report)
}

// ofRuns judges each run: no is what holds for none of them.
func ofRuns(no func(w *world, r *run) bool, what string) func(*world, report) {
	return func(w *world, bad report) {
		for _, r := range w.runs {
			if no(w, r) {
				bad(r.Time, "%s %s", r, what)
			}
		}
	}
}
