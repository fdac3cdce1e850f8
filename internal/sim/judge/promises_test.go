package judge

import (
	"testing"

	"github.com/soloist-go/soloist/internal/sim/trace"
	"github.com/soloist-go/soloist/store"
)

// Each promise has a log that keeps it and one that does not.
func TestPromises(t *testing.T) {
	ordered := func(l *tale, op store.OrderKind, s float64, more trace.Event) {
		more.What, more.Job, more.Op, more.Time, more.Heard = trace.Ordered, "work", string(op), at(s), at(s)
		l.add(more)
	}
	grouped := repeated
	grouped.Group, grouped.Slots = "group", 1
	shown := map[string]bool{}
	for _, c := range []struct {
		promise, what string
		fine, bad     float64
		tell          func(x float64) *tale
	}{
		{"S5 backfilled", "a tick of another schedule", 60, 30, func(x float64) *tale {
			l := tell(repeated)
			l.claims("b", 2, 100)
			l.Events[len(l.Events)-2].Record.Run.Tick = at(x)
			l.Events[len(l.Events)-2].Record.Run.Request = store.BackfillRequest(7)
			return l
		}},
		{"S8 history", "no line", 60, 0, func(x float64) *tale {
			l := tell(repeated)
			r := l.claims("b", 2, 100)
			r.Tick, r.Request, r.End = at(60), store.BackfillRequest(7), at(101)
			l.add(trace.Event{What: trace.Kept, Job: "work", Tick: at(x), Request: r.Request, Time: at(1000)})
			return l
		}},
		{"S8 obeyed", "a run begins late", 19.4, 19.6, func(x float64) *tale {
			l := tell(repeated)
			l.ends(4, 4)
			ordered(l, store.OrderRun, 6, trace.Event{Request: "please"})
			l.claims("b", 2, x).Request = "please"
			return l
		}},
		{"S8 obeyed", "a run that was ordered under another has no outcome", 1, 0, func(x float64) *tale {
			l := tell(repeated)
			l.ends(60, 60)
			ordered(l, store.OrderRun, 6, trace.Event{Request: "please"})
			done := store.Record{Token: 1, History: []store.Outcome{{Request: "please", Tick: at(6), Status: store.Skipped}}[:int(x)]}
			l.asks("a", "finish", 1, 61, trace.Event{Record: &done})
			return l
		}},
		{"S8 obeyed", "another attempt of what was cancelled", 14, 15, func(x float64) *tale {
			l := tell(repeated)
			l.ends(4, 4)
			ordered(l, store.OrderCancel, 6, trace.Event{Token: 1})
			l.claims("b", 2, 7).End = at(x)
			return l
		}},
		{"S9 name", "it is taken twice", 2, 1, func(x float64) *tale {
			l := tell(repeated)
			ordered(l, store.OrderRun, 6, trace.Event{Request: "please"})
			ordered(l, store.OrderRun, 6+x*13*3600, trace.Event{Request: "please"})
			return l
		}},
		{"L1 woken", "for another tick", 60, 120, func(x float64) *tale {
			l := tell(repeated)
			l.claims("b", 2, 60).Tick = at(60)
			l.add(trace.Event{What: trace.Woken, Replica: "b", Job: "work", Tick: at(x), Time: at(60), End: at(70)})
			return l
		}},
		{"L1 wanted", "before that time", 60, 59, func(x float64) *tale {
			l := tell(repeated)
			l.add(trace.Event{What: trace.Wanted, Time: at(10), End: at(60)})
			l.claims("b", 2, x)
			return l
		}},
		{"L1 called", "nobody goes on", 20, 4, func(x float64) *tale {
			l := tell(repeated)
			l.meets(trace.ShortCalls, 100)
			l.claims("b", 2, x)
			return l
		}},
		{"L1 swept", "late", 128, 131, func(x float64) *tale {
			l := tell(grouped)
			l.ends(4, 4)
			l.add(trace.Event{What: trace.Healed, Time: at(5), End: at(60)})
			l.add(trace.Event{What: trace.Swept, Time: at(70)})
			l.claims("b", 2, x).End = at(140)
			l.add(trace.Event{What: trace.Asked, Time: at(150)})
			return l
		}},
	} {
		shown[c.promise] = true
		t.Run(c.promise+" "+c.what, func(t *testing.T) {
			if said := reported(c.tell(c.fine), c.promise, Drawn); len(said) > 0 {
				t.Errorf("the fine log is reported: %s", said)
			}
			if said := reported(c.tell(c.bad), c.promise, Drawn); len(said) == 0 {
				t.Errorf("the bad log is not")
			}
		})
	}
	for _, p := range promises {
		if !shown[p.name] {
			t.Errorf("no log shows that %s is judged", p.name)
		}
	}
}
