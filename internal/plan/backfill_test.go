package plan

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/internal/record"
	"github.com/soloist-go/soloist/store"
)

// What was missed is what the history says, as far as it reaches.
func TestRangeOfBackfill(t *testing.T) {
	p := Policy{Ticks: every("10s"), Spec: "s"}
	at := func(seconds int) time.Time { return midnight.Add(time.Duration(seconds) * time.Second) }
	r := p.New("app", "job", View{Now: midnight, Since: midnight}, time.Time{})
	settle(&r, event.Outcome{From: r.Watermark, Tick: at(30), Count: 3, Status: event.Missed, Reason: "a newer one was due"})
	settle(&r, event.Outcome{Tick: at(40), Status: event.Succeeded})
	settle(&r, event.Outcome{Tick: at(41), Request: "please", Status: event.Missed})
	settle(&r, event.Outcome{Tick: at(50), Status: event.Missed})
	settle(&r, event.Outcome{From: at(50), Tick: at(70), Status: event.Missed, Reason: "the schedule changed"})
	settle(&r, event.Outcome{From: at(70), Tick: at(100), Count: 3, Status: event.Skipped, Reason: Paused})
	cut := r.Clone()
	cut.History = cut.History[:3]
	const noEnd = -1 << 20 // the tick at 110 has no outcome
	for name, tt := range map[string]struct {
		r        *record.Record
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
		"up to now":                 {&r, 80, noEnd, true, 3, ""},
		"nothing up to now":         {&r, 101, noEnd, true, 0, "has an outcome yet"},
		"the future":                {&r, 10, 10_000, true, 0, "in the future"},
	} {
		of := Range{From: at(tt.from), To: at(tt.to), All: tt.all}
		if tt.to == noEnd {
			of.To, tt.to = time.Time{}, 100
		}
		b, first, last, err := PlanBackfill(&p, tt.r, at(115), of, &record.Backfill{})
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
	r := record.Record{Watermark: clockTime("00:10:00")}
	end := clockTime("00:05:00")
	for text, of := range map[string]Range{
		"is missing":         {To: end},
		"-1 ticks at a time": {From: midnight, To: end, Parallel: -1},
		"17 ticks at a time": {From: midnight, To: end, Parallel: 17},
		"the group imports":  {From: midnight, To: end, Parallel: 2},
	} {
		of.All = true
		if b, _, _, err := PlanBackfill(&p, &r, clockTime("00:10:05"), of, &record.Backfill{}); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: got %+v, %v", text, b, err)
		}
	}
}

// A schedule with more ticks does not make a backfill larger than any may be.
func TestBackfillEndsAtItsLimit(t *testing.T) {
	for name, tt := range map[string]struct{ parallel, claims int }{"one at a time": {0, 1}, "some at a time": {4, 3}} {
		t.Run(name, func(t *testing.T) {
			p := Policy{Ticks: every("10s")}
			fill := record.Backfill{Seq: 9, Spans: []record.Span{{From: clockTime("00:00:00"), To: clockTime("00:01:40")}}, Parallel: tt.parallel}
			r := record.Record{Watermark: clockTime("00:03:20"), Backfill: record.Backfilled{Seq: 9, Through: clockTime("00:00:10"), Several: tt.parallel > 1,
				Counts: map[event.Status]int64{event.Succeeded: maxCount - int64(tt.claims)}}}
			v := View{Record: &r, Now: clockTime("00:03:25"), Control: record.JobControl{Backfill: fill}}
			next, _ := p.Claim(v)
			got := max(1, len(next.Record.Backfill.Open))
			if !next.Run || got != tt.claims {
				t.Errorf("claims %d ticks, want %d: %+v", got, tt.claims, next.Record.Backfill)
			}
			r.Backfill.Counts[event.Succeeded] = maxCount
			if next, _ := p.Claim(v); next.Run || !p.BackfillOver(&r, &fill) {
				t.Errorf("goes on with %+v", next.Record.Backfill)
			}
		})
	}
}

