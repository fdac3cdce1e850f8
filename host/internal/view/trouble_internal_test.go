package view

import (
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/internal/record"
)

// What fails is told by the failures since the last success alone, as far as the record has them.
func TestStreakOfFailures(t *testing.T) {
	at := func(minute int) time.Time { return time.Date(2026, 3, 28, 12, minute, 0, 0, time.UTC) }
	run := func(minute int, status event.Status, replica string) event.Outcome {
		return event.Outcome{Tick: at(minute), Start: at(minute), End: at(minute), Status: status, Replica: replica, Reason: replica + " has no paper", Attempt: 2}
	}
	byHand := run(9, event.Failed, "hand")
	byHand.Request = "again"
	history := []event.Outcome{byHand, run(8, event.Skipped, ""), run(7, event.Failed, "b"), run(6, event.Stalled, "a"), run(5, event.Failed, "b"), run(4, event.Succeeded, "c"), run(3, event.Failed, "d")}
	for failures, want := range map[int64]struct {
		since  time.Time
		before bool
	}{3: {at(5), false}, 2: {at(6), false}, 9: {at(3), true}} {
		f := failingOf(&record.Record{Job: "bills", Failures: failures, Succeeded: at(4), History: history})
		if f.Error != "b has no paper" || f.Run != "bills@2026-03-28T12:07:00Z" || f.Attempt != 2 || !f.Succeeded.Equal(at(4)) || f.Replicas[0] != "b" ||
			!f.Since.Equal(want.since) || f.Before != want.before {
			t.Errorf("%d failures: got %+v", failures, f)
		}
	}
	if f := failingOf(&record.Record{History: history}); f != nil {
		t.Errorf("no failure: got %+v", f)
	}
}

// An order for a run says what has become of it.
func TestOrderIsFollowed(t *testing.T) {
	now := time.Date(2026, 3, 28, 12, 0, 0, 0, time.UTC)
	ordered := record.Order{Seq: 7, Kind: record.OrderRun, Job: "bills", Name: "again", Until: now.Add(time.Hour)}
	late := ordered
	late.Until = now.Add(-time.Hour)
	pause := ordered
	pause.Kind = record.OrderPause
	served := record.Orders{Served: 7}
	for _, tt := range []struct {
		name  string
		order record.Order
		r     record.Record
		want  string
		run   string
	}{
		{"waits", ordered, record.Record{}, "waiting", "bills@again"},
		{"runs", ordered, record.Record{Orders: served, Run: record.Run{Status: event.Running, Request: "again"}}, "running", "bills@again"},
		{"has ended", ordered, record.Record{Orders: served, History: []event.Outcome{{Request: "again", Status: event.Failed}}}, "failed", "bills@again"},
		{"has left the record", ordered, record.Record{Orders: served}, "", "bills@again"},
		{"nobody began it", late, record.Record{}, "given up", "bills@again"},
		{"is no run", pause, record.Record{}, "", ""},
	} {
		o := OrderOf(tt.order)
		if o.follow(&tt.r, now); o.State != tt.want || o.Run != tt.run {
			t.Errorf("%s: got %q, %q", tt.name, o.State, o.Run)
		}
	}
}

// Each trouble is counted where an operator looks for it.
func TestTroubleIsCounted(t *testing.T) {
	now := time.Date(2026, 3, 28, 12, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		name string
		job  Job
		want string
	}{
		{"idle", Job{State: Idle, Next: now.Add(2 * time.Hour)}, ""},
		{"due", Job{State: Idle, Next: now.Add(time.Minute)}, "due "},
		{"overdue", Job{State: running, Next: now.Add(-time.Minute)}, "running due "},
		{"late alone", Job{State: running, Trouble: true, Late: &record.Late{}}, "running late "},
		{"late and failing", Job{State: Failing, Trouble: true, Failures: 2, Late: &record.Late{}}, "failing late "},
		{"record that cannot be read", Job{State: broken, Trouble: true}, "failing "},
		{"over its time-out", Job{State: running, Trouble: true, TimedOut: true, Late: &record.Late{}}, "failing running late "},
		{"paused", Job{State: paused, Next: now}, "paused "},
		{"paused under its run", Job{State: running, Pause: &Pause{}, Next: now}, "running paused "},
	} {
		var got strings.Builder
		for _, l := range Looks {
			if tt.job.Is(l, now) {
				got.WriteString(string(l) + " ")
			}
		}
		if got.String() != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got.String(), tt.want)
		}
	}
}
