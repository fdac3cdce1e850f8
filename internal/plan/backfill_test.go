package plan

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist/store"
)

// What was missed is what the history says, as far as it reaches.
func TestRangeOfBackfill(t *testing.T) {
	p := Policy{Ticks: every("10s"), Spec: "s"}
	at := func(seconds int) time.Time { return midnight.Add(time.Duration(seconds) * time.Second) }
	r := p.New("app", "job", View{Now: midnight, Since: midnight}, time.Time{})
	settle(&r, store.Outcome{From: r.Watermark, Tick: at(30), Count: 3, Status: store.Missed, Reason: "a newer one was due"})
	settle(&r, store.Outcome{Tick: at(40), Status: store.Succeeded})
	settle(&r, store.Outcome{Tick: at(41), Request: "please", Status: store.Missed})
	settle(&r, store.Outcome{Tick: at(50), Status: store.Missed})
	settle(&r, store.Outcome{From: at(50), Tick: at(70), Status: store.Missed, Reason: "the schedule changed"})
	settle(&r, store.Outcome{From: at(70), Tick: at(100), Count: 3, Status: store.Skipped, Reason: Paused})
	cut := r.Clone()
	cut.History = cut.History[:3]
	for name, tt := range map[string]struct {
		r        *store.Record
		from, to int
		all      bool
		ticks    int
		wrong    string
	}{
		"what was missed":           {&r, -100, 100, false, 4, ""},
		"a part of it":              {&r, 20, 45, false, 2, ""},
		"all":                       {&r, -95, 100, true, 20, ""},
		"no further than its ticks": {&r, 0, 45, true, 5, ""}, // a schedule of later on adds none
		"one tick":                  {&r, 50, 50, false, 1, ""},
		"nothing":                   {&r, 60, 90, false, 0, "no tick of the range was missed"},
		"no tick":                   {&r, 51, 59, true, 0, "no tick of the schedule"},
		"not known so far back":     {&cut, 45, 100, false, 0, "of none before"},
		"as far as it is known":     {&cut, 50, 100, false, 1, ""},
		"all that is not known":     {&cut, 0, 100, true, 11, ""},
		"a tick without outcome":    {&r, 0, 110, true, 0, "has no outcome yet"},
		"too many":                  {&r, -2_000_000, 100, true, 0, "more than 100000 ticks"},
		"the end before the begin":  {&r, 10, 0, true, 0, "before from"},
		"the future":                {&r, 10, 10_000, true, 0, "in the future"},
	} {
		b, first, last, err := p.PlanBackfill(tt.r, at(115), Range{From: at(tt.from), To: at(tt.to), All: tt.all}, &store.Backfill{})
		switch {
		case tt.wrong != "" && (err == nil || !strings.Contains(err.Error(), tt.wrong)):
			t.Errorf("%s: got %+v, %v", name, b, err)
		case tt.wrong == "" && (err != nil || b.Ticks != tt.ticks || first.Before(at(tt.from)) || last.After(at(tt.to)) || !b.Spans[len(b.Spans)-1].To.Equal(last)):
			t.Errorf("%s: got %+v from %s to %s, %v", name, b, first, last, err)
		}
	}
}

func TestRangeThatIsRefused(t *testing.T) {
	p := Policy{Ticks: every("10s"), Spec: "s", Group: "imports"}
	r := store.Record{Watermark: clockTime("00:10:00")}
	for text, of := range map[string]Range{
		"is missing":         {To: clockTime("00:05:00")},
		"from or to":         {From: clockTime("00:05:00")},
		"-1 ticks at a time": {From: midnight, To: clockTime("00:05:00"), Parallel: -1},
		"17 ticks at a time": {From: midnight, To: clockTime("00:05:00"), Parallel: 17},
		"the group imports":  {From: midnight, To: clockTime("00:05:00"), Parallel: 2},
	} {
		of.All = true
		if b, _, _, err := p.PlanBackfill(&r, clockTime("00:10:05"), of, &store.Backfill{}); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: got %+v, %v", text, b, err)
		}
	}
}

