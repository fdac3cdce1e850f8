package telemetry

import (
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// counters are the metrics of what has happened on this replica. docs/metrics.md has a row for
// each, and for each of the gauges.
type counters struct {
	runs, settled, late, takeovers, lost, dropped metric.Int64Counter

	duration, delay, renewals, calls metric.Float64Histogram
}

// scope names this instrumentation.
const scope = "github.com/soloist-go/soloist"

// jobLabel is the label with the job's name. Prometheus has a label "job" of its own, for
// what it scrapes, and would rename another one of that name.
const jobLabel = "job_name"

// of is that label.
func of(job string) metric.MeasurementOption {
	return metric.WithAttributeSet(attribute.NewSet(attribute.String(jobLabel, job)))
}

// Limits of the buckets in seconds.
var (
	runTimes   = []float64{.1, .5, 1, 5, 15, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21600, 86400}
	delayTimes = []float64{.05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600}
	callTimes  = []float64{.0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}
)

// newCounters makes the counters and histograms.
func newCounters(m metric.Meter) *counters {
	b := builder{m}
	return &counters{
		runs:      b.counter("soloist.runs", "{run}", "Runs that ended on this replica, by outcome."),
		settled:   b.counter("soloist.ticks.settled", "{tick}", "Ticks that did not run to their end, by the outcome that this replica recorded for them."),
		late:      b.counter("soloist.ticks.late", "{tick}", "Ticks that have not succeeded by their time, as this replica was the one to tell."),
		takeovers: b.counter("soloist.takeovers", "{run}", "Claims by this replica after a run of another replica had no end, by reason."),
		lost:      b.counter("soloist.leases.lost", "{lease}", "Leases that this replica could no longer trust during a run."),
		dropped:   b.counter("soloist.events.dropped", "{event}", "Events that are in no metric, since this replica was too slow for them."),

		duration: b.histogram("soloist.run.duration", "Duration of the runs that ended on this replica, from the first start.", runTimes),
		delay:    b.histogram("soloist.run.start_delay", "Delay from a tick to the first start of its run on this replica.", delayTimes),
		renewals: b.histogram("soloist.lease.renewal.duration", "Duration of the successful renewals of a lease by this replica.", callTimes),
		calls:    b.histogram("soloist.storage.call.duration", "Duration of the calls of this replica to the store, by operation and result.", callTimes),
	}
}

// A builder makes instruments. An error would be about a name or a limit: the page has all of them.
type builder struct{ metric.Meter }

func (b builder) counter(name, unit, help string) metric.Int64Counter {
	c, _ := b.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(help))
	return c
}

func (b builder) histogram(name, help string, limits []float64) metric.Float64Histogram {
	buckets := metric.WithExplicitBucketBoundaries(limits...)
	h, _ := b.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(help), buckets)
	return h
}

func (b builder) gauge(name, unit, help string) metric.Float64ObservableGauge {
	g, _ := b.Float64ObservableGauge(name, metric.WithUnit(unit), metric.WithDescription(help))
	return g
}
