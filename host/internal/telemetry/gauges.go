package telemetry

import (
	"context"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/otel/metric"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/internal/desk"
	"github.com/soloist-go/soloist/internal/record"
)

// A Look returns what the records say now, from a cache: it is called for each scrape.
type Look func(context.Context) []desk.Status

// gauges are the metrics of what is the case when they are read.
type gauges struct {
	skew, up, running, overrun, broken           metric.Float64ObservableGauge
	failures, overdue, late, lastSuccess, paused metric.Float64ObservableGauge

	scheduler *soloist.Scheduler
	labels    map[string]metric.MeasurementOption // of each job: a scrape needs all of them several times

	mu   sync.RWMutex // held for reading while look is called
	look Look
}

// newGauges makes the gauges of a scheduler.
func newGauges(m metric.Meter, s *soloist.Scheduler) (*gauges, error) {
	b := builder{m}
	g := &gauges{
		scheduler: s, labels: map[string]metric.MeasurementOption{},

		skew:    b.gauge("soloist.clock.skew", "s", "How far the clock of this machine is ahead of the store's, as far as that is proved."),
		up:      b.gauge("soloist.storage.up", "", "1: the store answers this replica."),
		running: b.gauge("soloist.running", "", "1: the job runs on this replica."),
		overrun: b.gauge("soloist.overrun", "", "1: a run of the job on this replica goes on though its context has ended."),
		broken:  b.gauge("soloist.job.broken", "", "1: this replica cannot run the job; /healthz says why."),

		failures:    b.gauge("soloist.job.failures", "", "Runs that failed or stalled since the last success, on all replicas."),
		overdue:     b.gauge("soloist.tick.overdue", "s", "For how long a tick has been due that no replica has claimed or settled; 0 while the job runs."),
		late:        b.gauge("soloist.job.late", "{tick}", "Ticks since the last success that have not succeeded by their time, told or not."),
		lastSuccess: b.gauge("soloist.job.last_success_timestamp", "s", "End of the last run that succeeded, on any replica, as Unix time; 0: none has."),
		paused:      b.gauge("soloist.job.paused", "", "1: the ticks of the job are skipped."),
	}
	for _, name := range names(s) {
		g.labels[name] = of(name)
	}
	_, err := m.RegisterCallback(g.observe, g.skew, g.up, g.running, g.overrun, g.broken, g.failures, g.overdue, g.late, g.lastSuccess, g.paused)
	return g, err
}

// watch sets where metrics about jobs on all replicas come from. It waits until the last one is
// not asked any more.
func (g *gauges) watch(look Look) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.look = look
}

// observe sets all gauges. It is called whenever the metrics are read.
func (g *gauges) observe(ctx context.Context, o metric.Observer) error {
	h := g.scheduler.Health()
	o.ObserveFloat64(g.skew, h.Skew.Seconds())
	o.ObserveFloat64(g.up, one(h.Storage == nil && (h.Reached || !asksStore(g.scheduler))))
	running := map[string]bool{}
	for _, name := range h.Running {
		running[name] = true
	}
	for name, job := range g.labels {
		o.ObserveFloat64(g.running, one(running[name]), job)
		o.ObserveFloat64(g.overrun, one(h.Overrun[name] != nil), job)
		o.ObserveFloat64(g.broken, one(h.Broken[name] != nil), job)
	}
	g.mu.RLock()
	defer g.mu.RUnlock()
	if g.look == nil {
		return nil
	}
	now := g.now().Add(-h.Skew) // ticks come due by the store's clock
	for _, st := range g.look(ctx) {
		g.observeRecord(o, &st, now)
	}
	return nil
}

// observeRecord sets the gauges of a job that follow from its record. Without a record
// that can be read there are none: zero would look like good news.
func (g *gauges) observeRecord(o metric.Observer, st *desk.Status, now time.Time) {
	if st.EveryReplica || st.Err != nil {
		return
	}
	job, ok := g.labels[st.Name]
	if !ok {
		return
	}
	o.ObserveFloat64(g.failures, float64(max(st.Record.Failures, 0)), job)
	o.ObserveFloat64(g.lastSuccess, unix(lastSuccess(&st.Record)), job)
	if !st.Singleton {
		o.ObserveFloat64(g.overdue, overdue(st, now).Seconds(), job)
		o.ObserveFloat64(g.late, float64(st.Late.Count), job)
		o.ObserveFloat64(g.paused, one(st.Paused), job)
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
