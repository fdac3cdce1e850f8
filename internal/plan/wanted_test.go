package plan

import (
	"testing"
	"time"

	"github.com/soloist-go/soloist/store"
)

// TestWanted asks for a job of each hour, whose tick of 01:00 has failed, and is late at 01:30.
func TestWanted(t *testing.T) {
	const leased, expired = store.Leased, store.Expired
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
	runsOn := func(r *store.Record) { told(r); running(r) }
	open := func(r *store.Record) { runsOn(r); r.Run.Status = store.Abandoned }
	ahead := func(r *store.Record) {
		told(r)
		r.Run = store.Run{Tick: clockTime("02:00:00"), Claimed: clockTime("01:59:57"), Status: store.Running, Attempt: 1, Armed: true}
	}
	beats := func(r *store.Record) {
		runsOn(r)
		r.Beat = store.Beat{Token: r.Token, Length: store.Seconds(99 * time.Second)}
	}
	others := func(r *store.Record) { // another definition is in force, whose next tick is that of 01:40
		told(r)
		r.Definition, r.Due = store.Definition{Spec: "younger", Since: clockTime("00:30:00")}, clockTime("01:40:00")
	}
	seq := clockTime("00:01:00").UnixMicro() // an order after the entry was created
	// A backfill of the ticks of 22:00 to 00:00, the first of which was claimed.
	fills := func(c store.JobControl) store.JobControl {
		c.Backfill = store.Backfill{Seq: seq, Spans: []store.Span{{From: midnight.Add(-3 * time.Hour), To: midnight}}}
		return c
	}
	fill := fills(store.JobControl{})
	cancelled := fill
	cancelled.Backfill.Cancelled = store.End{Seq: seq + 1, By: "ann"}
	filled := func(b store.Backfilled) func(*store.Record) {
		return func(r *store.Record) {
			told(r)
			r.Backfill = b
			r.Backfill.Seq = seq
		}
	}
	orders := func(c store.JobControl) store.JobControl {
		c.Requests = []store.Request{{Seq: seq, Name: "please", At: clockTime("01:01:00"), Until: clockTime("03:00:00")}}
		return c
	}
	goesOn, over := filled(store.Backfilled{Through: midnight.Add(-time.Hour)}), filled(store.Backfilled{Through: midnight})
	waits := filled(store.Backfilled{Through: midnight.Add(-2 * time.Hour), Attempt: 1})
	waitsOpen := filled(store.Backfilled{Through: midnight.Add(-time.Hour), Several: true,
		Open: []store.OpenTick{{Tick: midnight.Add(-2 * time.Hour), Attempt: 1}}})
	fillsOn := func(r *store.Record) {
		filled(store.Backfilled{Through: midnight.Add(-2 * time.Hour)})(r)
		r.Run = store.Run{Tick: midnight.Add(-2 * time.Hour), Request: store.BackfillRequest(seq), Order: seq,
			Claimed: clockTime("01:04:00"), Status: store.Running, Attempt: 1}
	}
	for name, tt := range map[string]struct {
		now    string
		state  store.LeaseState // empty: available
		orders store.JobControl
		change func(*store.Record)
		want   string // empty: never
	}{
		"the tick will be late":                          {now: "01:00:10", want: "01:30:00"},
		"will be late, and a client has the lease":       {now: "01:00:10", state: leased, want: "01:30:00"},
		"will be late, under a lease in a pause":         {now: "01:06:00", state: leased, orders: paused("01:05:00", ""), want: "01:30:00"},
		"is late":                                        {now: "01:30:05", want: "01:30:05"},
		"is late, and a client has the lease":            {now: "01:30:05", state: leased, want: "01:30:20"},
		"is late, and is reported":                       {now: "01:30:05", state: leased, change: told, want: "02:00:00"},
		"a tick is due, and a client has the lease":      {now: "02:00:05", state: leased, change: told, want: "02:00:20"},
		"the next tick comes first":                      {now: "02:59:50", state: leased, change: told, want: "03:00:00"},
		"a pause ends, and a client has the lease":       {now: "01:45:00", state: leased, orders: paused("01:40:00", "02:20:00"), change: told, want: "02:20:00"},
		"a pause ends, after the first tick in it":       {now: "01:45:00", orders: paused("01:40:00", "02:20:00"), change: told, want: "02:20:00"},
		"late ticks of an earlier pause, in another":     {now: "02:16:00", orders: twice, change: told},
		"a run is under way":                             {now: "01:05:00", state: leased, change: running, want: "01:05:15"},
		"its runner has died":                            {now: "01:05:00", state: expired, change: running, want: "01:05:00"},
		"its runner has died, in a pause":                {now: "01:05:00", state: expired, orders: paused("01:01:00", ""), change: running, want: "01:30:00"},
		"its runner has died, in a pause that ends":      {now: "01:05:00", state: expired, orders: paused("01:01:00", "01:20:00"), change: running, want: "01:20:00"},
		"a run that beats":                               {now: "01:05:00", state: leased, change: beats, want: "01:06:40"},
		"its runner may be dead at the next tick":        {now: "01:59:50", state: leased, change: runsOn, want: "02:00:00"},
		"and a pause is over by then":                    {now: "01:59:50", state: leased, orders: paused("01:50:00", "01:59:57"), change: runsOn, want: "02:00:00"},
		"and that is a tick of a pause":                  {now: "01:59:50", state: leased, orders: paused("01:50:00", "02:00:02"), change: runsOn, want: "02:00:05"},
		"and of one without an end":                      {now: "01:59:50", state: leased, orders: paused("01:50:00", ""), change: runsOn, want: "02:00:05"},
		"an attempt waits":                               {now: "01:05:00", change: open, want: "01:05:00"},
		"an attempt waits, in a pause that ends":         {now: "01:05:00", orders: paused("01:01:00", "01:20:00"), change: open, want: "01:20:00"},
		"an attempt waits, in a pause":                   {now: "01:05:00", orders: paused("01:01:00", ""), change: open},
		"a tick from before a pause":                     {now: "02:01:00", orders: paused("02:00:30", "02:06:00"), change: told, want: "02:06:00"},
		"claimed ahead, and its runner died":             {now: "01:59:59", change: ahead, want: "02:00:00"},
		"claimed ahead, and its tick is due":             {now: "02:00:00", change: ahead, want: "02:00:00"},
		"a backfill":                                     {now: "01:05:00", orders: fill, change: told, want: "01:05:00"},
		"a backfill, in a pause that ends":               {now: "01:05:00", orders: fills(paused("01:01:00", "01:20:00")), change: told, want: "01:20:00"},
		"a backfill goes on":                             {now: "01:05:00", orders: fill, change: goesOn, want: "01:05:00"},
		"a backfill has an attempt that waits":           {now: "01:05:00", orders: fill, change: waits, want: "01:05:00"},
		"of several ticks":                               {now: "01:05:00", orders: fill, change: waitsOpen, want: "01:05:00"},
		"of a backfill that is cancelled":                {now: "01:05:00", orders: cancelled, change: waits, want: "01:05:00"},
		"of several ticks, cancelled":                    {now: "01:05:00", orders: cancelled, change: waitsOpen, want: "01:05:00"},
		"a backfill is cancelled, and nothing waits":     {now: "01:05:00", orders: cancelled, change: goesOn, want: "02:00:00"},
		"a backfill is over":                             {now: "01:05:00", orders: fill, change: over, want: "02:00:00"},
		"a run of a backfill":                            {now: "01:05:00", state: leased, orders: fill, change: fillsOn, want: "01:05:15"},
		"a run of a backfill, whose runner has died":     {now: "01:05:00", state: expired, orders: fill, change: fillsOn, want: "01:05:00"},
		"a run is ordered":                               {now: "01:05:00", orders: orders(store.JobControl{}), change: told, want: "01:05:00"},
		"a run is ordered, in a pause":                   {now: "01:05:00", orders: orders(paused("01:01:00", "")), change: told, want: "01:05:00"},
		"others have the job":                            {now: "01:10:00", change: others, want: "01:40:00"},
		"their tick is due":                              {now: "01:40:10", change: others, want: "01:40:40"},
		"their tick is due for long":                     {now: "01:50:00", change: others, want: "01:55:00"},
		"their tick is due, and the next one of its own": {now: "01:59:00", change: others, want: "02:00:00"},
		"others have the job, in a pause":                {now: "01:59:00", orders: paused("01:50:00", ""), change: others},
		"others have the job, in a pause that ends":      {now: "01:59:00", orders: paused("01:50:00", "02:20:00"), change: others, want: "02:20:00"},
	} {
		p := Policy{Ticks: every("1h"), Spec: "job", Lease: 15 * time.Second, FinishBy: 30 * time.Minute, Interrupted: Rerun}
		r := store.Record{Created: midnight, Watermark: clockTime("01:00:00"), Definition: store.Definition{Spec: "job"}, Past: store.Past{Judged: midnight},
			History: []store.Outcome{{Tick: clockTime("01:00:00"), Status: store.Failed}}, Run: store.Run{Tick: clockTime("01:00:00"), Status: store.Failed, Attempt: 1}}
		if tt.change != nil {
			tt.change(&r)
		}
		got, v := "", View{Record: &r, State: tt.state, Now: clockTime(tt.now), Control: tt.orders}
		if v.Break.Able = true; tt.state == "" {
			v.State = store.Available
		}
		if at := p.Wanted(v); !at.IsZero() {
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

// A follower wants a replica for a tick that is decided. Until then the jobs before it do, or one that is paused for good never
// does.
func TestWantedForFollower(t *testing.T) {
	for name, tt := range map[string]struct{ now, decided, want string }{ // want empty: never
		"its tick waits":                   {"02:00:05", "01:00:00", ""},
		"its next tick will wait":          {"01:30:00", "01:00:00", ""},
		"its next tick is decided":         {"01:30:00", "02:00:00", "02:00:00"},
		"its tick is decided and has come": {"02:00:05", "02:00:00", "02:00:05"},
	} {
		r := store.Record{Created: midnight, Watermark: clockTime("01:00:00"), Definition: store.Definition{Spec: "job"}, Run: store.Run{Status: store.Idle}}
		before := Predecessor{Job: "before", Watermark: clockTime(tt.decided), History: []store.Outcome{{Tick: clockTime(tt.decided), Status: store.Succeeded}}}
		p := Policy{Ticks: every("1h"), Spec: "job", Lease: 15 * time.Second, After: []string{"before"}}
		got := ""
		if at := p.Wanted(View{Record: &r, State: store.Available, Now: clockTime(tt.now), Before: []Predecessor{before}}); !at.IsZero() {
			got = at.Format(time.TimeOnly)
		}
		if got != tt.want {
			t.Errorf("%s: a replica is wanted at %q, want %q", name, got, tt.want)
		}
	}
}
