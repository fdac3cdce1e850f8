package plan

import (
	"cmp"
	"slices"
	"testing"
	"time"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/internal/record"
)

// The record at the end of a run that came due at 00:00:20, was claimed then, and ended at 00:00:55.
func TestEndOfRunUnderOverlap(t *testing.T) {
	var many record.JobControl
	for at := clockTime("00:00:20"); at.Before(clockTime("00:00:50")); at = at.Add(4 * time.Second) {
		many.Pauses = append(many.Pauses, record.Span{From: at.Add(time.Second), To: at.Add(3 * time.Second)})
	}
	for name, tt := range map[string]struct {
		p       Policy
		every   string // empty: 10s
		request string
		attempt int
		claimed string
		control record.JobControl
		status  event.Status
		told    []string
		due     string // the tick that is left
	}{
		"skip":    {told: []string{"skipped 00:00:20-00:00:50(3) overlap", "succeeded 00:00:20 "}, due: "00:01:00"},
		"one":     {p: Policy{Overlap: QueueOne}, told: []string{"skipped 00:00:20-00:00:40(2) overlap", "succeeded 00:00:20 "}, due: "00:00:50"},
		"replace": {p: Policy{Overlap: Replace}, told: []string{"skipped 00:00:20-00:00:40(2) overlap", "succeeded 00:00:20 "}, due: "00:00:50"},
		"after":   {p: Policy{After: []string{"a"}}, told: []string{"succeeded 00:00:20 "}, due: "00:00:30"}, // it knows nothing of the jobs before
		"all":     {p: Policy{Late: Late{Missed: RunAll}}, told: []string{"succeeded 00:00:20 "}, due: "00:00:30"},
		"cancelled": {p: Policy{Overlap: Replace, Interrupted: Rerun, PauseAfter: 1}, status: event.Cancelled,
			told: []string{"skipped 00:00:20-00:00:40(2) overlap", "cancelled 00:00:20 "}, due: "00:00:50"},
		"one, a further attempt": {p: Policy{Overlap: QueueOne, Interrupted: Rerun}, attempt: 2, claimed: "00:00:35",
			told: []string{"skipped 00:00:40 overlap", "missed 00:00:30 a newer one was due", "succeeded 00:00:20 "}, due: "00:00:50"},
		"one, a further attempt that is short": {p: Policy{Overlap: QueueOne, Interrupted: Rerun}, attempt: 2, claimed: "00:00:52",
			told: []string{"succeeded 00:00:20 "}, due: "00:00:30"},
		"one, stopped": {p: Policy{Overlap: QueueOne}, status: event.Abandoned, told: []string{"skipped 00:00:20-00:00:40(2) overlap", "abandoned 00:00:20 "}, due: "00:00:50"},
		"one, by hand": {p: Policy{Overlap: QueueOne}, request: "anna", told: []string{"skipped 00:00:20-00:00:40(2) overlap", "succeeded 00:00:20 "}, due: "00:00:50"},
		"a pause that is over": {control: record.JobControl{Pauses: []record.Span{{From: clockTime("00:00:25"), To: clockTime("00:00:35")}}},
			told: []string{"skipped 00:00:30-00:00:50(2) overlap", "skipped 00:00:30 paused", "succeeded 00:00:20 "}, due: "00:01:00"},
		"a pause that goes on": {control: record.JobControl{Pause: record.Pause{At: clockTime("00:00:35")}},
			told: []string{"skipped 00:00:30 overlap", "succeeded 00:00:20 "}, due: "00:00:40"},
		"many pauses": {every: "2s", control: many, told: []string{"skipped 00:00:42-00:00:54(6) overlap", "skipped 00:00:42 paused",
			"skipped 00:00:40 overlap", "skipped 00:00:38 paused", "skipped 00:00:36 overlap", "skipped 00:00:34 paused",
			"skipped 00:00:32 overlap", "skipped 00:00:30 paused", "skipped 00:00:28 overlap", "skipped 00:00:26 paused",
			"skipped 00:00:24 overlap", "skipped 00:00:22 paused", "succeeded 00:00:20 "}, due: "00:00:56"},
		"by hand, in a pause": {request: "anna", control: record.JobControl{Pause: record.Pause{At: clockTime("00:00:15")}},
			told: []string{"succeeded 00:00:20 "}, due: "00:00:30"},
		"by hand, paused by its settings": {p: Policy{Paused: true}, request: "anna", told: []string{"succeeded 00:00:20 "}, due: "00:00:30"},
	} {
		t.Run(name, func(t *testing.T) {
			if tt.status == "" {
				tt.status = event.Succeeded
			}
			tt.p.Ticks = every(cmp.Or(tt.every, "10s"))
			r := record.Record{Watermark: clockTime("00:00:10"), Token: 5, Run: record.Run{Status: event.Running, Tick: clockTime("00:00:20"),
				Claimed: clockTime("00:00:20"), Attempt: max(1, tt.attempt), Request: tt.request}}
			if tt.request != "" {
				r.Watermark = clockTime("00:00:20")
			}
			if tt.claimed != "" {
				r.Run.Claimed = clockTime(tt.claimed)
			}
			got := Finish(&tt.p, &r, tt.status, "", clockTime("00:00:55"), clockTime("00:00:55"), tt.control)
			if !slices.Equal(told(&got), tt.told) {
				t.Errorf("settles %q, want %q", told(&got), tt.told)
			}
			if !got.Due.Equal(clockTime(tt.due)) {
				t.Errorf("%s is due, want %s", got.Due, tt.due)
			}
			if got.Failures != 0 || !got.Orders.Paused.At.IsZero() {
				t.Errorf("it counts as a failure: %+v", got)
			}
		})
	}
}

