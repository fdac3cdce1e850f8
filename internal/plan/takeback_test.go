package plan

import (
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
		"after a success":               {store.Record{Status: store.Succeeded, Tick: at, Watermark: at, Attempt: 1, Finished: at.Add(time.Second)}, store.Succeeded, false},
		"after a death":                 {store.Record{Status: store.Running, Tick: at, Watermark: at.Add(-time.Hour), Attempt: 2, Stopping: true}, store.Abandoned, true},
		"after a stop":                  {store.Record{Status: store.Abandoned, Tick: at, Watermark: at.Add(-time.Hour), Attempt: 2, Finished: at.Add(time.Second)}, store.Abandoned, true},
		"after a stall, not returned":   {store.Record{Status: store.Stalled, Tick: at, Watermark: at.Add(-time.Hour), Attempt: 2}, store.Stalled, true},
		"after a settled stall":         {store.Record{Status: store.Stalled, Tick: at, Watermark: at, Attempt: 1}, store.Stalled, false},
		"of a new job":                  {store.Record{Status: store.Idle, Watermark: at}, store.Idle, false},
		"after a run by hand that died": {store.Record{Status: store.Running, Tick: at, Request: "please", Watermark: at, Attempt: 1}, store.Abandoned, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := &Policy{Ticks: hourly, Interrupted: Rerun, Lease: time.Minute}
			before := tt.before
			before.Token, before.Replica, before.Claimed = 7, "a", at
			next, todo := p.Claim(View{Record: &before, Now: at.Add(time.Hour + time.Minute)})
			if !todo || !next.Run {
				t.Fatal("there is nothing to claim")
			}
			claim := next.Record
			claim.Replica, claim.Claimed = "b", at.Add(time.Hour+time.Minute)
			r := p.TakeBack(&before, &claim)
			if r.Status != tt.status || open(&r) != tt.open || r.MayRun() || r.Stopping {
				t.Errorf("got %s, open %t, may run %t, stopping %t", r.Status, open(&r), r.MayRun(), r.Stopping)
			}
			if !r.Tick.Equal(before.Tick) || r.Request != before.Request || r.Attempt != before.Attempt || r.Replica != "a" || !r.Claimed.Equal(at) {
				t.Errorf("got %+v, want %+v", r, before)
			}
			again, todo := p.Claim(View{Record: &r, Now: at.Add(time.Hour + time.Minute)})
			if a := again.Record; !todo || a.Token != 9 || !a.Tick.Equal(claim.Tick) || a.Attempt != claim.Attempt || len(a.History) != len(claim.History) {
				t.Errorf("the next claim is %+v, and was %+v", a, claim)
			}
		})
	}
}
