package plan

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/internal/instant"
	"github.com/soloist-go/soloist/internal/record"
	"github.com/soloist-go/soloist/store"
)

func TestJudge(t *testing.T) {
	type outcome = event.Outcome
	at := clockTime
	for name, tt := range map[string]struct {
		through, judged, now string
		history              []outcome // newest first
		change               func(*Policy, *record.Record, *record.JobControl)
		want                 string // the newest late tick, how many, and why; and up to where all is judged
	}{
		"nothing is due":      {through: "00:01:00", judged: "00:01:00", now: "00:01:05", want: "0 judged 00:01:00"},
		"not late yet":        {through: "00:01:00", judged: "00:01:00", now: "00:01:39", want: "0 judged 00:01:00"},
		"at its time":         {through: "00:01:00", judged: "00:01:00", now: "00:01:40", want: "0 judged 00:01:00"},
		"after its time":      {through: "00:01:00", judged: "00:01:00", now: "00:01:40.001", want: "00:01:10*1 it has not begun, judged 00:01:10"},
		"many":                {through: "00:01:00", judged: "00:01:00", now: "00:03:05", want: "00:02:30*9 it has not begun, judged 00:02:30"},
		"told already":        {through: "00:01:00", judged: "00:02:30", now: "00:03:05", want: "0 judged 00:02:30"},
		"never judged before": {through: "00:01:00", now: "00:01:45", want: "00:01:10*1 it has not begun, judged 00:01:10"},
		"succeeded": {through: "00:01:10", judged: "00:01:00", now: "00:02:01", history: []outcome{{Tick: at("00:01:10"), Status: event.Succeeded, End: at("00:01:40")}},
			want: "00:01:30*2 it has not begun, judged 00:01:30"},
		"succeeded too late": {through: "00:01:10", judged: "00:01:00", now: "00:01:42", history: []outcome{{Tick: at("00:01:10"), Status: event.Succeeded, End: at("00:01:41")}},
			want: "00:01:10*1 it has succeeded too late, judged 00:01:10"},
		"failed, and its time is not over": {through: "00:01:20", judged: "00:01:00", now: "00:01:39", history: []outcome{
			{Tick: at("00:01:20"), Status: event.Succeeded, End: at("00:01:21")}, {Tick: at("00:01:10"), Status: event.Failed, Reason: "boom"}}, want: "0 judged 00:01:00"},
		"failed, and a later one succeeded": {through: "00:01:20", judged: "00:01:00", now: "00:01:40.001", history: []outcome{
			{Tick: at("00:01:20"), Status: event.Succeeded, End: at("00:01:21")}, {Tick: at("00:01:10"), Status: event.Failed, Reason: "boom"}}, want: "00:01:10*1 failed: boom, judged 00:01:20"},
		"by hand":   {through: "00:01:00", judged: "00:01:00", now: "00:01:39", history: []outcome{{Tick: at("00:01:05"), Request: "x", Status: event.Failed}}, want: "0 judged 00:01:00"},
		"cancelled": {through: "00:01:10", judged: "00:01:00", now: "00:01:40.001", history: []outcome{{Tick: at("00:01:10"), Status: event.Cancelled}}, want: "0 judged 00:01:10"},
		"replaced": {through: "00:01:10", judged: "00:01:00", now: "00:01:40.001", history: []outcome{{Tick: at("00:01:10"), Status: event.Cancelled, Reason: "replaced by the tick of 2000-01-01T00:01:20Z"}},
			want: "00:01:10*1 cancelled: replaced by the tick of 2000-01-01T00:01:20Z, judged 00:01:10"},
		"Skip": {through: "00:01:10", judged: "00:01:00", now: "00:01:40.001", history: []outcome{{Tick: at("00:01:10"), Status: event.Skipped, Token: 5}}, want: "0 judged 00:01:10"},
		"overlap": {through: "00:01:10", judged: "00:01:00", now: "00:01:40.001", history: []outcome{{Tick: at("00:01:10"), Status: event.Skipped, Reason: "overlap"}},
			want: "00:01:10*1 skipped: overlap, judged 00:01:10"},
		"paused":       {through: "00:01:10", judged: "00:01:00", now: "00:01:40.001", history: []outcome{{Tick: at("00:01:10"), Status: event.Skipped, Reason: Paused}}, want: "0 judged 00:01:10"},
		"new schedule": {through: "00:01:10", judged: "00:01:00", now: "00:01:40.001", history: []outcome{{Tick: at("00:01:10"), Status: event.Missed, Reason: ScheduleChanged}}, want: "0 judged 00:01:10"},
		"a part of a range": {through: "00:02:00", judged: "00:01:00", now: "00:02:05", history: []outcome{{From: at("00:01:00"), Tick: at("00:02:00"), Count: 6, Status: event.Missed, Reason: "x"}},
			want: "00:01:30*3 missed, judged 00:01:30"},
		"the rest of a range": {through: "00:02:00", judged: "00:01:30", now: "00:02:35", history: []outcome{{From: at("00:01:00"), Tick: at("00:02:00"), Count: 6, Status: event.Missed, Reason: "x"}},
			want: "00:02:00*3 missed: x, judged 00:02:00"},
		"failed under another schedule": {through: "00:01:17", judged: "00:01:00", now: "00:01:47.001", history: []outcome{
			{From: at("00:01:13"), Tick: at("00:01:17"), Status: event.Missed, Reason: ScheduleChanged}, {Tick: at("00:01:13"), Status: event.Failed, Reason: "boom"}},
			want: "00:01:13*1 failed: boom, judged 00:01:17"},
		"missed under another schedule": {through: "00:02:03", judged: "00:01:00", now: "00:02:33.001", history: []outcome{
			{From: at("00:01:00"), Tick: at("00:02:03"), Count: 2, Status: event.Missed, Reason: "x"}}, want: "00:02:03*2 missed: x, judged 00:02:03"},
		"what history does not know is no reason": {through: "00:02:00", judged: "00:01:00", now: "00:02:05", want: "0 judged 00:02:00"},
		"in a pause that goes on": {through: "00:01:00", judged: "00:01:00", now: "00:02:41", change: func(_ *Policy, _ *record.Record, c *record.JobControl) {
			c.Pause = record.Pause{At: at("00:01:15"), By: "ann"}
		}, want: "00:01:10*1 it has not begun, judged 00:02:10"},
		"in a pause that is over": {through: "00:01:00", judged: "00:01:00", now: "00:02:41", change: func(_ *Policy, _ *record.Record, c *record.JobControl) {
			c.Pauses = []record.Span{{From: at("00:01:15"), To: at("00:01:45")}}
		}, want: "00:02:10*4 it has not begun, judged 00:02:10"},
		"paused by its settings": {through: "00:01:00", judged: "00:01:00", now: "00:02:41", change: func(p *Policy, _ *record.Record, _ *record.JobControl) { p.Paused = true }, want: "0 judged 00:02:10"},
		"another definition":     {through: "00:01:00", judged: "00:01:00", now: "00:02:41", change: func(_ *Policy, r *record.Record, _ *record.JobControl) { r.Definition.Spec = "other" }, want: "0 judged 00:01:00"},
		"no Finish":              {through: "00:01:00", judged: "00:01:00", now: "00:02:41", change: func(p *Policy, _ *record.Record, _ *record.JobControl) { p.Late.Finish = 0 }, want: "0 judged 00:01:00"},
		"running": {through: "00:01:00", judged: "00:01:00", now: "00:01:40.001", change: func(_ *Policy, r *record.Record, _ *record.JobControl) {
			r.Run = record.Run{Tick: at("00:01:10"), Status: event.Running, Attempt: 1, Claimed: at("00:01:10")}
		}, want: "00:01:10*1 its run has not ended, judged 00:01:10"},
		"open": {through: "00:01:00", judged: "00:01:00", now: "00:01:40.001", change: func(_ *Policy, r *record.Record, _ *record.JobControl) {
			r.Run = record.Run{Tick: at("00:01:10"), Status: event.Abandoned, Attempt: 1, Claimed: at("00:01:10")}
		}, want: "00:01:10*1 it waits for another attempt, judged 00:01:10"},
	} {
		p := Policy{Ticks: every("10s"), Spec: "job", Late: Late{Finish: 30 * time.Second}}
		r := record.Record{Created: midnight, Watermark: at(tt.through), Definition: record.Definition{Spec: "job"}, History: tt.history, Run: record.Run{Status: record.Idle}}
		if tt.judged != "" {
			r.Past.Judged = at(tt.judged)
		}
		var orders record.JobControl
		if tt.change != nil {
			tt.change(&p, &r, &orders)
		}
		wait := UntilTell(&p, &r, at(tt.now), orders)
		late := Judge(&p, &r, at(tt.now), orders)
		got := fmt.Sprintf("%d judged %s", late.Count, r.Past.Judged.Format("15:04:05"))
		if late.Count > 0 {
			got = fmt.Sprintf("%s*%d %s, judged %s", late.Tick.Format("15:04:05"), late.Count, late.Why, r.Past.Judged.Format("15:04:05"))
		}
		if got != tt.want {
			t.Errorf("%s:\ngot  %s\nwant %s", name, got, tt.want)
		}
		if (late.Count > 0) != (wait <= 0) {
			t.Errorf("%s: %d ticks are late, and it takes %s until one is", name, late.Count, wait)
		}
		if again := Judge(&p, &r, at(tt.now), orders); again.Count != 0 {
			t.Errorf("%s: told again: %+v", name, again)
		}
	}
}

