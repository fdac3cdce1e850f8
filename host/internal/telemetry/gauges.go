package telemetry

import (
	"context"
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/store"
)

// observe sets all gauges. It is called whenever the metrics are read.
func (t *Telemetry) observe(ctx context.Context, o metric.Observer) error {
	h, m := t.scheduler.Health(), t.metrics
	o.ObserveFloat64(m.skew, h.Skew.Seconds())
	o.ObserveFloat64(m.up, one(h.Storage == nil && (h.Reached || !t.asksStore())))
	for _, name := range t.names() {
		o.ObserveFloat64(m.running, one(slices.Contains(h.Running, name)), of(name))
		o.ObserveFloat64(m.overrun, one(h.Overrun[name] != nil), of(name))
		o.ObserveFloat64(m.broken, one(h.Broken[name] != nil), of(name))
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	if t.look == nil {
		return nil
	}
	now := t.now().Add(-h.Skew) // ticks come due by the store's clock
	for _, st := range t.look(ctx) {
		t.observeRecord(o, &st, now)
	}
	return nil
}

// observeRecord sets the gauges of a job that follow from its record. Without a record
// that can be read there are none: zero would look like good news.
func (t *Telemetry) observeRecord(o metric.Observer, st *soloist.JobStatus, now time.Time) {
	if st.EveryReplica || st.Err != nil {
		return
	}
	job := of(st.Name)
	o.ObserveFloat64(t.metrics.failures, float64(max(st.Record.Failures, 0)), job)
	o.ObserveFloat64(t.metrics.lastSuccess, unix(lastSuccess(&st.Record)), job)
	if !st.Singleton {
		o.ObserveFloat64(t.metrics.overdue, overdue(st, now).Seconds(), job)
		o.ObserveFloat64(t.metrics.paused, one(st.Paused), job)
	}
}

// overdue is for how long the oldest tick that no replica has claimed or settled has
// been due. Ticks that come due during a run wait for its end, so they are not overdue.
func overdue(st *soloist.JobStatus, now time.Time) time.Duration {
	if st.Next.IsZero() || st.Record.MayRun() && st.Lease.Live() {
		return 0
	}
	return max(now.Sub(st.Next), 0)
}

// lastSuccess is the end of the newest run that succeeded; zero: none has. A replica with
// an older program may have written a success into the history alone.
func lastSuccess(r *store.Record) time.Time {
	for _, f := range r.History {
		if f.Status == store.Succeeded && f.End.After(r.Succeeded) {
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

// jobLabel is the label with the job's name. Prometheus has a label "job" of its own, for
// what it scrapes, and would rename another one of that name.
const jobLabel = "job_name"

// of is that label.
func of(job string) metric.MeasurementOption {
	return metric.WithAttributeSet(attribute.NewSet(attribute.String(jobLabel, job)))
}

// now is the scheduler's wall clock.
func (t *Telemetry) now() time.Time {
	if t.scheduler.Now != nil {
		return t.scheduler.Now()
	}
	return time.Now()
}

// names are those of jobs and singletons.
func (t *Telemetry) names() (names []string) {
	for _, j := range t.scheduler.Jobs {
		names = append(names, j.Name)
	}
	for _, g := range t.scheduler.Singletons {
		names = append(names, g.Name)
	}
	return names
}

// asksStore reports whether anything needs the store.
func (t *Telemetry) asksStore() bool {
	return len(t.scheduler.Singletons) > 0 || slices.ContainsFunc(t.scheduler.Jobs, func(j soloist.Job) bool { return !j.EveryReplica })
}
