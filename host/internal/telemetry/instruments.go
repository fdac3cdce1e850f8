package telemetry

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/metric"
)

// instruments are all metrics. docs/metrics.md has a row for each.
type instruments struct {
	runs, settled, takeovers, lost, dropped metric.Int64Counter

	duration, delay, renewals, calls metric.Float64Histogram

	skew, up, running, overrun, broken     metric.Float64ObservableGauge
	failures, overdue, lastSuccess, paused metric.Float64ObservableGauge
}

// Limits of the buckets in seconds.
var (
	runTimes   = []float64{.1, .5, 1, 5, 15, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21600, 86400}
	delayTimes = []float64{.05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600}
	callTimes  = []float64{.0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}
)

// newInstruments makes the instruments. observe sets the gauges whenever the metrics
// are read.
func newInstruments(m metric.Meter, observe func(context.Context, metric.Observer) error) (*instruments, error) {
	b := builder{meter: m}
	i := &instruments{
		runs:      b.counter("soloist.runs", "{run}", "Runs that ended on this replica, by outcome."),
		settled:   b.counter("soloist.ticks.settled", "{tick}", "Ticks that did not run to their end, by the outcome that this replica recorded for them."),
		takeovers: b.counter("soloist.takeovers", "{run}", "Claims by this replica after a run of another replica had no end, by reason."),
		lost:      b.counter("soloist.leases.lost", "{lease}", "Leases that this replica could no longer trust during a run."),
		dropped:   b.counter("soloist.events.dropped", "{event}", "Events that are in no metric, since this replica was too slow for them."),

		duration: b.histogram("soloist.run.duration", "Duration of the runs that ended on this replica, from the first start.", runTimes),
		delay:    b.histogram("soloist.run.start_delay", "Delay from a tick to the first start of its run on this replica.", delayTimes),
		renewals: b.histogram("soloist.lease.renewal.duration", "Duration of the successful renewals of a lease by this replica.", callTimes),
		calls:    b.histogram("soloist.storage.call.duration", "Duration of the calls of this replica to the store, by operation and result.", callTimes),

		skew:    b.gauge("soloist.clock.skew", "s", "How far the clock of this machine is ahead of the store's, as far as that is proved."),
		up:      b.gauge("soloist.storage.up", "", "1: the store answers this replica."),
		running: b.gauge("soloist.running", "", "1: the job runs on this replica."),
		overrun: b.gauge("soloist.overrun", "", "1: a run of the job on this replica goes on though its context has ended."),
		broken:  b.gauge("soloist.job.broken", "", "1: this replica cannot run the job; /healthz says why."),

		failures:    b.gauge("soloist.job.failures", "", "Runs that failed or stalled since the last success, on all replicas."),
		overdue:     b.gauge("soloist.tick.overdue", "s", "For how long a tick has been due that no replica has claimed or settled; 0 while the job runs."),
		lastSuccess: b.gauge("soloist.job.last_success_timestamp", "s", "End of the last run that succeeded, on any replica, as Unix time; 0: none has."),
		paused:      b.gauge("soloist.job.paused", "", "1: the ticks of the job are skipped."),
	}
	_, err := m.RegisterCallback(observe, i.skew, i.up, i.running, i.overrun, i.broken, i.failures, i.overdue, i.lastSuccess, i.paused)
	return i, errors.Join(b.err, err)
}

// A builder makes instruments and keeps the errors.
type builder struct {
	meter metric.Meter
	err   error
}

func (b *builder) counter(name, unit, help string) metric.Int64Counter {
	c, err := b.meter.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(help))
	b.err = errors.Join(b.err, err)
	return c
}

func (b *builder) histogram(name, help string, limits []float64) metric.Float64Histogram {
	h, err := b.meter.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(help), metric.WithExplicitBucketBoundaries(limits...))
	b.err = errors.Join(b.err, err)
	return h
}

func (b *builder) gauge(name, unit, help string) metric.Float64ObservableGauge {
	g, err := b.meter.Float64ObservableGauge(name, metric.WithUnit(unit), metric.WithDescription(help))
	b.err = errors.Join(b.err, err)
	return g
}
