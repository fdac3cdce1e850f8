package plan

import (
	"testing"
	"time"

	"github.com/soloist-go/soloist/store"
)

// TestWanted asks for a job of each hour, whose tick of 01:00 has failed, and is late at 01:30.
func TestWanted(t *testing.T) {
	paused := func(from, until string) store.JobControl {
		c := store.JobControl{Pause: store.Pause{At: clockTime(from), By: "ann"}}
		if until != "" {
			c.Pause.Until = clockTime(until)
		}
		return c
	}
	twice := paused("02:15:00", "")
	twice.Pauses = []store.Span{{From: clockTime("01:40:00"), To: clockTime("02:10:00")}}
	running := func(r *store.Record) {
		r.Watermark, r.History = midnight, nil
		r.Run = store.Run{Tick: clockTime("01:00:00"), Claimed: clockTime("01:00:00"), Status: store.Running, Attempt: 1, Lease: store.Seconds(15 * time.Second)}
	}
	told := func(r *store.Record) { r.Past.Judged = clockTime("01:00:00") }
	for name, tt := range map[string]struct {
		now    string
		state  store.LeaseState
		orders store.JobControl
		change func(*store.Record)
		want   string // empty: never
	}{
		"the tick will be late":                           {now: "01:00:10", state: store.Available, want: "01:30:00"},
		"will be late, and a client has the lease":        {now: "01:00:10", state: store.Leased, want: "01:30:00"},
		"will be late, under a lease in a pause":          {now: "01:06:00", state: store.Leased, orders: paused("01:05:00", ""), want: "01:30:00"},
		"is late":                                         {now: "01:30:05", state: store.Available, want: "01:30:05"},
		"is late, and a client has the lease":             {now: "01:30:05", state: store.Leased, want: "01:30:20"},
		"is late, and is reported":                        {now: "01:30:05", state: store.Leased, change: told, want: "02:00:00"},
		"a tick is due, and a client has the lease":       {now: "02:00:05", state: store.Leased, change: told, want: "02:00:20"},
		"the next tick comes before the end of the lease": {now: "02:59:50", state: store.Leased, change: told, want: "03:00:00"},
		"a pause ends, and a client has the lease":        {now: "01:45:00", state: store.Leased, orders: paused("01:40:00", "02:20:00"), change: told, want: "02:20:00"},
		"a pause ends, after the first tick in it":        {now: "01:45:00", state: store.Available, orders: paused("01:40:00", "02:20:00"), change: told, want: "02:20:00"},
		"late ticks of an earlier pause, in another":      {now: "02:16:00", state: store.Available, orders: twice, change: told},
		"a run is under way":                              {now: "01:05:00", state: store.Leased, change: running, want: "01:05:15"},
		"its runner has died":                             {now: "01:05:00", state: store.Expired, change: running, want: "01:05:00"},
		"its runner has died, in a pause":                 {now: "01:05:00", state: store.Expired, orders: paused("01:01:00", ""), change: running, want: "01:30:00"},
		"its runner has died, in a pause that ends":       {now: "01:05:00", state: store.Expired, orders: paused("01:01:00", "01:20:00"), change: running, want: "01:20:00"},
	} {
		p := Policy{Ticks: every("1h"), Spec: "job", Lease: 15 * time.Second, FinishBy: 30 * time.Minute, Interrupted: Rerun}
		r := store.Record{Created: midnight, Watermark: clockTime("01:00:00"), Definition: store.Definition{Spec: "job"}, Past: store.Past{Judged: midnight},
			History: []store.Outcome{{Tick: clockTime("01:00:00"), Status: store.Failed}}, Run: store.Run{Tick: clockTime("01:00:00"), Status: store.Failed, Attempt: 1}}
		if tt.change != nil {
			tt.change(&r)
		}
		got := ""
		if at := p.Wanted(View{Record: &r, State: tt.state, Now: clockTime(tt.now), Control: tt.orders}); !at.IsZero() {
			got = at.Format(time.TimeOnly)
		}
		if got != tt.want {
			t.Errorf("%s: a replica is wanted at %q, want %q", name, got, tt.want)
		}
	}
}

// The settings pause a job for good. Its ticks are skipped all the same, once they are due, if a follower waits for that.
func TestWantedForFollowerOfPausedJob(t *testing.T) {
	r := store.Record{Created: midnight, Watermark: clockTime("01:00:00"), Definition: store.Definition{Spec: "job"}, Run: store.Run{Status: store.Idle}}
	for now, want := range map[string]time.Time{"01:30:00": clockTime("02:00:00"), "02:00:05": clockTime("02:00:05")} {
		p := Policy{Ticks: every("1h"), Spec: "job", Lease: 15 * time.Second, Paused: true}
		for awaited, want := range map[bool]time.Time{true: want, false: {}} {
			if at := p.Wanted(View{Record: &r, State: store.Available, Now: clockTime(now), Awaited: awaited}); !at.Equal(want) {
				t.Errorf("%s, awaited %t: a replica is wanted at %s, want %s", now, awaited, at, want)
			}
		}
	}
}
