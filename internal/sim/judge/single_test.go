package judge

import (
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/internal/sim/trace"
	"github.com/soloist-go/soloist/store"
)

// A tale is the log of a cluster of a and b that meets one thing, which hits token 1 of the work that a runs from 0 on.
type tale struct {
	*trace.Log
	work trace.Definition
}

var (
	repeated  = trace.Definition{Name: "work", Every: time.Minute, Lease: 15 * time.Second, Interrupted: soloist.Rerun, HeartbeatTimeout: 12 * time.Second}
	singleton = trace.Definition{Name: "work", Lease: 15 * time.Second}
)

func tell(d trace.Definition) *tale {
	t := &tale{&trace.Log{Fleet: map[string][]trace.Definition{"a": {d}, "b": {d}}, Locks: map[string]trace.Lock{}, Onces: map[string]trace.Once{}}, d}
	for _, name := range []string{"a", "b"} {
		t.add(trace.Event{What: trace.Up, Replica: name, Time: at(-100)})
	}
	t.claims("a", 1, 0)
	return t
}

func (t *tale) add(e trace.Event) *trace.Event { return t.Add(e) }

// asks is a request about the work, which takes a moment.
func (t *tale) asks(who, op string, token int64, s float64, more trace.Event) *trace.Event {
	more.What, more.Replica, more.Job, more.Op, more.Status, more.Match = trace.Request, who, t.work.Name, op, 200, true
	more.Lease = who + "-" + string(rune('0'+token))
	more.Sent, more.Time, more.Heard, more.Done = at(s), at(s), at(s), at(s)
	return t.add(more)
}

// claims has a replica acquire and claim the tick of a time, and run it.
func (t *tale) claims(who string, token int64, s float64) *trace.Event {
	tick := at(s).Truncate(time.Minute)
	t.asks(who, "acquire", token, s, trace.Event{Span: t.work.Lease})
	t.asks(who, "claim", token, s, trace.Event{Record: &store.Record{Token: token, Run: store.Run{Status: store.Running, Tick: tick, Attempt: int(token), Lease: store.Seconds(t.work.Lease), Replica: who}}})
	return t.add(trace.Event{What: trace.Ran, Replica: who, Job: t.work.Name, Token: token, Tick: tick, Attempt: int(token), Try: 1, Time: at(s + .01)})
}

// meets is what befalls the cluster at 5, until s.
func (t *tale) meets(what string, s float64) *trace.Event {
	t.add(trace.Event{What: trace.Single, Op: trace.Over, Time: at(200)})
	return t.add(trace.Event{What: trace.Single, Op: what, Replica: "a", Job: t.work.Name, Time: at(5), Heard: at(6), End: at(s)})
}

// ends has the context of the run of a end, and the run.
func (t *tale) ends(cancelled, end float64) {
	for _, e := range t.Events {
		if e.What == trace.Ran && e.Token == 1 {
			e.Cancelled, e.Cause, e.End, e.Note = at(cancelled), "ended", at(end), "ended"
		}
	}
}

