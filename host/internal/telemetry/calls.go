package telemetry

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// A recorder takes what calls to the store come to.
type recorder struct {
	counters *counters
	traces   *traces // nil: there are none
}

// measured makes a call to the store and counts it. Of a call with a lease, s is what was
// done under it.
func measured[T any](ctx context.Context, to *recorder, s *session, c call, do func() (T, error)) (T, error) {
	c.start = time.Now()
	answer, err := do()
	c.end, c.result = time.Now(), result(err)
	to.counters.calls.Record(ctx, c.end.Sub(c.start).Seconds(),
		metric.WithAttributes(attribute.String("operation", c.op), attribute.String("result", c.result)))
	to.traces.called(ctx, s, c)
	return answer, err
}