// Whoever judges whenever UntilTell says so, and at each outcome, tells each late tick once and no other,
// none later than its time. Writes for that alone are a minute apart, and lose none.
func TestEachLateTickIsToldOnce(t *testing.T) {
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 0))
		p := Policy{Ticks: every("10s"), Spec: "job", Late: Late{Finish: time.Duration(1+r.IntN(90)) * time.Second}}
		rec := record.Record{Created: midnight, Watermark: midnight, Definition: record.Definition{Spec: "job"}, Run: record.Run{Status: record.Idle}}
		rec.Past.Judged = midnight
		var want, told int
		var last time.Time // such a write
		rare := seed%2 == 0
		judge := func(now time.Time) {
			switch wait := UntilTell(&p, &rec, now, record.JobControl{}); {
			case wait > 0:
			case rare:
				n := Report(&p, &rec, now, record.JobControl{}).Count
				if told += n; n > 0 && now.Sub(last) < lateAgain-time.Millisecond {
					t.Errorf("seed %d: at %s %d ticks are told, and others were at %s", seed, now, n, last)
				}
				last = now
			default:
				told += Judge(&p, &rec, now, record.JobControl{}).Count
			}
		}
		now := midnight
		for i := range 60 {
			tick := midnight.Add(time.Duration(i+1) * 10 * time.Second)
			end := tick.Add(time.Duration(r.IntN(9)) * time.Second)
			if r.IntN(5) == 0 { // it begins late, and those after it too
				end = end.Add(time.Duration(r.IntN(100)) * time.Second)
			}
			end = instant.Later(end, now)
			for now.Before(end) {
				wait := UntilTell(&p, &rec, now, record.JobControl{})
				if wait <= 0 {
					t.Fatalf("seed %d: at %s a tick is late, and was told", seed, now)
				}
				if now = now.Add(wait); now.After(end) {
					now = end
				}
				judge(now)
			}
			o := event.Outcome{Tick: tick, Status: []event.Status{event.Succeeded, event.Succeeded, event.Failed}[r.IntN(3)], End: end, Token: int64(i + 1)}
			if o.Status == event.Failed || end.Sub(tick) > p.Late.Finish {
				want++
			}
			settle(&rec, o)
			told += Judge(&p, &rec, now, record.JobControl{}).Count
			rec.History = rec.History[:min(len(rec.History), 20)]
		}
		told += Judge(&p, &rec, now.Add(p.Late.Finish+time.Second), record.JobControl{}).Count
		want += p.Ticks.Count(rec.Watermark, now.Add(time.Second-1), 1000) // they have not begun
		if told != want {
			t.Errorf("seed %d: told %d, want %d", seed, told, want)
		}
	}
}

