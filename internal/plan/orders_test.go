package plan

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/internal/record"
)

// A manual call runs what was ordered before its turn, or what will have been ordered meanwhile. When its turn comes it is not run
// again, also where history has forgotten it; a claim that was given up is claimed again.
func TestOrderServedBeforeItsTurn(t *testing.T) {
	now := clockTime("01:00:00")
	var orders record.JobControl
	for i, name := range []string{"a", "b", "c", "d"} {
		orders.Requests = append(orders.Requests, record.Request{Seq: int64(i + 1), Name: name, At: now, Until: now.Add(time.Hour)})
	}
	p := Policy{Ticks: every("24h"), Spec: "s", Lease: 15 * time.Second}
	for name, tt := range map[string]struct {
		calls []string // empty: a replica that runs what is next; upper case: a call that knows no orders yet
		back  int      // which claim is given up
		want  []string
	}{
		"all in turn":              {[]string{"", "", "", "", ""}, -1, []string{"a", "b", "c", "d", ""}},
		"one before":               {[]string{"c", "", "", "", ""}, -1, []string{"c", "a", "b", "d", ""}},
		"some before":              {[]string{"d", "b", "", "", ""}, -1, []string{"d", "b", "a", "c", ""}},
		"the next one":             {[]string{"a", "b", "", "", ""}, -1, []string{"a", "b", "c", "d", ""}},
		"ordered meanwhile":        {[]string{"D", "", "", "", ""}, -1, []string{"d", "a", "b", "c", ""}},
		"given up":                 {[]string{"c", "", "", "", ""}, 0, []string{"c", "a", "b", "c", "d"}},
		"given up beside an early": {[]string{"c", "", "", "", ""}, 1, []string{"c", "a", "a", "b", "d"}},
		"given up after an early":  {[]string{"b", "", "", "", ""}, 2, []string{"b", "a", "c", "c", "d"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := record.Record{Watermark: now, Definition: record.Definition{Spec: "s"}}
			var got []string
			for i, call := range tt.calls {
				v := View{Record: &r, Now: now, Request: strings.ToLower(call), Control: orders}
				if call != v.Request {
					v.Control = record.JobControl{}
				}
				if i > 0 && call != "" && Served(v) {
					t.Errorf("%s is refused", call)
				}
				next, _ := p.Claim(v)
				if !next.Run {
					got, r.Orders = append(got, ""), next.Record.Orders // as the next write of the job has them
					continue
				}
				run, known := next.Record.Run, v.Control.Requests != nil
				got = append(got, run.Request)
				if known && (run.Order != int64(run.Request[0]-'a'+1) || !next.Record.Orders.IsServed(run.Order)) {
					t.Errorf("%s is the order %d, and %+v", run.Request, run.Order, next.Record.Orders)
				}
				if i == tt.back {
					r = TakeBack(&p, &r, &next.Record)
				} else {
					r = Finish(&p, &next.Record, event.Succeeded, "", now, now, record.JobControl{})
				}
				r.History = nil
			}
			if !slices.Equal(got, tt.want) || len(r.Orders.Early) > 0 || r.Orders.Served != 4 {
				t.Errorf("ran %q, want %q; noted: %+v", got, tt.want, r.Orders)
			}
		})
	}
}

