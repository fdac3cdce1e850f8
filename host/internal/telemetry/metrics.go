package telemetry

import "strings"

// A Metric is what is measured: docs/metrics.md has a row for each.
type Metric struct {
	Kind   Kind
	Name   string // as OpenTelemetry has it
	Unit   string
	Help   string
	Limits []float64 // of the buckets of a histogram, in seconds
}

// A Kind is how a metric is measured, in the word of Prometheus.
type Kind string

// The kinds.
const (
	Counter   Kind = "counter"
	Histogram Kind = "histogram"
	Gauge     Kind = "gauge"
)

// A Label says what a measurement is about.
type Label struct{ Name, Value string }

// Labels are at most two, by name; the others are empty.
type Labels [2]Label

// jobLabel is the label with the job's name. Prometheus has a label "job" of its own, for
// what it scrapes, and would rename another one of that name.
const jobLabel = "job_name"

// of is that label.
func of(job string) Labels { return Labels{{jobLabel, job}} }

// Limits of the buckets in seconds.
var (
	runTimes   = []float64{.1, .5, 1, 5, 15, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21600, 86400}
	delayTimes = []float64{.05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600}
	callTimes  = []float64{.0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}
)

// The metrics of what has happened on this replica.
var (
	runs      = &Metric{Counter, "soloist.runs", "{run}", "Runs that ended on this replica, by outcome.", nil}
	settled   = &Metric{Counter, "soloist.ticks.settled", "{tick}", "Ticks that did not run to their end, by the outcome that this replica recorded for them.", nil}
	late      = &Metric{Counter, "soloist.ticks.late", "{tick}", "Ticks that have not succeeded by their time, as this replica was the one to tell.", nil}
	takeovers = &Metric{Counter, "soloist.takeovers", "{run}", "Claims by this replica after a run of another replica had no end, by reason.", nil}
	lost      = &Metric{Counter, "soloist.leases.lost", "{lease}", "Leases that this replica could no longer trust during a run.", nil}
	dropped   = &Metric{Counter, "soloist.events.dropped", "{event}", "Events that are in no metric, since this replica was too slow for them.", nil}

	duration = &Metric{Histogram, "soloist.run.duration", "s", "Duration of the runs that ended on this replica, from the first start.", runTimes}
	delay    = &Metric{Histogram, "soloist.run.start_delay", "s", "Delay from a tick to the first start of its run on this replica.", delayTimes}
	renewals = &Metric{Histogram, "soloist.lease.renewal.duration", "s", "Duration of the successful renewals of a lease by this replica.", callTimes}
	calls    = &Metric{Histogram, "soloist.storage.call.duration", "s", "Duration of the calls of this replica to the store, by operation and result.", callTimes}
)

// The metrics of what is the case when they are read.
var (
	skew    = &Metric{Gauge, "soloist.clock.skew", "s", "How far the clock of this machine is ahead of the store's, as far as that is proved.", nil}
	up      = &Metric{Gauge, "soloist.storage.up", "", "1: the store answers this replica.", nil}
	running = &Metric{Gauge, "soloist.running", "", "1: the job runs on this replica.", nil}
	overrun = &Metric{Gauge, "soloist.overrun", "", "1: a run of the job on this replica goes on though its context has ended.", nil}
	broken  = &Metric{Gauge, "soloist.job.broken", "", "1: this replica cannot run the job; /healthz says why.", nil}

	failures   = &Metric{Gauge, "soloist.job.failures", "", "Runs that failed or stalled since the last success, on all replicas.", nil}
	overdueFor = &Metric{Gauge, "soloist.tick.overdue", "s", "For how long a tick has been due that no replica has claimed or settled; 0 while the job runs.", nil}
	lateTicks  = &Metric{Gauge, "soloist.job.late", "{tick}", "Ticks since the last success that have not succeeded by their time, told or not.", nil}
	succeeded  = &Metric{Gauge, "soloist.job.last_success_timestamp", "s", "End of the last run that succeeded, on any replica, as Unix time; 0: none has.", nil}
	paused     = &Metric{Gauge, "soloist.job.paused", "", "1: the ticks of the job are skipped.", nil}
)

// All returns the metrics.
func All() []*Metric {
	return []*Metric{skew, dropped, broken, failures, succeeded, lateTicks, paused, renewals, lost, overrun, duration, delay,
		running, runs, calls, up, takeovers, overdueFor, late, settled}
}

// prometheus is the name that Prometheus has it by.
func (m *Metric) prometheus() string {
	name := strings.ReplaceAll(m.Name, ".", "_")
	if m.Unit == "s" {
		name += "_seconds"
	}
	if m.Kind == Counter {
		name += "_total"
	}
	return name
}
