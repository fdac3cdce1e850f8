// Package telemetry makes metrics of what a replica does, which are at /metrics for Prometheus, and passes what it
// measures to an [Exporter].
//
// Counters and histograms are about this replica. They come from events and from calls
// to the store. Gauges of a job come from its record, so they are the same on each
// replica. Labels and attributes are names of jobs, what a run is about, and words of
// this package: never text of an error, in which a secret may be.
package telemetry

import (
	"compress/gzip"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"

	process "github.com/VictoriaMetrics/metrics"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/event"
)

// A Telemetry measures one scheduler.
type Telemetry struct {
	values values
	export Export
	gauges *gauges
	target string // the line that says who is measured
	page   page
}

// Open makes a Telemetry for a scheduler and makes the scheduler use it: its store and
// its jobs are wrapped, and it gets the events. It has to be called before any method of the scheduler. The version is that of the
// program, empty if it is not known. Nothing is exported if export is nil.
func Open(s *soloist.Scheduler, version string, log *slog.Logger, export Exporter) *Telemetry {
	if export == nil {
		export = NoExporter
	}
	t := &Telemetry{gauges: newGauges(s), target: target(s, version)}
	t.page.render = http.HandlerFunc(t.render)
	t.export = export(Source{Scheduler: s, Version: version, Log: log, Gauges: t.gauges.observe})
	t.startAtZero(s)
	s.Store, s.Events = counted(s.Store, t), t.Event
	return t
}

func (t *Telemetry) add(m *Metric, n int64, l Labels) {
	t.values.add(m, n, l)
	if t.export.Metrics != nil {
		t.export.Metrics.Add(m, n, l)
	}
}

func (t *Telemetry) record(m *Metric, seconds float64, l Labels) {
	t.values.record(m, seconds, l)
	if t.export.Metrics != nil {
		t.export.Metrics.Record(m, seconds, l)
	}
}

// Watch sets where metrics about jobs on all replicas come from; nil: there are none.
// It waits until the last one is not asked any more.
func (t *Telemetry) Watch(look Look) { t.gauges.watch(look) }

// Event measures an event of the scheduler. It does not wait for anything.
func (t *Telemetry) Event(e event.Event) {
	if t.export.Traces != nil {
		t.export.Traces.Event(e)
	}
	t.count(e)
}

// ServeHTTP answers with all metrics in the text format of Prometheus.
func (t *Telemetry) ServeHTTP(w http.ResponseWriter, r *http.Request) { t.page.ServeHTTP(w, r) }

// render writes all metrics, as gzip if that is asked for.
func (t *Telemetry) render(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	to := io.Writer(w)
	if r.Header.Get("Accept-Encoding") == "gzip" {
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		defer z.Close()
		to = z
	}
	lines := map[*Metric]*text{} // of the gauges, which come job by job
	t.gauges.observe(r.Context(), func(m *Metric, v float64, l Labels) {
		if lines[m] == nil {
			lines[m] = &text{}
			lines[m].head(m)
		}
		lines[m].line(m.prometheus(), l, "", v)
	})
	for _, m := range All() {
		p := lines[m]
		if p == nil {
			p = &text{}
			t.values.write(p, m)
		}
		p.WriteTo(to)
	}
	io.WriteString(to, t.target)
	process.WriteProcessMetrics(to)
	process.WriteFDMetrics(to)
}

// target is the metric that says who is measured, as OpenTelemetry has it. OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES
// override it.
func target(s *soloist.Scheduler, version string) string {
	who := map[string]string{"service.name": s.App, "service.instance.id": s.Replica, "service.version": version}
	for pair := range strings.SplitSeq(os.Getenv("OTEL_RESOURCE_ATTRIBUTES"), ",") {
		name, value, ok := strings.Cut(pair, "=")
		if value, err := url.PathUnescape(strings.TrimSpace(value)); ok && err == nil {
			who[strings.TrimSpace(name)] = value
		}
	}
	if name := os.Getenv("OTEL_SERVICE_NAME"); name != "" {
		who["service.name"] = name
	}
	var labels []string
	for name, value := range who {
		if value != "" {
			labels = append(labels, labelName(name)+`="`+escape.Replace(value)+`"`)
		}
	}
	slices.Sort(labels)
	return "# HELP target_info Which app and replica this is.\n# TYPE target_info gauge\ntarget_info{" + strings.Join(labels, ",") + "} 1\n"
}

// labelName is the name with what a label may not have replaced.
func labelName(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, name)
}

// MakeDefault makes what a job measures with OpenTelemetry itself go the same way. It
// changes the whole process.
func (t *Telemetry) MakeDefault() {
	if t != nil {
		t.export.MakeDefault()
	}
}

// Close sends what has not been sent. A nil Telemetry has nothing to send.
func (t *Telemetry) Close() {
	if t != nil {
		t.export.Close()
	}
}