// A record whose claim was taken back says what it said before, and never that a
// run goes on: the next replica neither holds off nor skips an attempt.
func TestWhatATakenBackRecordSays(t *testing.T) {
	at := clockTime("10:00:00")
	for name, tt := range map[string]struct {
		before record.Record
		status event.Status
		open   bool
	}{
		"after a success":               {record.Record{Run: record.Run{Status: event.Succeeded, Tick: at, Attempt: 1, Finished: at.Add(time.Second)}, Watermark: at}, event.Succeeded, false},
		"after a death":                 {record.Record{Run: record.Run{Status: event.Running, Tick: at, Attempt: 2, Stopping: true}, Watermark: at.Add(-time.Hour)}, event.Abandoned, true},
		"after a stop":                  {record.Record{Run: record.Run{Status: event.Abandoned, Tick: at, Attempt: 2, Finished: at.Add(time.Second)}, Watermark: at.Add(-time.Hour)}, event.Abandoned, true},
		"after a stall, not returned":   {record.Record{Run: record.Run{Status: event.Stalled, Tick: at, Attempt: 2}, Watermark: at.Add(-time.Hour)}, event.Stalled, true},
		"after a settled stall":         {record.Record{Run: record.Run{Status: event.Stalled, Tick: at, Attempt: 1}, Watermark: at}, event.Stalled, false},
		"of a new job":                  {record.Record{Run: record.Run{Status: record.Idle}, Watermark: at}, record.Idle, false},
		"after a run by hand that died": {record.Record{Run: record.Run{Status: event.Running, Tick: at, Request: "please", Attempt: 1}, Watermark: at}, event.Abandoned, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := Policy{Ticks: every("1h"), Interrupted: Rerun, Lease: time.Minute}
			before := tt.before
			before.Token, before.Run.Replica, before.Run.Claimed = 7, "a", at
			next, todo := p.Claim(View{Record: &before, Now: at.Add(time.Hour + time.Minute)})
			if !todo || !next.Run {
				t.Fatal("there is nothing to claim")
			}
			claim := next.Record
			claim.Run.Replica, claim.Run.Claimed = "b", at.Add(time.Hour+time.Minute)
			r := TakeBack(&p, &before, &claim)
			if r.Run.Status != tt.status || open(&r) != tt.open || r.MayRun() || r.Run.Stopping {
				t.Errorf("got %s, open %t, may run %t, stopping %t", r.Run.Status, open(&r), r.MayRun(), r.Run.Stopping)
			}
			if !r.Run.Tick.Equal(before.Run.Tick) || r.Run.Request != before.Run.Request || r.Run.Attempt != before.Run.Attempt || r.Run.Replica != "a" || !r.Run.Claimed.Equal(at) {
				t.Errorf("got %+v, want %+v", r, before)
			}
			again, todo := p.Claim(View{Record: &r, Now: at.Add(time.Hour + time.Minute)})
			if a := again.Record; !todo || a.Token != 9 || !a.Run.Tick.Equal(claim.Run.Tick) || a.Run.Attempt != claim.Run.Attempt || len(a.History) != len(claim.History) {
				t.Errorf("the next claim is %+v, and was %+v", a, claim)
			}
		})
	}
}

// A tick whose claim was taken back and cancelled stays cancelled, whatever is run by hand before a replica decides about it: that
// run takes the token by which the order names the claim. The tick of a follower stays so too, by a replica that knows nothing of the
// jobs before it.
func TestCancelOfTakenBackTickOutlivesRunByHand(t *testing.T) {
	tick := clockTime("00:00:40")
	ordered := record.JobControl{Requests: []record.Request{{Seq: 1, Name: "please", At: tick.Add(time.Second), Until: tick.Add(time.Hour)}}}
	paused := ordered
	paused.Pause = record.Pause{At: tick.Add(time.Second), By: "ann"}
	var o outcomes
	before := []Predecessor{predecessor("a", o.one("00:00:20", won).one("00:00:30", lost).one("00:00:40", won))}
	plain := []string{"cancelled 00:00:40 by ann", "missed 00:00:10-00:00:30(2) a newer one was due"}
	for name, tt := range map[string]struct {
		before []Predecessor
		v      View // Now zero: five seconds after the tick
		want   []string
	}{
		"called":                     {nil, View{Request: "please"}, plain},
		"ordered":                    {nil, View{Control: ordered}, plain},
		"ordered, and paused":        {nil, View{Control: paused}, plain},
		"called before the tick":     {nil, View{Request: "please", Now: tick.Add(-time.Second)}, plain[1:]},
		"called, of a follower":      {before, View{Request: "please"}, []string{"cancelled 00:00:40 by ann", "skipped 00:00:30 a failed", "missed 00:00:20 a newer one was due"}},
		"called, and decided before": {before, View{Before: before}, []string{"cancelled 00:00:40 by ann", "skipped 00:00:30 a failed", "missed 00:00:20 a newer one was due"}},
	} {
		t.Run(name, func(t *testing.T) {
			p, v := &Policy{Ticks: every("10s")}, tt.v
			for _, b := range tt.before {
				p.After = append(p.After, b.Job)
			}
			was := record.Record{Token: 7, Watermark: clockTime("00:00:10"), Run: record.Run{Status: event.Succeeded, Tick: clockTime("00:00:10"), Claimed: clockTime("00:00:10"), Attempt: 1}}
			claim, _ := p.Claim(View{Record: &was, Now: tick, Before: tt.before})
			back := TakeBack(p, &was, &claim.Record)
			v.Record, v.Control.End = &back, record.End{Token: back.Token, Cancel: true, By: "ann"}
			if v.Now.IsZero() {
				v.Now = tick.Add(5 * time.Second)
			}
			next, todo := p.Claim(v)
			if got := told(&next.Record); !todo || !slices.Equal(got, tt.want) || next.Run && (next.Record.Run.Request != "please" || next.Record.Run.Attempt != 1) {
				t.Errorf("settles %q, want %q: %+v", got, tt.want, next.Record.Run)
			}
		})
	}
}

