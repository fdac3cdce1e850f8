package plan

import (
	"slices"
	"testing"
	"time"

	"github.com/soloist-go/soloist/store"
)

// An outcomes is a history in few words, oldest first.
type outcomes []store.Outcome

func (o outcomes) one(tick string, status store.Status) outcomes {
	return append(o, store.Outcome{Tick: clockTime(tick), Status: status, End: clockTime(tick).Add(5 * time.Second)})
}

func (o outcomes) until(from, tick string, status store.Status) outcomes {
	return append(o, store.Outcome{From: clockTime(from), Tick: clockTime(tick), Status: status})
}

func (o outcomes) byHand(at string) outcomes {
	return append(o, store.Outcome{Tick: clockTime(at), Request: "r", Status: store.Succeeded, End: clockTime(at)})
}

// predecessor is one that has these outcomes, up to the last of its ticks.
func predecessor(job string, o outcomes) Predecessor {
	b := Predecessor{Job: job}
	for _, f := range o {
		b.History = append([]store.Outcome{f}, b.History...)
		if f.Request == "" {
			b.Watermark = f.Tick
		}
	}
	b.Seen = []Seen{{b.Watermark, clockTime("00:01:00")}}
	return b
}

const (
	won  = store.Succeeded
	lost = store.Failed
)