// Ticks that were missed are left out once a backfill has made up for them, as far as the record tells.
func TestBackfillLeavesOutWhatIsMadeUp(t *testing.T) {
	n := func(succeeded, failed, skipped int64) map[event.Status]int64 {
		return map[event.Status]int64{event.Succeeded: succeeded, event.Failed: failed, event.Skipped: skipped}
	}
	for name, tt := range map[string]struct {
		done  record.Backfilled
		spans []record.Span // of the backfill before
		want  int           // ticks
	}{
		"all":                    {record.Backfilled{Through: clockTime("00:01:00"), Counts: n(6, 0, 0)}, nil, 0},
		"not its rest":           {record.Backfilled{Through: clockTime("00:00:40"), Counts: n(4, 0, 0)}, nil, 2},
		"not up to a failure":    {record.Backfilled{Through: clockTime("00:01:00"), Failed: clockTime("00:00:30"), Counts: n(5, 1, 0)}, nil, 3},
		"not if one was skipped": {record.Backfilled{Through: clockTime("00:01:00"), Counts: n(5, 0, 1)}, nil, 6},
		"not if one is unknown":  {record.Backfilled{Through: clockTime("00:01:00"), Counts: n(5, 0, 0)}, nil, 6},
		"not what waits":         {record.Backfilled{Through: clockTime("00:01:00"), Attempt: 1, Counts: n(5, 0, 0)}, nil, 6},
		"another backfill":       {record.Backfilled{Seq: 8, Through: clockTime("00:01:00"), Counts: n(6, 0, 0)}, nil, 6},
		"another schedule": {record.Backfilled{Through: clockTime("00:00:55"), Counts: n(5, 0, 0)},
			[]record.Span{{From: clockTime("00:00:00"), To: clockTime("00:00:55")}}, 6},
		"a part": {record.Backfilled{Through: clockTime("00:00:30"), Counts: n(2, 0, 0)},
			[]record.Span{{From: clockTime("00:00:10"), To: clockTime("00:00:30")}}, 4},
	} {
		t.Run(name, func(t *testing.T) {
			p := Policy{Ticks: every("10s")}
			if tt.done.Seq == 0 {
				tt.done.Seq = 9
			}
			if tt.spans == nil {
				tt.spans = []record.Span{{From: clockTime("00:00:00"), To: clockTime("00:01:00")}}
			}
			r := record.Record{Watermark: clockTime("00:01:00"), Backfill: tt.done, Counts: map[event.Status]int64{event.Missed: 6},
				History: []event.Outcome{{From: clockTime("00:00:00"), Tick: clockTime("00:01:00"), Count: 6, Status: event.Missed}}}
			of := Range{From: clockTime("00:00:01"), To: clockTime("00:01:00")}
			b, _, _, err := PlanBackfill(&p, &r, clockTime("00:01:05"), of, &record.Backfill{Seq: 9, Spans: tt.spans})
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
		control     record.JobControl
		open        []record.OpenTick // after the next claim
		outcome     event.Status      // of the tick beside
		reason      string
	}{
		"run again, alone": {Rerun, 0, record.JobControl{}, []record.OpenTick{{Tick: clockTime("00:00:20"), Token: 8, Attempt: 2, Deaths: 1}, {Tick: clockTime("00:00:30"), Token: -7, Attempt: 1, Deaths: 1}}, "", ""},
		"the fifth death":  {Rerun, 4, record.JobControl{}, []record.OpenTick{{Tick: clockTime("00:00:30"), Token: 8, Attempt: 2, Deaths: 1}}, event.Abandoned, "its runner died"},
		"not run again":    {Abandon, 0, record.JobControl{}, nil, event.Abandoned, "its runner died"},
		"cancelled": {Rerun, 0, record.JobControl{End: record.End{Cancel: true, Token: 7, By: "ann"}},
			[]record.OpenTick{{Tick: clockTime("00:00:30"), Token: 8, Attempt: 2, Deaths: 1}}, event.Cancelled, "by ann"},
	} {
		t.Run(name, func(t *testing.T) {
			p := Policy{Ticks: every("10s"), Spec: "s", Lease: 15 * time.Second, Interrupted: tt.interrupted}
			fill := record.Backfill{Seq: 9, Spans: []record.Span{{From: clockTime("00:00:10"), To: clockTime("00:00:30")}}, Parallel: 4}
			r := record.Record{Token: 7, Watermark: clockTime("00:03:20"), Definition: record.Definition{Spec: "s"},
				Run: record.Run{Request: record.BackfillRequest(9), Order: 9, Tick: clockTime("00:00:20"), Attempt: 1, Status: event.Running},
				Backfill: record.Backfilled{Seq: 9, Through: clockTime("00:00:30"), Several: true,
					Open: []record.OpenTick{{Tick: clockTime("00:00:20"), Token: 7, Attempt: 1, Deaths: tt.deaths}, {Tick: clockTime("00:00:30"), Token: 7, Attempt: 1}}}}
			r = StallSeveral(&p, &r, Ended{Tick: clockTime("00:00:30"), Status: event.Stalled, Reason: "quiet"})
			if about := AboutLast(&r); tt.interrupted == Rerun && about.Tick != clockTime("00:00:30") {
				t.Errorf("an order to cancel the claim names the ticks up to %s, and the one that stalled is later", about.Tick)
			}
			tt.control.Backfill = fill
			next, todo := p.Claim(View{Record: &r, Now: clockTime("00:03:25"), Control: tt.control})
			if got := next.Record.Backfill.Open; !todo || !slices.Equal(got, tt.open) {
				t.Errorf("got %+v, want %+v", got, tt.open)
			}
			told := event.Outcome{}
			if len(next.Backfilled) > 0 {
				told = next.Backfilled[0]
			}
			if told.Status != tt.outcome || told.Reason != tt.reason || tt.outcome != "" && told.Token != 7 {
				t.Errorf("tells %+v", next.Backfilled)
			}
		})
	}
}

// A tick of a backfill that waits gets its next attempt only under a definition that has the tick, and repeats. What the same
// claim settles first changes nothing about that. A run by hand puts no definition into force, so it leaves what waits.
func TestWaitingBackfillUnderAnotherDefinition(t *testing.T) {
	at := func(seconds int) time.Time { return midnight.Add(time.Duration(seconds) * time.Second) }
	waits := record.Backfilled{Seq: 9, Through: at(10), Attempt: 1}
	open := record.Backfilled{Seq: 9, Through: at(40), Several: true, Open: []record.OpenTick{{Tick: at(20)}, {Tick: at(30), Attempt: 1}, {Tick: at(40), Attempt: 1}}}
	dead := record.Run{Tick: at(195), Request: "please", Attempt: 1, Status: event.Running}
	for name, tt := range map[string]struct {
		p        Policy
		fill     record.Backfilled
		run      record.Run // the last one
		parallel int
		tick     time.Time // of the next claim
		attempt  int
		told     []event.Outcome
	}{
		"the same":                     {Policy{Ticks: every("10s"), Spec: "old", Interrupted: Rerun}, waits, record.Run{}, 0, at(10), 2, nil},
		"another that has it":          {Policy{Ticks: every("10s"), Spec: "new", Interrupted: Rerun}, waits, record.Run{}, 0, at(10), 2, nil},
		"another without it":           {Policy{Ticks: every("30s"), Spec: "new", Interrupted: Rerun}, waits, record.Run{}, 0, at(30), 1, []event.Outcome{{Tick: at(10), Reason: ScheduleChanged}}},
		"another without it, later":    {Policy{Ticks: every("30s"), Spec: "old", Interrupted: Rerun}, waits, record.Run{}, 0, at(30), 1, []event.Outcome{{Tick: at(10), Reason: ScheduleChanged}}},
		"another, after a death":       {Policy{Ticks: every("30s"), Spec: "new", Interrupted: Rerun}, waits, dead, 0, at(30), 1, []event.Outcome{{Tick: at(10), Reason: ScheduleChanged}}},
		"several":                      {Policy{Ticks: every("30s"), Spec: "new", Interrupted: Rerun}, open, record.Run{}, 4, at(30), 2, []event.Outcome{{Tick: at(40), Reason: ScheduleChanged}}},
		"several, all of which it has": {Policy{Ticks: every("10s"), Spec: "new", Interrupted: Rerun}, open, record.Run{}, 4, at(20), 1, nil},
		"no repeats any more":          {Policy{Ticks: every("10s"), Spec: "old"}, waits, record.Run{}, 0, at(20), 1, []event.Outcome{{Tick: at(10), Reason: "not run again"}}},
		"the same, after a death":      {Policy{Ticks: every("10s"), Spec: "old"}, waits, dead, 0, at(20), 1, []event.Outcome{{Tick: at(10), Reason: "not run again"}}},
		"no repeats of several":        {Policy{Ticks: every("10s"), Spec: "old"}, open, dead, 4, at(20), 1, []event.Outcome{{Tick: at(30), Reason: "not run again"}, {Tick: at(40), Reason: "not run again"}}},
	} {
		t.Run(name, func(t *testing.T) {
			r := record.Record{Token: 7, Watermark: at(200), Definition: record.Definition{Spec: "old"}, Run: tt.run, Backfill: tt.fill}
			fill := record.Backfill{Seq: 9, Spans: []record.Span{{From: at(5), To: at(90)}}, Parallel: tt.parallel}
			v := View{Record: &r, Now: at(201), Since: midnight, Control: record.JobControl{Backfill: fill}, Request: "please"}
			if next, _ := tt.p.Claim(v); tt.p.Spec == "new" && tt.run.Status == "" && (!next.Run || next.Record.Backfill.Attempt != tt.fill.Attempt || len(next.Backfilled) > 0) {
				t.Errorf("a run by hand: %+v", next)
			}
			v.Request = ""
			next, todo := tt.p.Claim(v)
			if run := next.Record.Run; !todo || !next.Run || !run.Tick.Equal(tt.tick) || run.Attempt != tt.attempt {
				t.Errorf("claims %s attempt %d, want %s attempt %d", run.Tick.Format(time.TimeOnly), run.Attempt, tt.tick.Format(time.TimeOnly), tt.attempt)
			}
			var told []event.Outcome
			for _, o := range next.Backfilled {
				told = append(told, event.Outcome{Tick: o.Tick, Reason: o.Reason})
			}
			if !slices.Equal(told, tt.told) || next.Record.Backfill.Counts[event.Abandoned] != int64(len(tt.told)) {
				t.Errorf("tells %+v, want %+v; counts %v", told, tt.told, next.Record.Backfill.Counts)
			}
			if slices.ContainsFunc(next.Record.Backfill.Open, func(o record.OpenTick) bool { return !tt.p.Ticks.Last(o.Tick).Equal(o.Tick) }) {
				t.Errorf("keeps %+v", next.Record.Backfill.Open)
			}
		})
	}
}

// An order to cancel a claim of several ticks is read by replicas only once the claim has ended, however that was. It cancels
// what later claims repeat of it, and nothing else.
func TestCancelOfSeveralReachesAllItsTicks(t *testing.T) {
	at := func(seconds int) time.Time { return midnight.Add(time.Duration(seconds) * time.Second) }
	p := Policy{Ticks: every("10s"), Spec: "s", Interrupted: Rerun}
	fill := record.Backfill{Seq: 9, Spans: []record.Span{{From: at(5), To: at(90)}}, Parallel: 3}
	end := func(r *record.Record, status event.Status, reason string, ticks ...time.Time) (all []Ended) {
		for _, o := range UnderWay(r) {
			if len(ticks) == 0 || slices.Contains(ticks, o.Tick) {
				all = append(all, Ended{Tick: o.Tick, Status: status, Reason: reason, End: at(300)})
			}
		}
		return all
	}
	for name, tt := range map[string]struct {
		ends      func(before, r *record.Record) record.Record // how the claim ends
		cancelled int64
	}{
		"its runner dies": {func(_, r *record.Record) record.Record { return *r }, 3},
		"its runner dies after the first": {func(_, r *record.Record) record.Record {
			End(&p, r, end(r, event.Succeeded, "", at(10))...)
			return *r
		}, 2},
		"its runner stops after the first": {func(_, r *record.Record) record.Record {
			End(&p, r, end(r, event.Succeeded, "", at(10))...)
			return FinishSeveral(&p, r, end(r, event.Abandoned, Stopped), at(300))
		}, 2},
		"it is given up": {func(before, r *record.Record) record.Record { return TakeBack(&p, before, r) }, 3},
	} {
		t.Run(name, func(t *testing.T) {
			r := record.Record{Token: 7, Watermark: at(200), Definition: record.Definition{Spec: "s"}}
			claim := func(c record.JobControl) bool {
				c.Backfill = fill
				next, todo := p.Claim(View{Record: &r, State: store.Expired, Now: at(201), Since: midnight, Control: c})
				next.Record.Run.Claimed = at(201)
				if todo {
					r = next.Record
				}
				return todo && next.Run
			}
			before := r
			if !claim(record.JobControl{}) {
				t.Fatal("nothing is claimed")
			}
			order := record.End{Seq: 10, Token: r.Token, About: AboutLast(&r), Cancel: true, By: "ann"}
			r = tt.ends(&before, &r)
			claim(record.JobControl{}) // before the order arrives
			for ok := true; ok; ok = claim(record.JobControl{End: order}) {
				status := event.Succeeded
				if (&record.JobControl{End: order}).EndOf(r.Token, AboutLast(&r)).Cancel {
					status = event.Cancelled
				}
				r = FinishSeveral(&p, &r, end(&r, status, ""), at(300))
			}
			if n := r.Backfill.Counts; n[event.Cancelled] != tt.cancelled || n[event.Succeeded] != 9-tt.cancelled {
				t.Errorf("got %v, want %d cancelled of 9", n, tt.cancelled)
			}
		})
	}
}
