package view

import (
	"testing"
	"time"

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

// A tick that is claimed before it is due does not run yet.
func TestArmedJobDoesNotRunYet(t *testing.T) {
	for wait, want := range map[time.Duration]State{time.Minute: armed, -time.Minute: running} {
		r := &store.Record{Run: store.Run{Status: store.Running, Armed: true, Tick: time.Now().Add(wait)}}
		if got := runState(r, store.Leased); got != want {
			t.Errorf("a tick in %s: %s, want %s", wait, got, want)
		}
	}
}
