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

// What a job came to when it ran last is not hidden by a tick that was skipped under that run.
func TestFailureUnderOverlapIsShown(t *testing.T) {
	history := []store.Outcome{{Status: store.Skipped}, {Status: store.Failed, Start: time.Now()}}
	if got := lastRun(history); got.Status != store.Failed {
		t.Errorf("got %s", got.Status)
	}
}
