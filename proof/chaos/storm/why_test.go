//go:build unix

package main

import (
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist/event"
)

// TestReasons judges answers about the good story: which are true of it, and which are not. Its replica a is up all the
// time. What is wanted is a part of the violation; empty: there is none.
func TestReasons(t *testing.T) {
	run := "the run before, for the tick of 12:00:10, on b, "
	for _, c := range []struct {
		job     string
		seconds float64
		cause   string
		says    string
		open    []string
		want    string
	}{
		{"five", 15, "died", run + "had no end", nil, ""},
		{"five", 15, "died", strings.Replace(run, "on b", "on c", 1) + "had no end", nil, "no such runner died"},
		{"five", 27.5, "died", run + "had no end", nil, "the lease of its runner had ended at 12:00:25.000"},
		{"five", 27.5, "died", run + "had no end", []string{"how long its runner lived"}, ""},
		{"ten", 30, "died", "the run before, on c, had no end", nil, ""},
		{"five", 40, "died", "the run before, on a, had no end", nil, "no such runner died"},
		{pages, 70, "died", "the run before, on b, had no end", nil, "b did not suffer anything"},
		{"five", 5.5, "overlap", "the run before, on a, took until 12:00:06", nil, ""},
		{pages, 25, "overlap", run + "took until 12:00:32", nil, ""}, // its claim was decided at 10, and seen by the service at 30
		{"five", 20, "overlap", run + "took until 12:00:30", nil, "no such run was under way"},
		{"five", 40, "overlap", "the job was running", nil, "no such run was under way"},
		{"five", 9, "down", "no replica was up", []string{"whether a was up"}, "a was up"},
		{"five", 15, "down", "no replica was up", nil, "a was up"},
		{"five", 58, "unclaimed", "no replica ran it, though a was up", []string{"why"}, ""},
		{"five", 58, "unclaimed", "no replica ran it, though a, c were up", []string{"why"}, "c was not up"},
		{"five", 15, "unclaimed", "no replica ran it", nil, "no storm has that cause"},
		{"five", 15, "not-kept", "its outcome is not kept", []string{"what became of it"}, ""},
		{"five", 15, "paused-by-order", "the job was paused by anna", nil, "no storm has that cause"},
		{"five", 45, "outage", "the storage was out of reach for a", nil, ""},
		{"five", 30, "outage", "the storage was out of reach for a", nil, "a reached the service"},
		{"five", 15, "definition", "the definition changed", nil, "it had not changed"},
	} {
		t.Run(c.cause+" "+c.job+" "+c.says, func(t *testing.T) {
			m := good()
			m.Alive = []Exit{{Replica: "a", Start: at(-10), Listened: true}}
			m.Reasons = []Reason{{By: "a", Job: c.job, Asked: at(c.seconds),
				Outcome: event.Outcome{Tick: at(c.seconds), Status: event.Missed},
				Cause:   c.cause, Sentence: c.says, NotKnown: c.open}}
			bad := strings.Join(violations(m.Story, versionsOf), "\n")
			if c.want == "" && bad != "" || !strings.Contains(bad, c.want) {
				t.Errorf("got %q, want %q", bad, c.want)
			}
		})
	}
}

// TestUnrun finds the ticks that are asked about: those of ranges, by the definition that they were of.
func TestUnrun(t *testing.T) {
	m := good()
	m.writeOf("ten", 1).Record.History[0].Reason = "the schedule changed"
	var got []string
	for _, r := range unrun(m.Story, versionsOf) {
		got = append(got, r.Job+" "+r.Asked.Format(time.TimeOnly))
		if r.Changed != (r.Job == "ten") {
			t.Errorf("%s: changed %t", &r, r.Changed)
		}
	}
	want := "pages 12:00:50, pages 12:00:40, pages 12:00:30, five 12:00:25, five 12:00:20, " +
		"pages 12:00:20, five 12:00:15, ten 12:00:10"
	if strings.Join(got, ", ") != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
