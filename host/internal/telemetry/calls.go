package telemetry

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"github.com/soloist-go/soloist/store"
)

// measured makes a call to the store and counts it. Of a call with a lease, under takes it for traces; nil: there are none.
func measured[T any](ctx context.Context, to *Telemetry, under func(context.Context, Call), c Call, do func() (T, error)) (T, error) {
	c.Start = time.Now()
	answer, err := do()
	c.End, c.Result = time.Now(), resultOf(err)
	to.record(calls, c.End.Sub(c.Start).Seconds(), Labels{{"operation", c.Op}, {"result", c.Result}})
	if under != nil {
		under(ctx, c)
	}
	return answer, err
}

// measuredError is measured for a call that answers with an error alone.
func measuredError(ctx context.Context, to *Telemetry, under func(context.Context, Call), op string, do func() error) error {
	_, err := measured(ctx, to, under, Call{Op: op}, func() (struct{}, error) { return struct{}{}, do() })
	return err
}

// called takes calls without a lease for traces; nil: there are none.
func (t *Telemetry) called() func(context.Context, Call) {
	if t.export.Traces == nil {
		return nil
	}
	return t.export.Traces.Called
}

// resultOf is what a call comes to.
func resultOf(err error) string {
	for _, known := range results {
		if errors.Is(err, known.err) {
			return known.word
		}
	}
	return "error"
}

// results are the words for known errors, which are tried in their order.
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
