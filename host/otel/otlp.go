package otel

import (
	"context"
	"os"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// newSpanExporter sends spans to a collector.
func newSpanExporter(c *collector) *otlptrace.Exporter { return otlptrace.NewUnstarted(spanClient{c}) }

// A spanClient is what otlptrace sends with.
type spanClient struct{ *collector }

func (spanClient) Start(context.Context) error { return nil }
func (spanClient) Stop(context.Context) error  { return nil }

// UploadTraces sends spans. TracesData is on the wire what the request of the protocol is.
func (c spanClient) UploadTraces(ctx context.Context, spans []*tracepb.ResourceSpans) error {
	message, err := proto.Marshal(&tracepb.TracesData{ResourceSpans: spans})
	if err == nil {
		c.send(ctx, message)
	}
	return err
}

// A metricExporter sends metrics to a collector.
type metricExporter struct{ collector *collector }

// Temporality is what the collector prefers: some take the change since the last time only.
func (*metricExporter) Temporality(k sdkmetric.InstrumentKind) metricdata.Temporality {
	switch strings.ToLower(os.Getenv("OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE")) {
	case "delta":
		return sdkmetric.DeltaTemporalitySelector(k)
	case "lowmemory":
		return sdkmetric.LowMemoryTemporalitySelector(k)
	}
	return sdkmetric.CumulativeTemporalitySelector(k)
}

func (*metricExporter) Aggregation(k sdkmetric.InstrumentKind) sdkmetric.Aggregation {
	return sdkmetric.DefaultAggregationSelector(k)
}

func (*metricExporter) ForceFlush(context.Context) error { return nil }
func (*metricExporter) Shutdown(context.Context) error   { return nil }

// Export sends metrics. MetricsData is on the wire what the request of the protocol is.
func (e *metricExporter) Export(ctx context.Context, all *metricdata.ResourceMetrics) error {
	of := &metricspb.ResourceMetrics{SchemaUrl: all.Resource.SchemaURL(), Resource: &resourcepb.Resource{Attributes: pairs(all.Resource.Set())}}
	for _, s := range all.ScopeMetrics {
		scoped := &metricspb.ScopeMetrics{SchemaUrl: s.Scope.SchemaURL, Scope: &commonpb.InstrumentationScope{Name: s.Scope.Name, Version: s.Scope.Version}}
		for _, m := range s.Metrics {
			scoped.Metrics = append(scoped.Metrics, metricOf(&m))
		}
		of.ScopeMetrics = append(of.ScopeMetrics, scoped)
	}
	message, err := proto.Marshal(&metricspb.MetricsData{ResourceMetrics: []*metricspb.ResourceMetrics{of}})
	if err == nil {
		e.collector.send(ctx, message)
	}
	return err
}

// metricOf knows the kinds of the instruments of this package.
func metricOf(m *metricdata.Metrics) *metricspb.Metric {
	out := &metricspb.Metric{Name: m.Name, Description: m.Description, Unit: m.Unit}
	switch data := m.Data.(type) {
	case metricdata.Gauge[float64]:
		gauge := &metricspb.Gauge{}
		for _, p := range data.DataPoints {
			gauge.DataPoints = append(gauge.DataPoints, &metricspb.NumberDataPoint{Attributes: pairs(&p.Attributes),
				TimeUnixNano: nanos(p.Time), Value: &metricspb.NumberDataPoint_AsDouble{AsDouble: p.Value}})
		}
		out.Data = &metricspb.Metric_Gauge{Gauge: gauge}
	case metricdata.Sum[int64]:
		sum := &metricspb.Sum{IsMonotonic: data.IsMonotonic, AggregationTemporality: temporality(data.Temporality)}
		for _, p := range data.DataPoints {
			sum.DataPoints = append(sum.DataPoints, &metricspb.NumberDataPoint{Attributes: pairs(&p.Attributes), StartTimeUnixNano: nanos(p.StartTime),
				TimeUnixNano: nanos(p.Time), Value: &metricspb.NumberDataPoint_AsInt{AsInt: p.Value}})
		}
		out.Data = &metricspb.Metric_Sum{Sum: sum}
	case metricdata.Histogram[float64]:
		histogram := &metricspb.Histogram{AggregationTemporality: temporality(data.Temporality)}
		for _, p := range data.DataPoints {
			histogram.DataPoints = append(histogram.DataPoints, histogramPoint(&p))
		}
		out.Data = &metricspb.Metric_Histogram{Histogram: histogram}
	}
	return out
}

func histogramPoint(p *metricdata.HistogramDataPoint[float64]) *metricspb.HistogramDataPoint {
	out := &metricspb.HistogramDataPoint{Attributes: pairs(&p.Attributes), StartTimeUnixNano: nanos(p.StartTime), TimeUnixNano: nanos(p.Time),
		Count: p.Count, Sum: &p.Sum, ExplicitBounds: p.Bounds, BucketCounts: p.BucketCounts}
	if v, ok := p.Min.Value(); ok {
		out.Min = &v
	}
	if v, ok := p.Max.Value(); ok {
		out.Max = &v
	}
	return out
}

func temporality(t metricdata.Temporality) metricspb.AggregationTemporality {
	if t == metricdata.DeltaTemporality {
		return metricspb.AggregationTemporality_AGGREGATION_TEMPORALITY_DELTA
	}
	return metricspb.AggregationTemporality_AGGREGATION_TEMPORALITY_CUMULATIVE
}

// pairs are attributes as the protocol has them.
func pairs(set *attribute.Set) (all []*commonpb.KeyValue) {
	for _, a := range set.ToSlice() {
		all = append(all, &commonpb.KeyValue{Key: string(a.Key), Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: a.Value.String()}}})
	}
	return all
}

func nanos(t time.Time) uint64 {
	if t.IsZero() {
		return 0
	}
	return uint64(t.UnixNano())
}
