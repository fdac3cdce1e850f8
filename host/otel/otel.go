// Package otel sends the metrics and traces of a program to a collector of OpenTelemetry.
//
// It sends them by OTLP over HTTP, if the variables of OpenTelemetry ask for that:
//
//	p := host.Program{Work: work, Telemetry: otel.Export}
//	p.Main()
//
// It is a module of its own: programs without it need nothing of OpenTelemetry. Take the version that the module
// github.com/soloist-go/soloist has.
package otel

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/exemplar"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/soloist-go/soloist/host/internal/telemetry"
)

// scope names this instrumentation.
const scope = "github.com/soloist-go/soloist"

// Export is for the field Telemetry of a [github.com/soloist-go/soloist/host.Program].
func Export(s telemetry.Source) telemetry.Export { return export(s, 2*time.Second) }

// An exporter sends what one scheduler measures.
type exporter struct {
	log        *slog.Logger
	metrics    *sdkmetric.MeterProvider // nil: they are not sent
	spans      *sdktrace.TracerProvider // nil: there are no traces
	traces     *traces
	collectors []*collector
	patience   time.Duration // of close with a collector that does not answer
}

func export(s telemetry.Source, patience time.Duration) telemetry.Export {
	x := &exporter{log: s.Log, patience: patience}
	begun := telemetry.Export{MakeDefault: x.makeDefault, Close: x.close}
	who := describe(s)
	if c := x.collector("METRICS"); c != nil {
		x.metrics = sdkmetric.NewMeterProvider(sdkmetric.WithResource(who),
			sdkmetric.WithReader(sdkmetric.NewPeriodicReader(&metricExporter{c})),
			sdkmetric.WithExemplarFilter(exemplar.AlwaysOffFilter), // the collector does not get them
			sdkmetric.WithCardinalityLimit(0))                      // no limit: the program's jobs are the limit
		begun.Metrics = newInstruments(x.metrics.Meter(scope), s.Gauges)
	}
	if c := x.collector("TRACES"); c != nil {
		x.spans = sdktrace.NewTracerProvider(sdktrace.WithBatcher(newSpanExporter(c)), sdktrace.WithResource(who))
		x.traces = newTraces(x.spans)
		x.traces.wrap(s.Scheduler)
		begun.Traces = x.traces
	}
	return begun
}

// describe says who sends the metrics and traces. OTEL_SERVICE_NAME and
// OTEL_RESOURCE_ATTRIBUTES override it.
func describe(s telemetry.Source) *resource.Resource {
	who := []attribute.KeyValue{attribute.String("service.name", s.Scheduler.App), attribute.String("service.instance.id", s.Scheduler.Replica)}
	if s.Version != "" {
		who = append(who, attribute.String("service.version", s.Version))
	}
	// An error is about a malformed variable, and what could be read is in the result.
	r, _ := resource.New(context.Background(), resource.WithTelemetrySDK(), resource.WithAttributes(who...), resource.WithFromEnv())
	return r
}

// collector returns where the signal goes, METRICS or TRACES; nil: nowhere. An error is no
// reason not to run: platforms set these variables for all programs alike.
func (x *exporter) collector(signal string) *collector {
	var s settings
	asked, err := telemetry.IsAsked(signal)
	if asked {
		s, err = readSettings(signal)
	}
	if err != nil {
		x.log.Warn("what this replica measures goes to no collector", "signal", signal, "error", err)
	}
	if err != nil || !asked {
		return nil
	}
	c := newCollector(s, strings.ToLower(signal), x.log)
	x.collectors = append(x.collectors, c)
	return c
}

// makeDefault makes what a job measures with OpenTelemetry itself go the same way.
func (x *exporter) makeDefault() {
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { x.log.Debug("OpenTelemetry", "error", err) }))
	otel.SetTextMapPropagator(propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{}))
	if x.spans != nil {
		otel.SetTracerProvider(x.spans)
	}
}

// close sends what has not been sent. A collector that does not answer delays it by two
// seconds at most: they are part of what a platform allows between the end of the grace
// and its kill.
func (x *exporter) close() {
	ctx, cancel := context.WithTimeout(context.Background(), x.patience)
	defer cancel()
	var all sync.WaitGroup
	if x.metrics != nil {
		all.Go(func() { x.closed(x.metrics.Shutdown(ctx)) })
	}
	if x.spans != nil {
		x.traces.endAll()
		all.Go(func() { x.closed(x.spans.Shutdown(ctx)) })
	}
	all.Wait()
	for _, c := range x.collectors {
		c.close()
	}
}

func (x *exporter) closed(err error) {
	if err != nil {
		x.log.Debug("not all that this replica measured was sent", "error", err)
	}
}