// A claim that was given up is forgotten once its tick, or its order, has an outcome: there is nothing left to cancel.
func TestTakenBackClaimIsForgottenOnceSettled(t *testing.T) {
	tick := clockTime("10:00:00")
	p := Policy{Ticks: every("1h"), Lease: time.Minute, Late: Late{Start: 10 * time.Minute}}
	before := record.Record{Token: 7, Watermark: tick.Add(-time.Hour), Run: record.Run{Status: event.Succeeded, Tick: tick.Add(-time.Hour), Claimed: tick.Add(-time.Hour), Attempt: 1}}
	asked := record.JobControl{Requests: []record.Request{{Seq: 1, Name: "please", At: tick.Add(-time.Minute), Until: tick.Add(time.Minute)}}}
	for name, tt := range map[string]struct {
		claimed time.Duration // after the tick
		control record.JobControl
		settled time.Duration
		then    record.JobControl
		kept    bool
	}{
		"its tick is skipped for a pause":     {0, record.JobControl{}, time.Minute, record.JobControl{Pauses: []record.Span{{From: tick.Add(-time.Second), To: tick.Add(time.Second)}}}, false},
		"its tick is missed":                  {0, record.JobControl{}, time.Hour / 2, record.JobControl{}, false},
		"its tick is one of those missed":     {0, record.JobControl{}, 5*time.Hour + time.Hour/2, record.JobControl{}, false},
		"its tick is still due":               {0, record.JobControl{}, time.Minute, record.JobControl{}, true},
		"its order has waited too long":       {-30 * time.Second, asked, 2 * time.Minute, asked, false},
		"an order is missed, and not its own": {0, record.JobControl{}, 2 * time.Minute, asked, true},
	} {
		t.Run(name, func(t *testing.T) {
			claim, _ := p.Claim(View{Record: &before, Now: tick.Add(tt.claimed), Control: tt.control})
			back := TakeBack(&p, &before, &claim.Record)
			if !claim.Run || !MayBeCancelled(&back) {
				t.Fatalf("the claim that was given up is %+v", claim)
			}
			next, _ := p.Claim(View{Record: &back, Now: tick.Add(tt.settled), Control: tt.then, Claims: NoRun})
			if got := MayBeCancelled(&next.Record); got != tt.kept {
				t.Errorf("may be cancelled %t: %+v, %+v", got, next.Record.Orders, next.Record.History)
			}
		})
	}
}

// A run that was ordered after the death of a runner that was silent is no overlap, also once the end of that run was guessed.
func TestOrderAfterDeathIsNoOverlap(t *testing.T) {
	p := Policy{Ticks: every("10s"), Lease: 15 * time.Second}
	r := record.Record{Token: 7, Watermark: clockTime("00:00:10"), Run: record.Run{Status: event.Running, Tick: clockTime("00:00:20"), Attempt: 1, Replica: "a", Claimed: clockTime("00:00:20")}}
	stalled := Stall(&p, &r, "quiet", clockTime("00:00:25"), clockTime("00:00:25"), record.JobControl{})
	claim, _ := p.Claim(View{Record: &stalled, Now: clockTime("00:01:00")})
	claim.Record.Run.Claimed = clockTime("00:01:00")
	settled, _ := p.Claim(View{Record: &stalled, Now: clockTime("00:01:00"), Claims: NoRun})
	returned := func(at string) record.Record {
		return Finish(&p, &stalled, event.Stalled, "quiet", clockTime(at), clockTime("00:01:00"), record.JobControl{})
	}
	ordered := record.JobControl{Requests: []record.Request{{Seq: 3, Name: "please", At: clockTime("00:00:50"), Until: clockTime("01:00:00")}}}
	for name, tt := range map[string]struct {
		record record.Record
		begins bool
	}{
		"its claim was taken back": {TakeBack(&p, &stalled, &claim.Record), true},
		"it was settled":           {settled.Record, true},
		"it returned long after":   {returned("00:00:57"), false},
		"it returned about then":   {returned("00:00:51"), true},
	} {
		tt.record.Watermark = clockTime("00:01:00")
		next, _ := p.Claim(View{Record: &tt.record, Now: clockTime("00:01:01"), Control: ordered})
		if begun := next.Record.Run.Request == "please"; begun != tt.begins {
			t.Errorf("%s: the ordered run begins: %t, %+v", name, begun, next.Record.History)
		}
	}
}