// A schedule with more ticks does not make a backfill larger than any may be.
func TestBackfillEndsAtItsLimit(t *testing.T) {
	for name, tt := range map[string]struct{ parallel, claims int }{"one at a time": {0, 1}, "some at a time": {4, 3}} {
		t.Run(name, func(t *testing.T) {
			p := Policy{Ticks: every("10s")}
			fill := store.Backfill{Seq: 9, Spans: []store.Span{{From: clockTime("00:00:00"), To: clockTime("00:01:40")}}, Parallel: tt.parallel}
			r := store.Record{Watermark: clockTime("00:03:20"), Backfill: store.Backfilled{Seq: 9, Through: clockTime("00:00:10"), Several: tt.parallel > 1,
				Counts: map[store.Status]int64{store.Succeeded: MaxBackfill - int64(tt.claims)}}}
			v := View{Record: &r, Now: clockTime("00:03:25"), Control: store.JobControl{Backfill: fill}}
			next, _ := p.Claim(v)
			got := max(1, len(next.Record.Backfill.Open))
			if !next.Run || got != tt.claims {
				t.Errorf("claims %d ticks, want %d: %+v", got, tt.claims, next.Record.Backfill)
			}
			r.Backfill.Counts[store.Succeeded] = MaxBackfill
			if next, _ := p.Claim(v); next.Run || !p.BackfillOver(&r, &fill) {
				t.Errorf("goes on with %+v", next.Record.Backfill)
			}
		})
	}
}

// Ticks that were missed are left out once a backfill has made up for them, as far as the record tells.
func TestBackfillLeavesOutWhatIsMadeUp(t *testing.T) {
	full := map[store.Status]int64{store.Succeeded: 6}
	for name, tt := range map[string]struct {
		done  store.Backfilled
		spans []store.Span // of the backfill before
		want  int          // ticks
	}{
		"all":                    {store.Backfilled{Through: clockTime("00:01:00"), Counts: full}, nil, 0},
		"not its rest":           {store.Backfilled{Through: clockTime("00:00:40"), Counts: map[store.Status]int64{store.Succeeded: 4}}, nil, 2},
		"not up to a failure":    {store.Backfilled{Through: clockTime("00:01:00"), Failed: clockTime("00:00:30"), Counts: map[store.Status]int64{store.Succeeded: 5, store.Failed: 1}}, nil, 3},
		"not if one was skipped": {store.Backfilled{Through: clockTime("00:01:00"), Counts: map[store.Status]int64{store.Succeeded: 5, store.Skipped: 1}}, nil, 6},
		"not if one is unknown":  {store.Backfilled{Through: clockTime("00:01:00"), Counts: map[store.Status]int64{store.Succeeded: 5}}, nil, 6},
		"not what waits":         {store.Backfilled{Through: clockTime("00:01:00"), Attempt: 1, Counts: map[store.Status]int64{store.Succeeded: 5}}, nil, 6},
		"another backfill":       {store.Backfilled{Seq: 8, Through: clockTime("00:01:00"), Counts: full}, nil, 6},
		"another schedule": {store.Backfilled{Through: clockTime("00:00:55"), Counts: map[store.Status]int64{store.Succeeded: 5}},
			[]store.Span{{From: clockTime("00:00:00"), To: clockTime("00:00:55")}}, 6},
		"a part": {store.Backfilled{Through: clockTime("00:00:30"), Counts: map[store.Status]int64{store.Succeeded: 2}},
			[]store.Span{{From: clockTime("00:00:10"), To: clockTime("00:00:30")}}, 4},
	} {
		t.Run(name, func(t *testing.T) {
			p := Policy{Ticks: every("10s")}
			if tt.done.Seq == 0 {
				tt.done.Seq = 9
			}
			if tt.spans == nil {
				tt.spans = []store.Span{{From: clockTime("00:00:00"), To: clockTime("00:01:00")}}
			}
			r := store.Record{Watermark: clockTime("00:01:00"), Backfill: tt.done, Counts: map[store.Status]int64{store.Missed: 6},
				History: []store.Outcome{{From: clockTime("00:00:00"), Tick: clockTime("00:01:00"), Count: 6, Status: store.Missed}}}
			of := Range{From: clockTime("00:00:01"), To: clockTime("00:01:00")}
			b, _, _, err := p.PlanBackfill(&r, clockTime("00:01:05"), of, &store.Backfill{Seq: 9, Spans: tt.spans})
			if b.Ticks != tt.want || (err == nil) != (tt.want > 0) {
				t.Errorf("%d ticks at %v, want %d: %v", b.Ticks, b.Spans, tt.want, err)
			}
		})
	}
}

