package soloist

import (
	"testing"
	"time"

	"github.com/soloist-go/soloist/internal/schedule"
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
		before Record
		status Status
		open   bool
	}{
		"after a success":               {Record{Status: Succeeded, Tick: at, Through: at, Attempt: 1, Finished: at.Add(time.Second)}, Succeeded, false},
		"after a death":                 {Record{Status: Running, Tick: at, Through: at.Add(-time.Hour), Attempt: 2, Stopping: true}, Abandoned, true},
		"after a stop":                  {Record{Status: Abandoned, Tick: at, Through: at.Add(-time.Hour), Attempt: 2, Finished: at.Add(time.Second)}, Abandoned, true},
		"after a stall, not returned":   {Record{Status: Stalled, Tick: at, Through: at.Add(-time.Hour), Attempt: 2}, Stalled, true},
		"after a settled stall":         {Record{Status: Stalled, Tick: at, Through: at, Attempt: 1}, Stalled, false},
		"of a new job":                  {Record{Status: Idle, Through: at}, Idle, false},
		"after a run by hand that died": {Record{Status: Running, Tick: at, Request: "please", Through: at, Attempt: 1}, Abandoned, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := &planner{ticks: hourly, interrupted: Rerun, lease: time.Minute}
			before := tt.before
			before.Epoch, before.Holder, before.Claimed = 7, "a", at
			next, todo := p.plan(&before, at.Add(time.Hour+time.Minute))
			if !todo || !next.run {
				t.Fatal("there is nothing to claim")
			}
			claim := next.record
			claim.Holder, claim.Claimed = "b", at.Add(time.Hour+time.Minute)
			r := p.takeBack(&before, &claim)
			if r.Status != tt.status || r.open() != tt.open || r.mayRun() || r.Stopping {
				t.Errorf("got %s, open %t, may run %t, stopping %t", r.Status, r.open(), r.mayRun(), r.Stopping)
			}
			if !r.Tick.Equal(before.Tick) || r.Request != before.Request || r.Attempt != before.Attempt || r.Holder != "a" || !r.Claimed.Equal(at) {
				t.Errorf("got %+v, want %+v", r, before)
			}
			again, todo := p.plan(&r, at.Add(time.Hour+time.Minute))
			if a := again.record; !todo || a.Epoch != 9 || !a.Tick.Equal(claim.Tick) || a.Attempt != claim.Attempt || len(a.History) != len(claim.History) {
				t.Errorf("the next claim is %+v, and was %+v", a, claim)
			}
		})
	}
}
