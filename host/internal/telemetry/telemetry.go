// Package telemetry makes metrics and traces of what a replica does. Metrics are at
// /metrics for Prometheus; on request, both go to a collector by OTLP over HTTP.
//
// Counters and histograms are about this replica. They come from events and from calls
// to the store. Gauges of a job come from its record, so they are the same on each
// replica. Labels and attributes are names of jobs, what a run is about, and words of
// this package: never text of an error, in which a secret may be.
package telemetry

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	exporter "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/propagation"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/exemplar"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/event"
)

// A Telemetry measures one scheduler.
type Telemetry struct {
	log        *slog.Logger
	calls      recorder
	gauges     *gauges
	page       page
	meters     provider
	spans      tracerProvider // nil: no traces
	collectors []*collector
	patience   time.Duration // of Close with a collector that does not answer
}

// A provider of the SDK sends what was measured when it ends. Telemetry has no field of a
// type of the SDK: each package that imports this one would compile its generic code again.
type provider interface {
	Shutdown(context.Context) error
}

type tracerProvider interface {
	provider
	trace.TracerProvider
}

// Open makes a Telemetry for a scheduler and makes the scheduler use it: its store and
// its jobs are wrapped, and it gets the events. It has to be called before any method of the scheduler. The version is that of the
// program, empty if it is not known.
func Open(s *soloist.Scheduler, version string, log *slog.Logger) (*Telemetry, error) {
	t := &Telemetry{log: log, patience: 2 * time.Second}
	who := describe(s, version)
	registry := prometheus.NewRegistry() // its own: the default one may have metrics of other programs in it
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	t.page.render = promhttp.HandlerFor(registry, promhttp.HandlerOpts{ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn)})
	page, err := exporter.New(exporter.WithRegisterer(registry), exporter.WithoutScopeInfo())
	if err != nil {
		return nil, err
	}
	options := []sdkmetric.Option{sdkmetric.WithReader(page), sdkmetric.WithResource(who),
		sdkmetric.WithExemplarFilter(exemplar.AlwaysOffFilter), // neither Prometheus nor the collector gets them
		sdkmetric.WithCardinalityLimit(0)}                      // no limit: the program's jobs are the limit
	if c := t.collector("METRICS"); c != nil {
		options = append(options, sdkmetric.WithReader(sdkmetric.NewPeriodicReader(&metricExporter{c})))
	}
	meters := sdkmetric.NewMeterProvider(options...)
	t.meters = meters
	t.calls.counters = newCounters(meters.Meter(scope))
	if t.gauges, err = newGauges(meters.Meter(scope), s); err != nil {
		return nil, err
	}
	if c := t.collector("TRACES"); c != nil {
		t.spans = sdktrace.NewTracerProvider(sdktrace.WithBatcher(newSpanExporter(c)), sdktrace.WithResource(who))
		t.calls.traces = newTraces(t.spans)
	}
	t.calls.counters.startAtZero(s)
	s.Store, s.Events = counted(s.Store, &t.calls), t.Event
	t.calls.traces.wrap(s)
	return t, nil
}

// describe says who sends the metrics and traces. OTEL_SERVICE_NAME and
// OTEL_RESOURCE_ATTRIBUTES override it.
func describe(s *soloist.Scheduler, version string) *resource.Resource {
	who := []attribute.KeyValue{attribute.String("service.name", s.App), attribute.String("service.instance.id", s.Replica)}
	if version != "" {
		who = append(who, attribute.String("service.version", version))
	}
	// An error is about a malformed variable, and what could be read is in the result.
	r, _ := resource.New(context.Background(), resource.WithTelemetrySDK(), resource.WithAttributes(who...), resource.WithFromEnv())
	return r
}

// collector returns where the signal goes, METRICS or TRACES; nil: nowhere. An error is no
// reason not to run: platforms set these variables for all programs alike.
func (t *Telemetry) collector(signal string) *collector {
	var s settings
	asked, err := isAsked(signal)
	if asked {
		s, err = readSettings(signal)
	}
	if err != nil {
		t.log.Warn("what this replica measures goes to no collector", "signal", signal, "error", err)
	}
	if err != nil || !asked {
		return nil
	}
	c := newCollector(s, strings.ToLower(signal), t.log)
	t.collectors = append(t.collectors, c)
	return c
}

// Watch sets where metrics about jobs on all replicas come from; nil: there are none.
// It waits until the last one is not asked any more.
func (t *Telemetry) Watch(look Look) { t.gauges.watch(look) }

// Event measures an event of the scheduler. It does not wait for anything.
func (t *Telemetry) Event(e event.Event) {
	t.calls.traces.event(e)
	t.calls.counters.count(e)
}

// ServeHTTP answers with all metrics in the text format of Prometheus.
func (t *Telemetry) ServeHTTP(w http.ResponseWriter, r *http.Request) { t.page.ServeHTTP(w, r) }

// MakeDefault makes what a job measures with OpenTelemetry itself go the same way. It
// changes the whole process.
func (t *Telemetry) MakeDefault() {
	if t == nil {
		return
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { t.log.Debug("OpenTelemetry", "error", err) }))
	otel.SetTextMapPropagator(propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{}))
	if t.spans != nil {
		otel.SetTracerProvider(t.spans)
	}
}

// Close sends what has not been sent. A collector that does not answer delays it by two
// seconds at most: they are part of what a platform allows between the end of the grace
// and its kill. A nil Telemetry has nothing to send.
func (t *Telemetry) Close() {
	if t == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), t.patience)
	defer cancel()
	var all sync.WaitGroup
	all.Go(func() { t.closed(t.meters.Shutdown(ctx)) })
	if t.spans != nil {
		t.calls.traces.endAll()
		all.Go(func() { t.closed(t.spans.Shutdown(ctx)) })
	}
	all.Wait()
	for _, c := range t.collectors {
		c.close()
	}
}

func (t *Telemetry) closed(err error) {
	if err != nil {
		t.log.Debug("not all that this replica measured was sent", "error", err)
	}
}
