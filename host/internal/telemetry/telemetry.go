// Package telemetry makes metrics and traces of what a replica does. Metrics are at
// /metrics for Prometheus; on request, both go to a collector by OTLP over HTTP.
//
// Counters and histograms are about this replica. They come from events and from calls
// to the store. Gauges of a job come from its record, so they are the same on each
// replica. Labels are names of jobs and words of this package: never text of an error.
package telemetry

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel/attribute"
	exporter "go.opentelemetry.io/otel/exporters/prometheus"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"

	"github.com/soloist-go/soloist"
)

// A Look returns what the records say now, from a cache: it is called for each scrape.
type Look func(context.Context) []soloist.JobStatus

// A Telemetry measures one scheduler.
type Telemetry struct {
	scheduler *soloist.Scheduler
	look      atomic.Pointer[Look]
	metrics   *instruments
	meters    *sdkmetric.MeterProvider
	page      http.Handler
}

// Open makes a Telemetry for a scheduler and makes the scheduler use it: its store and
// its jobs are wrapped. It has to be called before any method of the scheduler.
func Open(s *soloist.Scheduler, log *slog.Logger) (*Telemetry, error) {
	registry := prometheus.NewRegistry() // its own: the default one may have metrics of other programs in it
	reader, err := exporter.New(exporter.WithRegisterer(registry), exporter.WithoutScopeInfo())
	if err != nil {
		return nil, err
	}
	t := &Telemetry{scheduler: s, page: promhttp.HandlerFor(registry, promhttp.HandlerOpts{ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn)})}
	t.meters = sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader), sdkmetric.WithResource(describe(s)),
		sdkmetric.WithCardinalityLimit(0)) // no limit: the program's jobs are the limit
	t.metrics, err = newInstruments(t.meters.Meter("github.com/soloist-go/soloist"), t.observe)
	if err != nil {
		return nil, err
	}
	t.startAtZero()
	s.Store = t.counted(s.Store)
	return t, nil
}

// describe says who sends the metrics and traces. OTEL_SERVICE_NAME and
// OTEL_RESOURCE_ATTRIBUTES override it.
func describe(s *soloist.Scheduler) *resource.Resource {
	// An error is about a malformed variable, and what could be read is in the result.
	r, _ := resource.New(context.Background(), resource.WithTelemetrySDK(),
		resource.WithAttributes(attribute.String("service.name", s.App), attribute.String("service.instance.id", s.Replica)),
		resource.WithFromEnv())
	return r
}

// Watch sets where metrics about jobs on all replicas come from. Without it there are
// none.
func (t *Telemetry) Watch(look Look) { t.look.Store(&look) }

// ServeHTTP answers with all metrics in the text format of Prometheus.
func (t *Telemetry) ServeHTTP(w http.ResponseWriter, r *http.Request) { t.page.ServeHTTP(w, r) }

// Close sends what has not been sent. A collector that does not answer delays it by
// closeTime at most. A nil Telemetry has nothing to send.
func (t *Telemetry) Close() error {
	if t == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	return errors.Join(t.meters.Shutdown(ctx))
}

// closeTime is part of what a platform allows between the end of the grace and its kill.
const closeTime = 2 * time.Second