// The clock of who told may be ahead, but if it was by more than a minute, nobody waits for it.
func TestUntilTellByAnotherClock(t *testing.T) {
	p := Policy{Ticks: every("10s"), Spec: "job", Late: Late{Finish: time.Second}}
	now := midnight.Add(time.Hour)
	for ahead, want := range map[time.Duration]time.Duration{
		-2 * time.Minute: 0, -time.Minute: 0, -20 * time.Second: 40 * time.Second, 0: time.Minute,
		500 * time.Millisecond: time.Minute, time.Minute: time.Minute, 61 * time.Second: 0,
	} {
		rec := record.Record{Created: midnight, Watermark: midnight, Definition: record.Definition{Spec: "job"}}
		rec.Past.Judged, rec.Past.Told = midnight, now.Add(ahead)
		if got := max(0, UntilTell(&p, &rec, now, record.JobControl{})); got != want {
			t.Errorf("told %s ahead: a write is due in %s, want %s", ahead, got, want)
		}
	}
}

// What a replica does between two ticks about the tick 00:01:00, which has failed, and is late at 00:01:30. In a pause the
// tick of a dead runner waits for an attempt, and is reported all the same.
func TestTell(t *testing.T) {
	dead := func(_ *Policy, v *View, _ *Observation) {
		v.Record.Watermark, v.Record.History, v.State = midnight, nil, store.Expired
		v.Record.Run = record.Run{Tick: clockTime("00:01:00"), Claimed: clockTime("00:01:00"), Status: event.Running, Attempt: 1}
		v.Control.Pause.At = clockTime("00:01:10")
	}
	type change = func(*Policy, *View, *Observation)
	old := func(_ *Policy, _ *View, o *Observation) { o.Fresh = false }
	leased := func(_ *Policy, v *View, _ *Observation) { v.State = store.Leased }
	told := func(_ *Policy, v *View, _ *Observation) { v.Record.Past.Judged = clockTime("00:01:00") }
	none := func(p *Policy, _ *View, _ *Observation) { p.Late.Finish = 0 }
	for name, tt := range map[string]struct {
		now    string
		change change
		want   What
		read   bool
		after  time.Duration // until it acts; zero: any
	}{
		"will be late":                {"00:01:10", nil, Wait, false, 20 * time.Second},
		"is late":                     {"00:01:35", nil, Tell, false, 0},
		"is late, by an older read":   {"00:01:35", old, Wait, true, 0},
		"is late, under a lease":      {"00:01:35", leased, Wait, false, 0},
		"the next tick is near":       {"00:01:59", nil, Wait, false, 0},
		"was reported":                {"00:01:35", told, Wait, false, 0},
		"nobody asks for it":          {"00:01:35", none, Wait, false, 0},
		"its runner died, in a pause": {"00:01:35", dead, Tell, false, 0},
	} {
		tick := clockTime("00:01:00")
		r := record.Record{Created: midnight, Watermark: tick, Definition: record.Definition{Spec: "job"}, Past: record.Past{Judged: midnight},
			History: []event.Outcome{{Tick: tick, Status: event.Failed}}, Run: record.Run{Tick: tick, Status: event.Failed, Attempt: 1}}
		p := Policy{Ticks: every("1m"), Spec: "job", Lease: 15 * time.Second, Late: Late{Finish: 30 * time.Second}, Interrupted: Rerun}
		v, o := View{Record: &r, State: store.Available, Now: clockTime(tt.now)}, Observation{At: looked, LookedAt: looked, Fresh: true}
		if tt.change != nil {
			tt.change(&p, &v, &o)
		}
		got := Next(&p, v, &o)
		if got.What != tt.want || got.Read != tt.read || tt.after > 0 && got.After.Round(time.Second) != tt.after {
			t.Errorf("%s: does %+v", name, got)
		}
	}
}