// Which tick ends the run of 00:00:20, which was claimed then.
func TestReplacedBy(t *testing.T) {
	pausedFrom := func(from string) record.JobControl {
		return record.JobControl{Pause: record.Pause{At: clockTime(from)}}
	}
	for name, tt := range map[string]struct {
		p       Policy
		request string
		control record.JobControl
		now     string
		want    string // empty: none
	}{
		"not yet":              {now: "00:00:29"},
		"due":                  {now: "00:00:30", want: "00:00:30"},
		"the newest":           {now: "00:00:51", want: "00:00:50"},
		"skip":                 {p: Policy{Overlap: SkipOverlap, Lease: time.Second}, now: "00:00:51"},
		"one":                  {p: Policy{Overlap: QueueOne}, now: "00:00:51"},
		"by hand":              {request: "anna", now: "00:00:51"},
		"paused":               {control: pausedFrom("00:00:25"), now: "00:00:51"},
		"due before a pause":   {control: pausedFrom("00:00:35"), now: "00:00:37"},
		"a tick of a pause":    {control: record.JobControl{Pauses: []record.Span{{From: clockTime("00:00:25"), To: clockTime("00:00:35")}}}, now: "00:00:37"},
		"a tick after a pause": {control: record.JobControl{Pauses: []record.Span{{From: clockTime("00:00:25"), To: clockTime("00:00:35")}}}, now: "00:00:41", want: "00:00:40"},
		"the program pauses":   {p: Policy{Overlap: Replace, Paused: true}, now: "00:00:51"},
		"too late to start":    {p: Policy{Overlap: Replace, Late: Late{Start: 2 * time.Second}}, now: "00:00:33"},
		"in time to start":     {p: Policy{Overlap: Replace, Late: Late{Start: 2 * time.Second}}, now: "00:00:32", want: "00:00:30"},
		"skip missed, late":    {p: Policy{Overlap: Replace, Late: Late{Missed: SkipMissed}, Lease: 5 * time.Second}, now: "00:00:36"},
	} {
		t.Run(name, func(t *testing.T) {
			if tt.p.Overlap == "" && tt.p.Lease == 0 {
				tt.p.Overlap = Replace
			}
			tt.p.Ticks = every("10s")
			r := record.Record{Watermark: clockTime("00:00:10"), Run: record.Run{Status: event.Running, Tick: clockTime("00:00:20"), Claimed: clockTime("00:00:20"), Request: tt.request}}
			got, want := tt.p.ReplacedBy(View{Record: &r, Control: tt.control, Now: clockTime(tt.now)}), time.Time{}
			if tt.want != "" {
				want = clockTime(tt.want)
			}
			if !got.Equal(want) {
				t.Errorf("got %s, want %s", got, want)
			}
		})
	}
}
