package view

import (
	"testing"

	"github.com/soloist-go/soloist/store"
)

// A run that skips itself as "paused" is no pause by an operator.
func TestRunThatSkipsItselfIsNoPause(t *testing.T) {
	for token, want := range map[int64]bool{0: true, 7: false} {
		r := &store.Record{History: []store.Outcome{{Status: store.Skipped, Reason: "paused", Token: token}}}
		if got := recordPaused(r); got != want {
			t.Errorf("an outcome with token %d: paused is %t", token, got)
		}
	}
}