func TestFollower(t *testing.T) {
	var o outcomes
	paused := []store.Span{{From: clockTime("00:00:25"), To: clockTime("00:00:45")}}
	for name, tt := range map[string]struct {
		now    string // empty: 00:01:00
		tick   string // a tick of the follower that was claimed and whose runner died
		p      Policy
		before []Predecessor
		pauses []store.Span
		claims string
		told   []string
	}{
		"nothing known":      {},
		"running":            {before: []Predecessor{predecessor("a", o.one("00:00:10", won))}},
		"succeeded":          {before: []Predecessor{predecessor("a", o.one("00:00:20", won))}, claims: "00:00:20"},
		"failed":             {before: []Predecessor{predecessor("a", o.one("00:00:20", lost))}, told: []string{"skipped 00:00:20 a failed"}},
		"failed, any":        {p: Policy{AfterAny: true}, before: []Predecessor{predecessor("a", o.one("00:00:20", lost))}, claims: "00:00:20"},
		"ahead of its clock": {now: "00:00:29", before: []Predecessor{predecessor("a", o.one("00:00:20", lost).one("00:00:30", won))}, told: []string{"skipped 00:00:20 a failed"}},
		"each status": {before: []Predecessor{predecessor("a", o.one("00:00:20", store.Stalled).one("00:00:30", store.Abandoned).one("00:00:40", store.Cancelled).one("00:00:50", store.Skipped))},
			told: []string{"skipped 00:00:50 a skipped", "skipped 00:00:40 a cancelled", "skipped 00:00:30 a abandoned", "skipped 00:00:20 a stalled"}},
		"failed in a row": {before: []Predecessor{predecessor("a", o.one("00:00:20", lost).one("00:00:30", lost).one("00:00:40", won))}, claims: "00:00:40",
			told: []string{"skipped 00:00:10-00:00:30(2) a failed"}},
		"a range": {before: []Predecessor{predecessor("a", o.until("00:00:10", "00:00:40", store.Missed).one("00:00:50", won))}, claims: "00:00:50",
			told: []string{"skipped 00:00:10-00:00:40(3) a missed"}},
		"a range, any": {p: Policy{AfterAny: true}, before: []Predecessor{predecessor("a", o.until("00:00:00", "00:00:40", store.Missed))}, claims: "00:00:40",
			told: []string{"missed 00:00:10-00:00:30(2) a newer one was due"}},
		"newest success": {before: []Predecessor{predecessor("a", o.one("00:00:20", won).one("00:00:30", lost).one("00:00:40", won).one("00:00:50", lost))}, claims: "00:00:40",
			told: []string{"skipped 00:00:30 a failed", "missed 00:00:20 a newer one was due"}},
		"all: oldest success": {p: Policy{Missed: RunAll}, before: []Predecessor{predecessor("a", o.one("00:00:20", lost).one("00:00:30", won).one("00:00:40", won))}, claims: "00:00:30",
			told: []string{"skipped 00:00:20 a failed"}},
		"all: too many": {now: "01:00:00", p: Policy{Missed: RunAll, AfterAny: true}, before: []Predecessor{predecessor("a", o.until("00:00:10", "01:00:00", store.Skipped))}, claims: "00:43:30",
			told: []string{"missed 00:00:10-00:43:20(259) too many were due"}},
		"by hand is no tick":      {before: []Predecessor{predecessor("a", o.one("00:00:10", won).byHand("00:00:20").byHand("00:00:31"))}},
		"by hand after a failure": {before: []Predecessor{predecessor("a", o.one("00:00:20", lost).byHand("00:00:31"))}, told: []string{"skipped 00:00:20 a failed"}},
		"forgotten": {before: []Predecessor{predecessor("a", o.one("00:00:40", won))}, claims: "00:00:40",
			told: []string{"missed 00:00:10-00:00:30(2) the outcome of a is not known"}},
		"forgotten, any": {p: Policy{AfterAny: true}, before: []Predecessor{{Job: "a", Watermark: clockTime("00:00:30")}},
			told: []string{"missed 00:00:10-00:00:30(2) the outcome of a is not known"}},
		"a gap": {before: []Predecessor{predecessor("a", o.one("00:00:20", won).one("00:00:40", lost))}, claims: "00:00:20"},
		"within deadline of the end": {p: Policy{StartingDeadline: 35 * time.Second}, before: []Predecessor{predecessor("a", o.one("00:00:20", won))},
			claims: "00:00:20"},
		"past deadline of the end": {p: Policy{StartingDeadline: 34 * time.Second}, before: []Predecessor{predecessor("a", o.one("00:00:20", won))},
			told: []string{"missed 00:00:20 past the starting deadline"}},
		"deadline from sight": {now: "00:01:30", p: Policy{StartingDeadline: 30 * time.Second, AfterAny: true}, before: []Predecessor{predecessor("a", o.until("00:00:10", "00:00:30", store.Missed))},
			claims: "00:00:30", told: []string{"missed 00:00:20 a newer one was due"}},
		"deadline from each sight": {now: "00:01:30", p: Policy{StartingDeadline: 30 * time.Second, AfterAny: true, Missed: RunAll},
			before: []Predecessor{{Job: "a", Watermark: clockTime("00:00:50"), History: outcomes{}.until("00:00:10", "00:00:50", store.Skipped),
				Seen: []Seen{{clockTime("00:00:30"), clockTime("00:00:59")}, {clockTime("00:00:40"), clockTime("00:01:00")}, {clockTime("00:00:50"), clockTime("00:01:10")}}}},
			claims: "00:00:40", told: []string{"missed 00:00:10-00:00:30(2) past the starting deadline"}},
		"skip: one lease": {p: Policy{Missed: SkipMissed, Lease: 30 * time.Second}, before: []Predecessor{predecessor("a", o.one("00:00:20", won))},
			told: []string{"missed 00:00:20 past the starting deadline"}},
		"both succeeded": {before: []Predecessor{predecessor("a", o.one("00:00:20", won).one("00:00:30", won)), predecessor("b", o.one("00:00:20", won))}, claims: "00:00:20"},
		"one is running": {before: []Predecessor{predecessor("a", o.one("00:00:20", won)), predecessor("b", o.one("00:00:10", won))}},
		"one has failed": {before: []Predecessor{predecessor("a", o.one("00:00:20", won)), predecessor("b", o.one("00:00:20", lost))}, told: []string{"skipped 00:00:20 b failed"}},
		"forgotten before a range": {before: []Predecessor{predecessor("a", outcomes{}.until("00:00:20", "00:00:40", lost))},
			told: []string{"skipped 00:00:20-00:00:40(2) a failed", "missed 00:00:20 the outcome of a is not known"}},
		"one is forgotten": {before: []Predecessor{predecessor("a", o.one("00:00:20", won)), predecessor("b", o.until("00:00:20", "00:00:40", lost))},
			told: []string{"missed 00:00:20 the outcome of b is not known"}},
		"the last of both counts": {p: Policy{StartingDeadline: 30 * time.Second}, before: []Predecessor{predecessor("a", o.one("00:00:20", won)),
			{Job: "b", Watermark: clockTime("00:00:20"), History: []store.Outcome{{Tick: clockTime("00:00:20"), Status: won, End: clockTime("00:00:50")}}}}, claims: "00:00:20"},
		"paused by its settings": {p: Policy{Paused: true}, before: []Predecessor{predecessor("a", o.one("00:00:20", won).one("00:00:30", lost))},
			told: []string{"skipped 00:00:10-00:00:30(2) paused"}},
		"in a pause": {pauses: []store.Span{{From: clockTime("00:00:15"), To: clockTime("00:00:35")}}, before: []Predecessor{predecessor("a", o.one("00:00:20", won).one("00:00:30", lost).one("00:00:40", won))},
			claims: "00:00:40", told: []string{"skipped 00:00:10-00:00:30(2) paused"}},
		"forgotten in a pause": {pauses: paused, before: []Predecessor{predecessor("a", o.one("00:00:40", won).one("00:00:50", won))},
			claims: "00:00:50", told: []string{"skipped 00:00:20-00:00:40(2) paused", "missed 00:00:20 the outcome of a is not known"}},
		"in a pause of both": {p: Policy{StartingDeadline: 30 * time.Second}, pauses: paused,
			before: []Predecessor{predecessor("a", o.one("00:00:20", won).until("00:00:20", "00:00:50", store.Skipped))},
			told:   []string{"skipped 00:00:50 a skipped", "skipped 00:00:20-00:00:40(2) paused", "missed 00:00:20 past the starting deadline"}},
		"before a failure in a pause": {pauses: paused, before: []Predecessor{predecessor("a", o.one("00:00:20", won).one("00:00:30", lost))},
			claims: "00:00:20"},
		"before a success in a pause": {pauses: paused, before: []Predecessor{predecessor("a", o.one("00:00:20", won).one("00:00:30", won))},
			told: []string{"skipped 00:00:30 paused", "missed 00:00:20 a newer one was due"}},
		"died: rerun in time": {tick: "00:00:20", p: Policy{Interrupted: Rerun, StartingDeadline: 35 * time.Second}, before: []Predecessor{predecessor("a", o.one("00:00:20", won))}, claims: "00:00:20"},
		"died: too late": {tick: "00:00:20", p: Policy{Interrupted: Rerun, StartingDeadline: 34 * time.Second}, before: []Predecessor{predecessor("a", o.one("00:00:20", won))},
			told: []string{"abandoned 00:00:20 its runner died, and the starting deadline has passed"}},
		"died: abandoned": {tick: "00:00:20", before: []Predecessor{predecessor("a", o.one("00:00:20", won))}, told: []string{"abandoned 00:00:20 its runner died"}},
	} {
		t.Run(name, func(t *testing.T) {
			tt.p.Ticks = every("10s")
			for _, b := range tt.before {
				tt.p.After = append(tt.p.After, b.Job)
			}
			if tt.before == nil {
				tt.p.After = []string{"a"}
			}
			if tt.now == "" {
				tt.now = "00:01:00"
			}
			r := &store.Record{Watermark: clockTime("00:00:10"), Token: 5, Run: store.Run{Status: store.Succeeded}}
			if tt.tick != "" {
				r.Run.Tick, r.Run.Attempt, r.Run.Status, r.Run.Claimed = clockTime(tt.tick), 1, store.Running, clockTime(tt.tick).Add(5*time.Second)
			}
			next, _ := tt.p.Claim(View{Record: r, Now: clockTime(tt.now), Before: tt.before, Control: store.JobControl{Pauses: tt.pauses}})
			if got := told(&next.Record); !slices.Equal(got, tt.told) {
				t.Errorf("settles %q, want %q", got, tt.told)
			}
			if next.Run != (tt.claims != "") || next.Run && !next.Record.Run.Tick.Equal(clockTime(tt.claims)) {
				t.Errorf("claims %t %s, want %q", next.Run, next.Record.Run.Tick.Format(time.TimeOnly), tt.claims)
			}
		})
	}
}

