package telemetry

import (
	"context"
	"errors"
	"io/fs"
	"slices"

	"github.com/soloist-go/soloist/store"
)

// result is what a call came to, in one word.
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

// isTrouble reports whether a result is an error. The answers that the protocol is built
// on are none: another replica was faster, or there is nothing new. Nor is a call that
// its caller gave up.
func isTrouble(result string) bool {
	return slices.Contains([]string{"too-large", "denied", "timeout", "error"}, result)
}
