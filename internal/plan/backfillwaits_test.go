package plan

import (
	"slices"
	"testing"
	"time"

	"github.com/soloist-go/soloist/internal/schedule"
	"github.com/soloist-go/soloist/store"
)

// A tick of a backfill that waits gets its next attempt only under a definition that has the tick, and repeats. What the same
// claim settles first changes nothing about that.
func TestWaitingBackfillUnderAnotherDefinition(t *testing.T) {
	every30s, err := schedule.Parse("@every 30s", "", "job")
	if err != nil {
		t.Fatal(err)
	}
	at := func(seconds int) time.Time { return midnight.Add(time.Duration(seconds) * time.Second) }
	waits := store.Backfilled{Seq: 9, Through: at(10), Attempt: 1}
	open := store.Backfilled{Seq: 9, Through: at(40), Several: true, Open: []store.OpenTick{{Tick: at(20)}, {Tick: at(30), Attempt: 1}, {Tick: at(40), Attempt: 1}}}
	dead := store.Run{Tick: at(195), Request: "please", Attempt: 1, Status: store.Running}
	for name, tt := range map[string]struct {
		p        Policy
		fill     store.Backfilled
		run      store.Run // the last one
		parallel int
		tick     time.Time // of the next claim
		attempt  int
		told     []store.Outcome
	}{
		"the same":                     {Policy{Ticks: every("10s"), Spec: "old", Interrupted: Rerun}, waits, store.Run{}, 0, at(10), 2, nil},
		"another that has it":          {Policy{Ticks: every("10s"), Spec: "new", Interrupted: Rerun}, waits, store.Run{}, 0, at(10), 2, nil},
		"another without it":           {Policy{Ticks: every30s, Spec: "new", Interrupted: Rerun}, waits, store.Run{}, 0, at(30), 1, []store.Outcome{{Tick: at(10), Reason: ScheduleChanged}}},
		"another without it, later":    {Policy{Ticks: every30s, Spec: "old", Interrupted: Rerun}, waits, store.Run{}, 0, at(30), 1, []store.Outcome{{Tick: at(10), Reason: ScheduleChanged}}},
		"another, after a death":       {Policy{Ticks: every30s, Spec: "new", Interrupted: Rerun}, waits, dead, 0, at(30), 1, []store.Outcome{{Tick: at(10), Reason: ScheduleChanged}}},
		"several":                      {Policy{Ticks: every30s, Spec: "new", Interrupted: Rerun}, open, store.Run{}, 4, at(30), 2, []store.Outcome{{Tick: at(40), Reason: ScheduleChanged}}},
		"several, all of which it has": {Policy{Ticks: every("10s"), Spec: "new", Interrupted: Rerun}, open, store.Run{}, 4, at(20), 1, nil},
		"no repeats any more":          {Policy{Ticks: every("10s"), Spec: "old"}, waits, store.Run{}, 0, at(20), 1, []store.Outcome{{Tick: at(10), Reason: "not run again"}}},
		"the same, after a death":      {Policy{Ticks: every("10s"), Spec: "old"}, waits, dead, 0, at(20), 1, []store.Outcome{{Tick: at(10), Reason: "not run again"}}},
		"no repeats of several":        {Policy{Ticks: every("10s"), Spec: "old"}, open, dead, 4, at(20), 1, []store.Outcome{{Tick: at(30), Reason: "not run again"}, {Tick: at(40), Reason: "not run again"}}},
	} {
		t.Run(name, func(t *testing.T) {
			r := store.Record{Token: 7, Watermark: at(200), Definition: store.Definition{Spec: "old"}, Run: tt.run, Backfill: tt.fill}
			fill := store.Backfill{Seq: 9, Spans: []store.Span{{From: at(5), To: at(90)}}, Parallel: tt.parallel}
			next, todo := tt.p.Claim(View{Record: &r, Now: at(201), Since: midnight, Control: store.JobControl{Backfill: fill}})
			if run := next.Record.Run; !todo || !next.Run || !run.Tick.Equal(tt.tick) || run.Attempt != tt.attempt {
				t.Errorf("claims %s attempt %d, want %s attempt %d", run.Tick.Format(time.TimeOnly), run.Attempt, tt.tick.Format(time.TimeOnly), tt.attempt)
			}
			told := slices.Collect(func(yield func(store.Outcome) bool) {
				for _, o := range next.Backfilled {
					yield(store.Outcome{Tick: o.Tick, Reason: o.Reason})
				}
			})
			if !slices.Equal(told, tt.told) || next.Record.Backfill.Counts[store.Abandoned] != int64(len(tt.told)) {
				t.Errorf("tells %+v, want %+v; counts %v", told, tt.told, next.Record.Backfill.Counts)
			}
			if slices.ContainsFunc(next.Record.Backfill.Open, func(o store.OpenTick) bool { return !tt.p.Ticks.Last(o.Tick).Equal(o.Tick) }) {
				t.Errorf("keeps %+v", next.Record.Backfill.Open)
			}
		})
	}
}

