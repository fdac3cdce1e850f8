package telemetry

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"time"

	"github.com/soloist-go/soloist/store"
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
	c.end, c.result = time.Now(), results.of(err)
	to.counters.calls.Record(ctx, c.end.Sub(c.start).Seconds(),
		metric.WithAttributes(attribute.String("operation", c.op), attribute.String("result", c.result)))
	to.traces.called(ctx, s, c)
	return answer, err
}

// measuredError is measured for a call that answers with an error alone.
func measuredError(ctx context.Context, to *recorder, s *session, op string, do func() error) error {
	_, err := measured(ctx, to, s, call{op: op}, func() (struct{}, error) { return struct{}{}, do() })
	return err
}

// words are those for known errors, which are tried in their order.
type words []struct {
	err  error
	word string
}

// of is the word for an error.
func (w words) of(err error) string {
	for _, known := range w {
		if errors.Is(err, known.err) {
			return known.word
		}
	}
	return "error"
}

// results are what a call comes to.
var results = words{
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

// isTrouble reports whether a result is an error. The answers that the protocol is built
// on are none: another replica was faster, or there is nothing new. Nor is a call that
// its caller gave up.
func isTrouble(result string) bool {
	return slices.Contains([]string{"too-large", "denied", "timeout", "error"}, result)
}
