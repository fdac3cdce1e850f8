package plan

import (
	"testing"
	"time"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/internal/record"
	"github.com/soloist-go/soloist/store"
)

// An outcomes is a history in few words, oldest first.
type outcomes []event.Outcome

func (o outcomes) one(tick string, status event.Status) outcomes {
	return append(o, event.Outcome{Tick: clockTime(tick), Status: status, End: clockTime(tick).Add(5 * time.Second)})
}

func (o outcomes) until(from, tick string, status event.Status) outcomes {
	return append(o, event.Outcome{From: clockTime(from), Tick: clockTime(tick), Status: status})
}

func (o outcomes) byHand(at string) outcomes {
	return append(o, event.Outcome{Tick: clockTime(at), Request: "r", Status: event.Succeeded, End: clockTime(at)})
}

// predecessor is one that has these outcomes, up to the last of its ticks.
func predecessor(job string, o outcomes) Predecessor {
	b := Predecessor{Job: job}
	for _, f := range o {
		b.History = append([]event.Outcome{f}, b.History...)
		if f.Request == "" {
			b.Watermark = f.Tick
		}
	}
	b.Seen = []Seen{{b.Watermark, clockTime("00:01:00")}}
	return b
}

const (
	won  = event.Succeeded
	lost = event.Failed
)

// A follower that was away for long has more ticks to settle, each in its own way, than its history has
// room for: no write tells more than the record keeps, or begins a backfill. A tick of its own may be due.
func TestFollowerSettlesFewAtATime(t *testing.T) {
	var o outcomes
	for i := range 19 {
		o = o.one(clockTime("00:00:20").Add(time.Duration(i)*10*time.Second).Format(time.TimeOnly), []event.Status{won, lost}[i%2])
	}
	p := Policy{Ticks: every("10s"), After: []string{"a"}}
	orders := record.JobControl{Backfill: record.Backfill{Seq: 9, Spans: []record.Span{{From: midnight.Add(-time.Minute), To: midnight}}}}
	rec, settled := record.Record{Watermark: clockTime("00:00:10"), Token: 5, Run: record.Run{Status: event.Succeeded}}, 0
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
	if want := clockTime("00:03:20"); rec.Run.Status != event.Running || !rec.Run.Tick.Equal(want) || settled != 18 {
		t.Errorf("%d ticks are settled, and %s is %s; want 18, and %s to run", settled, rec.Run.Tick.Format(time.TimeOnly), rec.Run.Status, want.Format(time.TimeOnly))
	}
}

func TestFollowerAwaits(t *testing.T) {
	var o outcomes
	a := []Predecessor{predecessor("a", o.one("00:00:20", won))}
	for name, tt := range map[string]struct {
		through, now string
		before       []Predecessor
		status       event.Status
		state        store.LeaseState
		paused       bool
		want         string
	}{
		"before its tick":   {through: "00:00:10", now: "00:00:19"},
		"its tick":          {through: "00:00:10", now: "00:00:20", want: "00:00:20"},
		"it has ended":      {through: "00:00:10", now: "00:00:29", before: a},
		"the next one":      {through: "00:00:20", now: "00:00:31", before: a, want: "00:00:30"},
		"runs elsewhere":    {through: "00:00:10", now: "00:00:31", status: event.Running, state: store.Leased},
		"its runner died":   {through: "00:00:10", now: "00:00:31", status: event.Running, state: store.Expired, want: "00:00:20"},
		"paused by command": {through: "00:00:10", now: "00:00:31", paused: true},
	} {
		t.Run(name, func(t *testing.T) {
			p := Policy{Ticks: every("10s"), After: []string{"a"}, Lease: 15 * time.Second}
			v := View{Record: &record.Record{Watermark: clockTime(tt.through), Run: record.Run{Status: tt.status}}, State: tt.state, Now: clockTime(tt.now), Before: tt.before}
			if tt.paused {
				v.Control.Pause = record.Pause{At: clockTime("00:00:01")}
			}
			tick, ok := p.Awaits(v)
			if got := tick.Format(time.TimeOnly); ok != (tt.want != "") || ok && got != tt.want {
				t.Errorf("awaits %t %s, want %q", ok, got, tt.want)
			}
			if a := Next(&p, v, &Observation{At: midnight, LookedAt: midnight}); ok && tt.status == "" && (a.What != Await || a.After != LookEvery) {
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

// What was seen of outcomes without an end is kept when others follow, as many of them as may be run.
func TestPredecessorIsUpdated(t *testing.T) {
	b, start := Predecessor{Job: "a"}, clockTime("00:00:00")
	for i := range maxBacklog + 5 {
		tick := start.Add(time.Duration(i+1) * time.Minute)
		r := &record.Record{Watermark: tick, History: outcomes{}.until("00:00:00", "00:00:10", event.Missed)}
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
	b = b.Updated(&record.Record{Watermark: newest.Add(time.Minute), History: []event.Outcome{{Tick: newest.Add(time.Minute), Status: won, End: newest.Add(2 * time.Minute)}}}, newest)
	if len(b.Seen) != before {
		t.Error("an outcome with an end is kept as seen")
	}
	anew := outcomes{}.until("00:00:00", "00:00:10", event.Missed)
	b = b.Updated(&record.Record{Watermark: anew[0].Tick, History: anew}, newest.Add(time.Hour))
	if at, _ := b.seen(anew[0].Tick); !at.Equal(newest.Add(time.Hour)) || len(b.Seen) != 1 {
		t.Errorf("what an entry has that was made anew was seen at %s", at)
	}
}