// A follower that was away for long has more ticks to settle, each in its own way, than its history has
// room for: no write tells more than the record keeps, or begins a backfill. A tick of its own may be due.
func TestFollowerSettlesFewAtATime(t *testing.T) {
	var o outcomes
	for i := range 19 {
		o = o.one(clockTime("00:00:20").Add(time.Duration(i)*10*time.Second).Format(time.TimeOnly), []store.Status{won, lost}[i%2])
	}
	p := Policy{Ticks: every("10s"), After: []string{"a"}}
	orders := store.JobControl{Backfill: store.Backfill{Seq: 9, Spans: []store.Span{{From: midnight.Add(-time.Minute), To: midnight}}}}
	rec, settled := store.Record{Watermark: clockTime("00:00:10"), Token: 5, Run: store.Run{Status: store.Succeeded}}, 0
	for range 3 {
		next, _ := p.Claim(View{Record: &rec, Now: clockTime("00:10:00"), Before: []Predecessor{predecessor("a", o)}, Control: orders})
		news := len(next.Record.History) - len(rec.History)
		if news > 12 { // a record keeps 20
			t.Errorf("one write settles %d times", news)
		}
		settled += news
		if rec = next.Record; next.Run {
			break
		}
	}
	if want := clockTime("00:03:20"); rec.Run.Status != store.Running || !rec.Run.Tick.Equal(want) || settled != 18 {
		t.Errorf("%d ticks are settled, and %s is %s; want 18, and %s to run", settled, rec.Run.Tick.Format(time.TimeOnly), rec.Run.Status, want.Format(time.TimeOnly))
	}
}

