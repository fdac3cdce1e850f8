package telemetry

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/soloist-go/soloist/store"
)

// measured makes a call to the store and counts it.
func measured[T any](ctx context.Context, t *Telemetry, op string, call func() (T, error)) (T, error) {
	start := time.Now()
	answer, err := call()
	t.metrics.calls.Record(ctx, time.Since(start).Seconds(),
		metric.WithAttributes(attribute.String("operation", op), attribute.String("result", result(err))))
	return answer, err
}

// result is what a call came to, in one word. The answers that the protocol is built on
// are no errors: another replica was faster, or there is nothing new.
func result(err error) string {
	for _, known := range results {
		if errors.Is(err, known.err) {
			return known.word
		}
	}
	return "error"
}

// results are tried in this order.
var results = []struct {
	err  error
	word string
}{
	{nil, "ok"},
	{store.ErrHeld, "refused"},
	{store.ErrChanged, "refused"},
	{store.ErrLost, "refused"},
	{fs.ErrExist, "refused"},
	{fs.ErrNotExist, "missing"},
	{store.ErrUnchanged, "unchanged"},
	{store.ErrTooLarge, "too-large"},
	{fs.ErrPermission, "denied"},
	{context.DeadlineExceeded, "timeout"},
	{context.Canceled, "cancelled"},
}