// Each bound holds to the tenth of a second: what is within it is fine, and what comes later is reported.
func TestBoundsOfSingles(t *testing.T) {
	prompt := repeated
	prompt.StartingDeadline = 10 * time.Second
	goesOn := func(d trace.Definition, what string, until float64, more func(*tale)) func(x float64) *tale {
		return func(x float64) *tale {
			l := tell(d)
			l.meets(what, until)
			more(l)
			l.claims("b", 2, x)
			return l
		}
	}
	ends := func(d trace.Definition, what string, until float64, more func(*tale)) func(x float64) *tale {
		return func(x float64) *tale {
			l := tell(d)
			l.meets(what, until)
			l.ends(x, x)
			more(l)
			l.claims("b", 2, x+1)
			return l
		}
	}
	dies := func(l *tale) { l.add(trace.Event{What: trace.Crash, Replica: "a", Time: at(5)}) }
	stops := func(gone float64) func(*tale) {
		return func(l *tale) {
			l.add(trace.Event{What: trace.Stop, Replica: "a", Time: at(5), End: at(30)})
			l.add(trace.Event{What: trace.Gone, Replica: "a", Time: at(gone)})
		}
	}
	after := func(cancelled, end float64) func(*tale) { return func(l *tale) { l.ends(cancelled, end) } }
	nothing := func(*tale) {}
	for _, c := range []struct {
		rule, what string
		fine, late float64
		tell       func(x float64) *tale
	}{
		{"P failover", trace.Kill, 30.6, 30.8, goesOn(repeated, trace.Kill, 0, dies)},
		{"P failover", trace.Suspend, 30.6, 30.8, goesOn(repeated, trace.Suspend, 65, after(65, 65))},
		{"P failover", trace.CutOne, 30.6, 30.8, goesOn(repeated, trace.CutOne, 35, after(17, 17))},
		{"P failover", trace.KillAhead, 87.4, 87.6, func(x float64) *tale {
			l := tell(repeated)
			l.ends(1, 1)
			l.meets(trace.KillAhead, 0).Tick = at(60)
			l.claims("b", 2, x)
			return l
		}},
		{"P thaw", trace.Suspend, 66, 66.1, ends(repeated, trace.Suspend, 65, nothing)},
		{"P cut short", trace.CutOne, 17.4, 17.6, ends(repeated, trace.CutOne, 35, nothing)},
		{"P cut short", trace.CutAll, 17.4, 17.6, ends(repeated, trace.CutAll, 35, nothing)},
		{"P outage", "a call takes long", 2.5, 2.6, func(x float64) *tale {
			l := tell(repeated)
			l.meets(trace.CutOne, 35)
			l.asks("a", "renew", 1, 10, trace.Event{Cause: string(trace.Drop)}).Done = at(10 + x)
			return l
		}},
		{"P outage", "many calls", 20, 21, func(x float64) *tale {
			l := tell(repeated)
			l.meets(trace.CutOne, 35)
			for i := range int(x) {
				l.asks("a", "read", 1, 10+float64(i)/100, trace.Event{Cause: string(trace.Refuse)})
			}
			return l
		}},
		{"P outage", "no further renewal", 1.5, 1.6, func(x float64) *tale {
			l := tell(repeated)
			l.meets(trace.CutOne, 35)
			l.asks("a", "renew", 1, 12, trace.Event{Cause: string(trace.Refuse)})
			l.asks("a", "renew", 1, 12+x, trace.Event{Cause: string(trace.Refuse)})
			return l
		}},
		{"P outage", trace.CutAll, 60.6, 60.8, goesOn(repeated, trace.CutAll, 35, after(17, 17))},
		{"P denied", "the lease is kept", 95.6, 95.8, goesOn(repeated, trace.DenyOne, 180, after(10, 10))},
		{"P denied", "a tick is missed", 60, 120, func(x float64) *tale {
			l := tell(repeated)
			l.meets(trace.DenyOne, 180)
			l.ends(10, 10)
			l.claims("b", 2, 90)
			missed := store.Record{Token: 2, Watermark: at(x), History: []store.Outcome{{Tick: at(x), Status: store.Missed}}}
			l.asks("b", "settle", 3, 130, trace.Event{Record: &missed})
			return l
		}},
		{"P revoked", trace.Unlock, 12.7, 12.9, ends(repeated, trace.Unlock, 0, nothing)},
		{"P revoked", trace.UnlockNow, 12.7, 12.9, ends(repeated, trace.UnlockNow, 0, nothing)},
		{"P unlock", trace.UnlockNow, 36.9, 37.1, goesOn(repeated, trace.UnlockNow, 0, after(10, 10))},
		{"P unlock", trace.Unlock, 51.9, 52.1, goesOn(repeated, trace.Unlock, 0, after(10, 10))},
		{"P overrun", trace.UnlockDeaf, 13.5, 13.6, func(x float64) *tale {
			l := tell(repeated)
			l.meets(trace.UnlockDeaf, 0)
			l.ends(10, 50)
			l.add(trace.Event{What: trace.Overran, Replica: "a", Job: "work", Time: at(x)})
			return l
		}},
		{"P stall", trace.Stall, 12.9, 13.1, ends(repeated, trace.Stall, 0, nothing)},
		{"P replaced", trace.Stall, 26.6, 26.8, goesOn(repeated, trace.Stall, 0, after(12, 21))},
		{"P replaced", trace.StallDeaf, 37.6, 37.8, goesOn(repeated, trace.StallDeaf, 0, after(12, 90))},
		{"P handed over", trace.HandOver, 17.8, 18, goesOn(repeated, trace.HandOver, 0, after(8, 9))},
		{"P handed over", trace.Terminate, 17.8, 18, goesOn(repeated, trace.Terminate, 0, func(l *tale) { stops(10)(l); l.ends(8, 9) })},
		{"P shutdown", "a job goes on", 30, 30.1, ends(repeated, trace.Terminate, 0, stops(31))},
		{"P shutdown", "a singleton goes on", 11, 11.1, ends(singleton, trace.Terminate, 0, stops(31))},
		{"P shutdown", "the replica stays", 37.1, 37.3, func(x float64) *tale { return ends(repeated, trace.Terminate, 0, stops(x))(10) }},
		{"P shutdown", "it acquires", 5, 5.1, func(x float64) *tale {
			l := ends(repeated, trace.Terminate, 0, stops(31))(10)
			l.asks("a", "acquire", 7, x, trace.Event{Span: 15 * time.Second})
			return l
		}},
		{"P shutdown", "it leaves a lease", 30, 32, func(x float64) *tale {
			l := tell(repeated)
			l.meets(trace.Terminate, 0)
			l.ends(10, 10)
			stops(31)(l)
			l.asks("a", "renew", 1, 14, trace.Event{})
			l.asks("a", "renew", 1, 28, trace.Event{})
			l.asks("a", "release", 1, x, trace.Event{})
			return l
		}},
		{"P deploy", trace.AbortOther, 779, 781, func(x float64) *tale {
			l := tell(repeated)
			l.ends(4, 4)
			other := repeated
			other.Every = 7 * time.Minute
			l.Fleet["v"] = []trace.Definition{other}
			l.meets(trace.AbortOther, 60)
			l.asks("v", "claim", 2, 30, trace.Event{Record: &store.Record{Token: 2}})
			l.asks("b", "claim", 3, x, trace.Event{Record: &store.Record{Token: 3}})
			return l
		}},
		{"P control", trace.CancelRun, 14, 14.2, ends(repeated, trace.CancelRun, 0, nothing)},
		{"P control", "hand over a job", 40, 40.2, ends(repeated, trace.HandOver, 0, nothing)},
		{"P control", "hand over a singleton", 20, 20.2, ends(singleton, trace.HandOver, 0, nothing)},
		{"P control", trace.RunOrdered, 19.4, 19.6, func(x float64) *tale {
			l := tell(repeated)
			l.ends(4, 4)
			l.meets(trace.RunOrdered, 0).Request = "please"
			l.claims("b", 2, x).Request = "please"
			return l
		}},
		{"P deadline", "a late claim", 72.7, 72.9, func(x float64) *tale {
			l := tell(prompt)
			l.meets(trace.RunOrdered, 0)
			l.claims("b", 2, x)
			return l
		}},
		{"P deadline", "a late begin", 72.4, 72.6, func(x float64) *tale {
			l := tell(repeated)
			l.meets(trace.RunOrdered, 0)
			l.claims("b", 2, 60).Time = at(x)
			return l
		}},
		{"P recovered", "a singleton", 200, 189, func(x float64) *tale {
			l := goesOn(singleton, trace.Kill, 0, dies)(20)
			for _, e := range l.Events {
				if e.What == trace.Ran && e.Token == 2 {
					e.End = at(x)
				}
			}
			return l
		}},
		{"P1 in time", "a job", 129, 131, func(x float64) *tale {
			l := goesOn(repeated, trace.Kill, 0, dies)(20)
			for _, e := range l.Events {
				if e.What == trace.Ran && e.Token == 2 {
					e.End = at(30)
				}
			}
			l.claims("b", 3, x).End = at(x + 1)
			l.claims("b", 4, 181)
			return l
		}},
		{"P alarm", trace.KillAll, 87.1, 87.3, func(x float64) *tale {
			l := tell(repeated)
			l.Zero = &trace.Zero{Poll: 30 * time.Second, Start: 10 * time.Second, Lead: 30 * time.Second, Hold: time.Second}
			l.meets(trace.KillAll, 0)
			l.claims("b", 2, x)
			l.claims("b", 3, 121)
			return l
		}},
		{"P hit", "nothing", 5, 4, func(x float64) *tale { l := ends(repeated, trace.CancelRun, 0, nothing)(x); return l }},
		{"P rest", "the next fault", 31, 30, func(x float64) *tale {
			l := goesOn(repeated, trace.Kill, 0, dies)(20)
			l.add(trace.Event{What: trace.Single, Op: trace.Over, Time: at(x)})
			l.add(trace.Event{What: trace.Single, Op: trace.Over, Time: at(300)})
			return l
		}},
	} {
		t.Run(c.rule+" "+c.what, func(t *testing.T) {
			if said := reported(c.tell(c.fine), c.rule, Judge); len(said) > 0 {
				t.Errorf("what is within the bound is reported: %s", said)
			}
			if said := reported(c.tell(c.late), c.rule, Judge); len(said) == 0 {
				t.Errorf("what comes after the bound is not")
			}
		})
	}
}

// reported is what a judge says of a rule.
func reported(l *tale, rule string, judge func(*trace.Log) []trace.Violation) (all []string) {
	l.Sort()
	for _, v := range judge(l.Log) {
		if strings.HasPrefix(v.Invariant, rule) {
			all = append(all, v.String())
		}
	}
	return all
}