// A run by hand puts no definition into force, so it leaves what waits of a backfill.
func TestRunByHandLeavesWaitingBackfill(t *testing.T) {
	every30s, err := schedule.Parse("@every 30s", "", "job")
	if err != nil {
		t.Fatal(err)
	}
	p := Policy{Ticks: every30s, Spec: "new", Interrupted: Rerun}
	r := store.Record{Token: 7, Watermark: clockTime("00:03:20"), Definition: store.Definition{Spec: "old"}, Backfill: store.Backfilled{Seq: 9, Through: clockTime("00:00:10"), Attempt: 1}}
	v := View{Record: &r, Now: clockTime("00:03:21"), Since: midnight, Request: "please",
		Control: store.JobControl{Backfill: store.Backfill{Seq: 9, Spans: []store.Span{{From: midnight, To: clockTime("00:01:00")}}}}}
	if next, _ := p.Claim(v); !next.Run || next.Record.Backfill.Attempt != 1 {
		t.Errorf("got %+v", next.Record)
	}
}

// A run that was ordered after the death of a runner that was silent is no overlap, also once the end of that run was guessed.
func TestOrderAfterDeathIsNoOverlap(t *testing.T) {
	p := Policy{Ticks: every("10s"), Lease: 15 * time.Second}
	r := store.Record{Token: 7, Watermark: clockTime("00:00:10"), Run: store.Run{Status: store.Running, Tick: clockTime("00:00:20"), Attempt: 1, Replica: "a", Claimed: clockTime("00:00:20")}}
	stalled := p.Stall(&r, "quiet", clockTime("00:00:25"), store.JobControl{})
	claim, todo := p.Claim(View{Record: &stalled, Now: clockTime("00:01:00")})
	if !todo || !claim.Run {
		t.Fatal("there is nothing to claim")
	}
	claim.Record.Run.Claimed = clockTime("00:01:00")
	ordered := store.JobControl{Requests: []store.Request{{Seq: 3, Name: "please", At: clockTime("00:00:50"), Until: clockTime("01:00:00")}}}
	for name, settled := range map[string]store.Record{
		"its claim was taken back": p.TakeBack(&stalled, &claim.Record),
		"it was settled": func() store.Record {
			c, _ := p.Claim(View{Record: &stalled, Now: clockTime("00:01:00"), Claims: NoRun})
			return c.Record
		}(),
	} {
		settled.Watermark = clockTime("00:01:00")
		next, _ := p.Claim(View{Record: &settled, Now: clockTime("00:01:01"), Control: ordered})
		if next.Record.Run.Request != "please" {
			t.Errorf("%s: the ordered run is not begun: %+v", name, next.Record.History)
		}
	}
	for _, end := range []string{"00:00:57", "00:00:51"} { // a run that has returned
		finished := p.Finish(&stalled, store.Stalled, "quiet", clockTime(end), clockTime(end), store.JobControl{})
		next, _ := p.Claim(View{Record: &finished, Now: clockTime("00:00:58"), Control: ordered})
		if begun, want := next.Record.Run.Request == "please", end == "00:00:51"; begun != want {
			t.Errorf("ordered at 00:00:50, and the run has returned at %s: begun %t", end, begun)
		}
	}
}
