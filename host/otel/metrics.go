package otel

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/soloist-go/soloist/host/internal/telemetry"
)

// instruments are the metrics as OpenTelemetry has them.
type instruments struct {
	counters   map[*telemetry.Metric]metric.Int64Counter
	histograms map[*telemetry.Metric]metric.Float64Histogram
}

// newInstruments makes an instrument for each metric. Its errors would be about a name or a limit: the docs have all of them.
func newInstruments(m metric.Meter, gauges func(context.Context, telemetry.Observe)) instruments {
	all := instruments{map[*telemetry.Metric]metric.Int64Counter{}, map[*telemetry.Metric]metric.Float64Histogram{}}
	observed := map[*telemetry.Metric]metric.Float64ObservableGauge{}
	var observable []metric.Observable
	for _, one := range telemetry.All() {
		switch one.Kind {
		case telemetry.Counter:
			all.counters[one], _ = m.Int64Counter(one.Name, metric.WithUnit(one.Unit), metric.WithDescription(one.Help))
		case telemetry.Histogram:
			all.histograms[one], _ = m.Float64Histogram(one.Name, metric.WithUnit(one.Unit), metric.WithDescription(one.Help),
				metric.WithExplicitBucketBoundaries(one.Limits...))
		case telemetry.Gauge:
			observed[one], _ = m.Float64ObservableGauge(one.Name, metric.WithUnit(one.Unit), metric.WithDescription(one.Help))
			observable = append(observable, observed[one])
		}
	}
	m.RegisterCallback(func(ctx context.Context, o metric.Observer) error {
		gauges(ctx, func(m *telemetry.Metric, v float64, l telemetry.Labels) { o.ObserveFloat64(observed[m], v, with(l)) })
		return nil
	}, observable...)
	return all
}

func (i instruments) Add(m *telemetry.Metric, n int64, l telemetry.Labels) {
	i.counters[m].Add(context.Background(), n, with(l))
}

func (i instruments) Record(m *telemetry.Metric, seconds float64, l telemetry.Labels) {
	i.histograms[m].Record(context.Background(), seconds, with(l))
}

// with are labels as attributes.
func with(l telemetry.Labels) metric.MeasurementOption {
	var all []attribute.KeyValue
	for _, one := range l {
		if one.Name != "" {
			all = append(all, attribute.String(one.Name, one.Value))
		}
	}
	return metric.WithAttributeSet(attribute.NewSet(all...))
}