// One of several runs has stalled, and the replica dies before it can tell of those beside it: they count as runs whose runner died.
func TestBackfillBesideAStall(t *testing.T) {
	for name, tt := range map[string]struct {
		interrupted Interrupted
		deaths      int // of the tick beside, before this claim
		control     store.JobControl
		open        []store.OpenTick // after the next claim
		outcome     store.Status     // of the tick beside
		reason      string
	}{
		"run again, alone": {Rerun, 0, store.JobControl{}, []store.OpenTick{{Tick: clockTime("00:00:20"), Token: 8, Attempt: 2, Deaths: 1}, {Tick: clockTime("00:00:30"), Token: -7, Attempt: 1, Deaths: 1}}, "", ""},
		"the fifth death":  {Rerun, 4, store.JobControl{}, []store.OpenTick{{Tick: clockTime("00:00:30"), Token: 8, Attempt: 2, Deaths: 1}}, store.Abandoned, "its runner died"},
		"not run again":    {Abandon, 0, store.JobControl{}, nil, store.Abandoned, "its runner died"},
		"cancelled": {Rerun, 0, store.JobControl{End: store.End{Cancel: true, Token: 7, By: "ann"}},
			[]store.OpenTick{{Tick: clockTime("00:00:30"), Token: 8, Attempt: 2, Deaths: 1}}, store.Cancelled, "by ann"},
	} {
		t.Run(name, func(t *testing.T) {
			p := Policy{Ticks: every("10s"), Spec: "s", Lease: 15 * time.Second, Interrupted: tt.interrupted}
			fill := store.Backfill{Seq: 9, Spans: []store.Span{{From: clockTime("00:00:10"), To: clockTime("00:00:30")}}, Parallel: 4}
			r := store.Record{Token: 7, Watermark: clockTime("00:03:20"), Definition: store.Definition{Spec: "s"},
				Run: store.Run{Request: store.BackfillRequest(9), Order: 9, Tick: clockTime("00:00:20"), Attempt: 1, Status: store.Running},
				Backfill: store.Backfilled{Seq: 9, Through: clockTime("00:00:30"), Several: true,
					Open: []store.OpenTick{{Tick: clockTime("00:00:20"), Token: 7, Attempt: 1, Deaths: tt.deaths}, {Tick: clockTime("00:00:30"), Token: 7, Attempt: 1}}}}
			r = p.StallSeveral(&r, Ended{Tick: clockTime("00:00:30"), Status: store.Stalled, Reason: "quiet"})
			if about := AboutLast(&r); tt.interrupted == Rerun && about.Tick != clockTime("00:00:30") {
				t.Errorf("an order to cancel the claim names the ticks up to %s, and the one that stalled is later", about.Tick)
			}
			tt.control.Backfill = fill
			next, todo := p.Claim(View{Record: &r, Now: clockTime("00:03:25"), Control: tt.control})
			if got := next.Record.Backfill.Open; !todo || !slices.Equal(got, tt.open) {
				t.Errorf("got %+v, want %+v", got, tt.open)
			}
			told := store.Outcome{}
			if len(next.Backfilled) > 0 {
				told = next.Backfilled[0]
			}
			if told.Status != tt.outcome || told.Reason != tt.reason || tt.outcome != "" && told.Token != 7 {
				t.Errorf("tells %+v", next.Backfilled)
			}
		})
	}
}
