package telemetry

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/internal/desk"
	"github.com/soloist-go/soloist/internal/record"
)

// A Look returns what the records say now, from a cache: it is called for each scrape.
type Look func(context.Context) []desk.Status

// gauges are the metrics of what is the case when they are read.
type gauges struct {
	scheduler *soloist.Scheduler
	names     []string // of its jobs and singletons

	mu   sync.RWMutex // held for reading while look is called
	look Look
}

// newGauges makes the gauges of a scheduler.
func newGauges(s *soloist.Scheduler) *gauges {
	all := names(s)
	slices.Sort(all)
	return &gauges{scheduler: s, names: all}
}

// watch sets where metrics about jobs on all replicas come from. It waits until the last one is
// not asked any more.
func (g *gauges) watch(look Look) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.look = look
}

// observe tells all gauges.
func (g *gauges) observe(ctx context.Context, o Observe) {
	h := g.scheduler.Health()
	o(skew, h.Skew.Seconds(), Labels{})
	o(up, one(h.Storage == nil && (h.Reached || !asksStore(g.scheduler))), Labels{})
	here := map[string]bool{}
	for _, name := range h.Running {
		here[name] = true
	}
	for _, name := range g.names {
		o(running, one(here[name]), of(name))
		o(overrun, one(h.Overrun[name] != nil), of(name))
		o(broken, one(h.Broken[name] != nil), of(name))
	}
	g.mu.RLock()
	defer g.mu.RUnlock()
	if g.look == nil {
		return
	}
	now := g.now().Add(-h.Skew) // ticks come due by the store's clock
	for _, st := range g.look(ctx) {
		g.observeRecord(o, &st, now)
	}
}

// observeRecord tells the gauges of a job that follow from its record. Without a record
// that can be read there are none: zero would look like good news.
func (g *gauges) observeRecord(o Observe, st *desk.Status, now time.Time) {
	if _, ours := slices.BinarySearch(g.names, st.Name); !ours || st.EveryReplica || st.Err != nil {
		return
	}
	job := of(st.Name)
	o(failures, float64(max(st.Record.Failures, 0)), job)
	o(succeeded, unix(lastSuccess(&st.Record)), job)
	if !st.Singleton {
		o(overdueFor, overdue(st, now).Seconds(), job)
		o(lateTicks, float64(st.Late.Count), job)
		o(paused, one(st.Paused), job)
	}
}

// overdue is for how long the oldest tick that no replica has claimed or settled has
// been due. Ticks that come due during a run wait for its end, so they are not overdue, nor are
// those that wait for another job.
func overdue(st *desk.Status, now time.Time) time.Duration {
	if st.Next.IsZero() || st.Awaits != "" || st.Record.MayRun() && st.Lease.Live() {
		return 0
	}
	return max(now.Sub(st.Next), 0)
}

// lastSuccess is the end of the newest run that succeeded; zero: none has. A replica with
// an older program may have written a success into the history alone.
func lastSuccess(r *record.Record) time.Time {
	for _, f := range r.History {
		if f.Status == event.Succeeded && f.End.After(r.Succeeded) {
			return f.End
		}
	}
	return r.Succeeded
}

// unix is a time as Prometheus has it.
func unix(t time.Time) float64 {
	if t.IsZero() {
		return 0
	}
	return float64(t.UnixMilli()) / 1000
}

// one is how a metric says yes and no.
func one(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

// now is the scheduler's wall clock.
func (g *gauges) now() time.Time {
	if g.scheduler.Now != nil {
		return g.scheduler.Now()
	}
	return time.Now()
}

// names are the names of jobs and singletons, or of their shards.
func names(s *soloist.Scheduler) (names []string) {
	for _, j := range s.Jobs {
		names = append(names, soloist.ShardNames(j.Name, j.Shards)...)
	}
	for _, g := range s.Singletons {
		names = append(names, soloist.ShardNames(g.Name, g.Shards)...)
	}
	return names
}

// asksStore reports whether anything needs the store.
func asksStore(s *soloist.Scheduler) bool {
	return len(s.Singletons) > 0 || slices.ContainsFunc(s.Jobs, func(j soloist.Job) bool { return !j.EveryReplica })
}
