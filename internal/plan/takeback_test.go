package plan

import (
	"slices"
	"testing"
	"time"

	"github.com/soloist-go/soloist/internal/schedule"
	"github.com/soloist-go/soloist/store"
)

// A record whose claim was taken back says what it said before, and never that a
// run goes on: the next replica neither holds off nor skips an attempt.
func TestWhatATakenBackRecordSays(t *testing.T) {
	at := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	hourly, err := schedule.Parse("@hourly", "", "job")
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		before store.Record
		status store.Status
		open   bool
	}{
		"after a success":               {store.Record{Run: store.Run{Status: store.Succeeded, Tick: at, Attempt: 1, Finished: at.Add(time.Second)}, Watermark: at}, store.Succeeded, false},
		"after a death":                 {store.Record{Run: store.Run{Status: store.Running, Tick: at, Attempt: 2, Stopping: true}, Watermark: at.Add(-time.Hour)}, store.Abandoned, true},
		"after a stop":                  {store.Record{Run: store.Run{Status: store.Abandoned, Tick: at, Attempt: 2, Finished: at.Add(time.Second)}, Watermark: at.Add(-time.Hour)}, store.Abandoned, true},
		"after a stall, not returned":   {store.Record{Run: store.Run{Status: store.Stalled, Tick: at, Attempt: 2}, Watermark: at.Add(-time.Hour)}, store.Stalled, true},
		"after a settled stall":         {store.Record{Run: store.Run{Status: store.Stalled, Tick: at, Attempt: 1}, Watermark: at}, store.Stalled, false},
		"of a new job":                  {store.Record{Run: store.Run{Status: store.Idle}, Watermark: at}, store.Idle, false},
		"after a run by hand that died": {store.Record{Run: store.Run{Status: store.Running, Tick: at, Request: "please", Attempt: 1}, Watermark: at}, store.Abandoned, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := &Policy{Ticks: hourly, Interrupted: Rerun, Lease: time.Minute}
			before := tt.before
			before.Token, before.Run.Replica, before.Run.Claimed = 7, "a", at
			next, todo := p.Claim(View{Record: &before, Now: at.Add(time.Hour + time.Minute)})
			if !todo || !next.Run {
				t.Fatal("there is nothing to claim")
			}
			claim := next.Record
			claim.Run.Replica, claim.Run.Claimed = "b", at.Add(time.Hour+time.Minute)
			r := p.TakeBack(&before, &claim)
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

// A tick whose claim was taken back and cancelled stays cancelled, whatever is run by hand before
// a replica decides about it: that run takes the token by which the order names the claim.
func TestCancelOfTakenBackTickOutlivesRunByHand(t *testing.T) {
	tick := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	hourly, err := schedule.Parse("@hourly", "", "job")
	if err != nil {
		t.Fatal(err)
	}
	p := &Policy{Ticks: hourly, Lease: time.Minute}
	before := store.Record{Token: 7, Watermark: tick.Add(-2 * time.Hour), Run: store.Run{Status: store.Succeeded, Tick: tick.Add(-2 * time.Hour), Claimed: tick.Add(-2 * time.Hour), Attempt: 1}}
	claim, _ := p.Claim(View{Record: &before, Now: tick})
	back := p.TakeBack(&before, &claim.Record)
	cancelled := store.JobControl{End: store.End{Token: back.Token, Cancel: true, By: "ann"}}
	ordered := cancelled
	ordered.Requests = []store.Request{{Seq: 1, Name: "please", At: tick.Add(time.Minute), Until: tick.Add(time.Hour)}}
	paused := ordered
	paused.Pause = store.Pause{At: tick.Add(time.Second), By: "ann"}
	for name, v := range map[string]View{
		"called":                 {Request: "please", Control: cancelled},
		"ordered":                {Control: ordered},
		"ordered, and paused":    {Control: paused},
		"called before the tick": {Request: "please", Control: cancelled, Now: tick.Add(-time.Second)},
	} {
		t.Run(name, func(t *testing.T) {
			early := !v.Now.IsZero()
			v.Record = &back
			if !early {
				v.Now = tick.Add(2 * time.Minute)
			}
			next, todo := p.Claim(v)
			told := slices.ContainsFunc(next.Record.History, func(f store.Outcome) bool {
				return f.Tick.Equal(tick) && f.Status == store.Cancelled && f.Token == back.Token
			})
			if r := next.Record; !todo || told == early || !early && (!r.Watermark.Equal(tick) || next.Run && (r.Run.Request != "please" || r.Run.Attempt != 1)) {
				t.Errorf("got %+v", next)
			}
		})
	}
}

// A claim that was given up is forgotten once its tick, or its order, has an outcome: there is nothing left to cancel.
func TestTakenBackClaimIsForgottenOnceSettled(t *testing.T) {
	tick := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	hourly, err := schedule.Parse("@hourly", "", "job")
	if err != nil {
		t.Fatal(err)
	}
	p := &Policy{Ticks: hourly, Lease: time.Minute, StartingDeadline: 10 * time.Minute}
	before := store.Record{Token: 7, Watermark: tick.Add(-time.Hour), Run: store.Run{Status: store.Succeeded, Tick: tick.Add(-time.Hour), Claimed: tick.Add(-time.Hour), Attempt: 1}}
	asked := store.JobControl{Requests: []store.Request{{Seq: 1, Name: "please", At: tick.Add(-time.Minute), Until: tick.Add(time.Minute)}}}
	for name, tt := range map[string]struct {
		claimed time.Duration // after the tick
		control store.JobControl
		settled time.Duration
		then    store.JobControl
		kept    bool
	}{
		"its tick is skipped for a pause":     {0, store.JobControl{}, time.Minute, store.JobControl{Pauses: []store.Span{{From: tick.Add(-time.Second), To: tick.Add(time.Second)}}}, false},
		"its tick is missed":                  {0, store.JobControl{}, time.Hour / 2, store.JobControl{}, false},
		"its tick is one of those missed":     {0, store.JobControl{}, 5*time.Hour + time.Hour/2, store.JobControl{}, false},
		"its tick is still due":               {0, store.JobControl{}, time.Minute, store.JobControl{}, true},
		"its order has waited too long":       {-30 * time.Second, asked, 2 * time.Minute, asked, false},
		"an order is missed, and not its own": {0, store.JobControl{}, 2 * time.Minute, asked, true},
	} {
		t.Run(name, func(t *testing.T) {
			claim, _ := p.Claim(View{Record: &before, Now: tick.Add(tt.claimed), Control: tt.control})
			back := p.TakeBack(&before, &claim.Record)
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
