package view

import (
	"testing"
	"time"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/internal/record"
	"github.com/soloist-go/soloist/store"
)

// A run that skips itself as "paused" is no pause by an operator.
func TestRunThatSkipsItselfIsNoPause(t *testing.T) {
	for token, want := range map[int64]bool{0: true, 7: false} {
		r := &record.Record{History: []event.Outcome{{Status: event.Skipped, Reason: "paused", Token: token}}}
		if got := recordPaused(r); got != want {
			t.Errorf("an outcome with token %d: paused is %t", token, got)
		}
	}
}

// A tick that is claimed before it is due does not run yet.
func TestArmedJobDoesNotRunYet(t *testing.T) {
	for wait, want := range map[time.Duration]State{time.Minute: armed, -time.Minute: running} {
		r := &record.Record{Run: record.Run{Status: event.Running, Armed: true, Tick: time.Now().Add(wait)}}
		if got := runState(r, store.Leased); got != want {
			t.Errorf("a tick in %s: %s, want %s", wait, got, want)
		}
	}
}

// What a job came to when it ran last is not hidden by a tick that was skipped under that run.
func TestFailureUnderOverlapIsShown(t *testing.T) {
	history := []event.Outcome{{Status: event.Skipped}, {Status: event.Failed, Start: time.Now()}}
	if got := lastRun(history); got.Status != event.Failed {
		t.Errorf("got %s", got.Status)
	}
}
