package soloist

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"
)

// Where a claim leaves room, each outcome of its run can be written, and all that
// the run writes before.
func TestAClaimWithRoomHasRoomForEachOutcome(t *testing.T) {
	for _, holder := range []string{"a", strings.Repeat("é", 60)} {
		for _, attempt := range []int{1, 2, maxAttempt} {
			size := 7500
			for claimBeside(t, size, attempt, holder).roomForOutcome() != nil {
				size--
			}
			for i := range 3 {
				claim := claimBeside(t, size-i, attempt, holder)
				for _, reason := range []string{"", strings.Repeat("🦊", maxErrorLen)} {
					writeAll(t, claim, reason)
				}
			}
		}
	}
}

// claimBeside is the claim of an attempt beside an unknown field of that size.
func claimBeside(t *testing.T, size, attempt int, holder string) *Record {
	t.Helper()
	tick := midnight.Add(10 * time.Second)
	next := plan{record: Record{App: "app", Job: "job", Created: midnight, Through: midnight, Spec: "s", Since: midnight, Epoch: 7, Writer: "w",
		Status: Idle, unknown: map[string]json.RawMessage{"x": json.RawMessage(`"` + strings.Repeat("x", size) + `"`)}}}
	p := planner{ticks: every10s(t), spec: "s"}
	p.claim(&next, tick, attempt)
	next.record.Claimed, next.record.Holder, next.record.Lease = tick, holder, Seconds(15*time.Second)
	return &next.record
}

// writeAll makes the writes of a run that ends in each way: all have to fit.
func writeAll(t *testing.T, claim *Record, reason string) {
	t.Helper()
	for _, status := range []Status{Succeeded, Failed, Stalled, Abandoned, Skipped} {
		for _, interrupted := range []InterruptedPolicy{Abandon, Rerun} {
			for _, under := range []time.Duration{0, 15 * time.Minute} { // without and with ticks that are skipped
				p := planner{ticks: every10s(t), spec: "s", interrupted: interrupted}
				end := claim.Claimed.Add(123 * time.Millisecond)
				r := claim.clone()
				r.Writer, r.Stopping, r.Progress = strings.Repeat("W", 26), true, Progress{Note: strings.Repeat("🦊", maxNoteLen), At: end}
				writeOne(t, &r, "progress", status)
				if status == Stalled {
					r = p.stall(&r, reason, claim.Claimed.Add(under))
					writeOne(t, &r, "stall", status)
				}
				r = p.finish(&r, status, reason, end, claim.Claimed.Add(under))
				writeOne(t, &r, "outcome", status)
			}
		}
	}
}

func writeOne(t *testing.T, r *Record, what string, status Status) {
	t.Helper()
	if _, err := r.encode(); err != nil {
		t.Fatalf("%s, %s, attempt %d: %v", what, status, r.Attempt, err)
	}
}

// An outcome that does not fit is named as that, and so is the reason why nothing
// runs from then on.
func TestAnOutcomeThatDoesNotFitIsNamed(t *testing.T) {
	var log bytes.Buffer
	s := &Scheduler{Logger: slog.New(slog.NewTextHandler(&log, nil)), Store: noStore{},
		Jobs: []Job{{Name: "work", Schedule: "@every 1m", Do: func(context.Context, *Run) error { return nil }}}}
	w, err := s.worker("work")
	if err != nil {
		t.Fatal(err)
	}
	run := w.newRun(midnight, 1, 7)
	w.untold(run, Succeeded, fmt.Errorf("%w: too long", errNotEncoded))
	s.lines.wait(lastLines)
	if got := log.String(); !strings.Contains(got, "does not fit into the record: shorten the record") {
		t.Errorf("the log says %q", got)
	}
	if !errors.Is(w.undone, errNotEncoded) || strings.Contains(w.undone.Error(), "not confirmed") {
		t.Errorf("the call says %v", w.undone)
	}
	if why := s.Health().Broken["work"]; !errors.Is(why, errNotEncoded) {
		t.Errorf("health is %v", why)
	}
}

// noStore is a store that no test calls, except for its limits.
type noStore struct{ Store }

func (noStore) Limits() (shortest, longest time.Duration) { return 15 * time.Second, time.Minute }