// The end of a run settles no tick that came due under it: it knows nothing of the predecessors.
func TestFollowerSkipsNothingAtItsEnd(t *testing.T) {
	p := Policy{Ticks: every("10s"), After: []string{"a"}}
	r := &store.Record{Watermark: clockTime("00:00:10"), Token: 5, Run: store.Run{Status: store.Running, Tick: clockTime("00:00:20"), Attempt: 1}}
	f := p.Finish(r, store.Succeeded, "", clockTime("00:01:00"), clockTime("00:01:00"), store.JobControl{})
	if got, want := told(&f), []string{"succeeded 00:00:20 "}; !slices.Equal(got, want) {
		t.Errorf("settles %q, want %q", got, want)
	}
}

func TestFollowerAwaits(t *testing.T) {
	var o outcomes
	a := []Predecessor{predecessor("a", o.one("00:00:20", won))}
	for name, tt := range map[string]struct {
		through, now string
		before       []Predecessor
		status       store.Status
		state        store.LeaseState
		paused       bool
		want         string
	}{
		"before its tick":   {through: "00:00:10", now: "00:00:19"},
		"its tick":          {through: "00:00:10", now: "00:00:20", want: "00:00:20"},
		"it has ended":      {through: "00:00:10", now: "00:00:29", before: a},
		"the next one":      {through: "00:00:20", now: "00:00:31", before: a, want: "00:00:30"},
		"runs elsewhere":    {through: "00:00:10", now: "00:00:31", status: store.Running, state: store.Leased},
		"its runner died":   {through: "00:00:10", now: "00:00:31", status: store.Running, state: store.Expired, want: "00:00:20"},
		"paused by command": {through: "00:00:10", now: "00:00:31", paused: true},
	} {
		t.Run(name, func(t *testing.T) {
			p := Policy{Ticks: every("10s"), After: []string{"a"}, Lease: 15 * time.Second}
			v := View{Record: &store.Record{Watermark: clockTime(tt.through), Run: store.Run{Status: tt.status}}, State: tt.state, Now: clockTime(tt.now), Before: tt.before}
			if tt.paused {
				v.Control.Pause = store.Pause{At: clockTime("00:00:01")}
			}
			tick, ok := p.Awaits(v)
			if got := tick.Format(time.TimeOnly); ok != (tt.want != "") || ok && got != tt.want {
				t.Errorf("awaits %t %s, want %q", ok, got, tt.want)
			}
			if a := p.Next(v, &Observation{At: midnight, LookedAt: midnight}, Clock{}); ok && tt.status == "" && (a.What != Await || a.After != LookEvery) {
				t.Errorf("does %+v, want %d", a, Await)
			}
		})
	}
}

func TestAwaitPace(t *testing.T) {
	for since, want := range map[time.Duration]time.Duration{0: 300 * time.Millisecond, 4 * time.Second: 500 * time.Millisecond, time.Minute: 7500 * time.Millisecond, time.Hour: 10 * time.Second} {
		if got := AwaitPace(since); got != want {
			t.Errorf("after %s: %s, want %s", since, got, want)
		}
	}
}

// A tick of a follower whose claim was taken back and cancelled stays cancelled, whatever is run by
// hand before a replica decides about it, also by a replica that knows nothing of the predecessors.
func TestCancelledTickOfFollowerOutlivesRunByHand(t *testing.T) {
	p := &Policy{Ticks: every("10s"), After: []string{"a"}}
	var o outcomes
	a := []Predecessor{predecessor("a", o.one("00:00:20", won).one("00:00:30", lost).one("00:00:40", won))}
	before := store.Record{Token: 7, Watermark: clockTime("00:00:10"), Run: store.Run{Status: store.Succeeded, Tick: clockTime("00:00:10"), Attempt: 1}}
	claim, _ := p.Claim(View{Record: &before, Now: clockTime("00:00:40"), Before: a})
	back := p.TakeBack(&before, &claim.Record)
	v := View{Record: &back, Now: clockTime("00:00:45"), Request: "please", Control: store.JobControl{End: store.End{Token: back.Token, Cancel: true, By: "ann"}}}
	next, todo := p.Claim(v)
	want := []string{"cancelled 00:00:40 by ann", "skipped 00:00:30 a failed", "missed 00:00:20 a newer one was due"}
	if got := told(&next.Record); !todo || next.Record.Run.Request != "please" || !slices.Equal(got, want) {
		t.Errorf("settles %q, want %q", got, want)
	}
	v.Request, v.Before = "", a
	if again, _ := p.Claim(v); again.Run || !slices.Equal(told(&again.Record), want) {
		t.Errorf("the next claim settles %q, want %q", told(&again.Record), want)
	}
}

// What was seen of outcomes without an end is kept when others follow, as many of them as may be run.
func TestPredecessorIsUpdated(t *testing.T) {
	b, start := Predecessor{Job: "a"}, clockTime("00:00:00")
	for i := range maxBacklog + 5 {
		tick := start.Add(time.Duration(i+1) * time.Minute)
		r := &store.Record{Watermark: tick, History: outcomes{}.until("00:00:00", "00:00:10", store.Missed)}
		r.History[0].Tick = tick
		b = b.Updated(r, tick.Add(time.Second)).Updated(r, tick.Add(time.Hour))
	}
	if len(b.Seen) != maxBacklog {
		t.Errorf("%d are kept", len(b.Seen))
	}
	newest := b.Watermark
	if at, through := b.seen(newest.Add(-90 * time.Second)); !at.Equal(newest.Add(-59*time.Second)) || !through.Equal(newest.Add(-time.Minute)) {
		t.Errorf("seen at %s, through %s", at, through)
	}
	before := len(b.Seen)
	b = b.Updated(&store.Record{Watermark: newest.Add(time.Minute), History: []store.Outcome{{Tick: newest.Add(time.Minute), Status: won, End: newest.Add(2 * time.Minute)}}}, newest)
	if len(b.Seen) != before {
		t.Error("an outcome with an end is kept as seen")
	}
	anew := outcomes{}.until("00:00:00", "00:00:10", store.Missed)
	b = b.Updated(&store.Record{Watermark: anew[0].Tick, History: anew}, newest.Add(time.Hour))
	if at, _ := b.seen(anew[0].Tick); !at.Equal(newest.Add(time.Hour)) || len(b.Seen) != 1 {
		t.Errorf("what an entry has that was made anew was seen at %s", at)
	}
}
