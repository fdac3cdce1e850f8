package judge

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/internal/sim/trace"
	"github.com/soloist-go/soloist/store"
)

// planted are logs that violate one property each, and beside each a log that is nearly the same, and fine.
var planted = []struct {
	property, name string
	bad, fine      func(s *story)
}{
	{"S1 exclusive", "two replicas run a job", func(s *story) { s.overlap(18) }, func(s *story) { s.overlap(15) }},
	{"S1 exclusive", "two replicas run a job, and neither was suspended long enough", func(s *story) {
		s.overlap(18)
		s.add(4, trace.Event{What: trace.Freeze, Replica: "a", End: at(5)})
	}, func(s *story) {
		s.overlap(18)
		s.add(13, trace.Event{What: trace.Freeze, Replica: "a", End: at(19)})
	}},
	{"S1 exclusive", "a slot of a lock has one holder", func(s *story) { s.locks(1, 9, "c1", 0); s.locks(3, 9, "c3", 0) },
		func(s *story) { s.locks(1, 9, "c1", 0); s.locks(2, 9, "c2", 1) }},
	{"S1 exclusive", "a group has one", func(s *story) { s.of("g1").tick("a", "x", 10); s.of("g2").tick("b", "y", 10) },
		func(s *story) { s.of("g1").tick("a", "x", 10); s.of("g2").tickAt(14, "b", "y", 10) }},
	{"S1 covered", "a context outlives its lease", func(s *story) { s.hold("a", "x", 10); s.runs(11, 26, "a"); s.add(40, trace.Event{What: trace.Asked}) },
		func(s *story) {
			s.hold("a", "x", 10)
			s.request(20, "a", "renew", "x")
			s.runs(11, 26, "a")
		}},
	{"S1 covered", "unless an operator ends that", func(s *story) {
		s.hold("a", "x", 10)
		s.request(11.5, trace.Operator, "release", "x")
		s.runs(11, 20, "a")
	},
		func(s *story) {
			s.hold("a", "x", 10)
			s.request(11.5, trace.Operator, "break", "")
			s.runs(11, 20, "a")
		}},

	{"S2 lease", "a write without a lease", func(s *story) { s.settle(10, "a", "x", store.Outcome{Tick: at(10), Status: store.Missed}) },
		func(s *story) {
			s.acquire(9, "a", "x")
			s.settle(10, "a", "x", store.Outcome{Tick: at(10), Status: store.Missed})
		}},
	{"S2 lease", "a write that names no version", func(s *story) { s.hold("a", "x", 10).Match = false }, func(s *story) { s.hold("a", "x", 10) }},
	{"S2 lease", "an id of two replicas", func(s *story) { s.tick("a", "x", 10); s.tick("b", "x", 20) }, func(s *story) { s.tick("a", "x", 10); s.tick("b", "y", 20) }},
	{"S2 lease", "an id for two acquisitions", func(s *story) { s.tick("a", "x", 10); s.acquire(20, "a", "x") },
		func(s *story) { s.acquire(9, "a", "x"); s.acquire(9.5, "a", "x") }},
	{"S2 lease", "an entry made over one", func(s *story) { s.tick("a", "x", 10); s.write(20, "b", "create", "", func(*store.Record) {}) },
		func(s *story) {
			s.tick("a", "x", 10)
			s.write(20, "b", "create", "", func(*store.Record) {}).Status = 409
		}},
	{"S2 release", "a release under a run", func(s *story) {
		s.hold("a", "x", 10)
		s.runs(11, 12, "a")
		s.request(11.9, "a", "release", "x").Status = 0
	},
		func(s *story) {
			s.hold("a", "x", 10)
			s.runs(11, 12, "a")
			s.finish(12.1, "a", "x", store.Succeeded)
			s.request(12.2, "a", "release", "x")
		}},
	{"S2 release", "a release before the outcome is written", func(s *story) { s.hold("a", "x", 10); s.runs(11, 12, "a"); s.request(12.2, "a", "release", "x") },
		func(s *story) { s.hold("a", "x", 10).Record.Run.Armed = true; s.request(12.2, "a", "release", "x") }},

	{"S3 claim", "a run without a claim", func(s *story) { s.hold("a", "x", 10); s.runs(11, 12, "a").Token++ }, func(s *story) { s.hold("a", "x", 10); s.runs(11, 12, "a") }},
	{"S3 claim", "a run of another's claim", func(s *story) { s.hold("a", "x", 10); s.runs(11, 12, "b") }, func(s *story) { s.hold("a", "x", 10) }},
	{"S3 claim", "a claim runs once", func(s *story) { s.hold("a", "x", 10); s.runs(11, 12, "a"); s.runs(13, 14, "a") },
		func(s *story) { s.hold("a", "x", 10); s.runs(11, 12, "a"); s.runs(13, 14, "a").Try = 2 }},
	{"S3 claim", "another tick than the claim's", func(s *story) { s.hold("a", "x", 10); s.runs(11, 12, "a").Attempt = 2 }, func(s *story) { s.hold("a", "x", 10); s.runs(11, 12, "a") }},
	{"S3 claim", "a claim that was taken back", func(s *story) { s.takenBack(); s.runs(12, 13, "a") }, func(s *story) { s.takenBack() }},
	{"S3 token", "a token that does not grow", func(s *story) { s.tick("a", "x", 10); s.anew(19, 90); s.hold("b", "y", 20) }, func(s *story) { s.tick("a", "x", 10); s.anew(19, 101); s.hold("b", "y", 20) }},
	{"S3 token", "another run under a token", func(s *story) {
		s.tick("a", "x", 10).acquire(20, "a", "y")
		s.write(20.2, "a", "settle", "y", func(r *store.Record) { r.Run.Attempt = 2 })
	}, func(s *story) {
		s.tick("a", "x", 10).acquire(20, "a", "y")
		s.write(20.2, "a", "settle", "y", func(r *store.Record) { r.Failures = 2 })
	}},

	{"S4 attempt", "a tick is claimed again without Rerun", func(s *story) { s.of("job").again(2, "y") }, func(s *story) { s.of("rerun").again(2, "y") }},
	{"S4 attempt", "an attempt is left out", func(s *story) { s.of("rerun").again(3, "y") }, func(s *story) { s.of("rerun").again(2, "y") }},
	{"S4 attempt", "an attempt is claimed twice", func(s *story) { s.of("rerun").again(1, "y") }, func(s *story) { s.of("rerun").again(2, "y") }},
	{"S4 attempt", "an attempt under the same lease", func(s *story) { s.of("rerun").again(2, "x") }, func(s *story) { s.of("rerun").again(2, "y") }},
	{"S4 once", "a tick that has succeeded begins again", func(s *story) {
		s.hold("a", "x", 10)
		s.runs(11, 12, "a")
		s.finish(12.2, "a", "x", store.Succeeded)
		s.runs(13, 14, "a").Try = 2
	},
		func(s *story) {
			s.hold("a", "x", 10)
			s.runs(11, 12, "a")
			s.runs(12.3, 14, "a").Try = 2
			s.finish(14.2, "a", "x", store.Succeeded)
		}},
	{"S4 once", "the work of a key begins again", func(s *story) { s.keyed(10, "a", "x", trace.Well); s.keyed(20, "b", "y", trace.Well) },
		func(s *story) { s.keyed(10, "a", "x", trace.Failed); s.keyed(20, "b", "y", trace.Well) }},

	{"S5 ledger", "the watermark goes back", func(s *story) {
		s.tick("a", "x", 10).acquire(20, "a", "y")
		s.write(20.2, "a", "settle", "y", func(r *store.Record) { r.Watermark = at(0) })
	}, func(s *story) { s.tick("a", "x", 10).tick("a", "y", 20) }},
	{"S5 ledger", "a claim leaves a tick out", func(s *story) { s.tick("a", "x", 20) }, func(s *story) { s.tick("a", "x", 10) }},
	{"S5 ledger", "a claim of what is no tick", func(s *story) { s.hold("a", "x", 12).Record.Definition.Spec = "new" }, func(s *story) { s.hold("a", "x", 20).Record.Definition.Spec = "new" }},
	{"S5 ledger", "a range is counted wrongly", func(s *story) { s.ranges(2) }, func(s *story) { s.ranges(3) }},
	{"S5 ledger", "an outcome of what is no tick", func(s *story) {
		s.acquire(9, "a", "x")
		s.settle(10, "a", "x", store.Outcome{From: at(0), Tick: at(12), Status: store.Missed})
	},
		func(s *story) {
			s.acquire(9, "a", "x")
			s.settle(10, "a", "x", store.Outcome{From: at(0), Tick: at(20), Status: store.Missed})
		}},
	{"S5 facts", "a success of a run that failed", func(s *story) { s.ends(trace.Failed, store.Succeeded) }, func(s *story) { s.ends(trace.Failed, store.Failed) }},
	{"S5 facts", "a failure of a run that succeeded", func(s *story) { s.ends(trace.Well, store.Failed) }, func(s *story) { s.ends(trace.Well, store.Succeeded) }},
	{"S5 facts", "a skip of a run that did not skip", func(s *story) { s.ends(trace.Well, store.Skipped) }, func(s *story) { s.ends(trace.Skipped, store.Skipped) }},
	{"S5 facts", "a tick is missed that was claimed", func(s *story) {
		s.hold("a", "x", 10)
		s.settle(11, "a", "x", store.Outcome{Tick: at(10), Status: store.Missed})
	},
		func(s *story) {
			s.acquire(9, "a", "x")
			s.settle(11, "a", "x", store.Outcome{Tick: at(10), Status: store.Missed})
		}},

	{"S6 early", "an answer proves that it is too early", func(s *story) { s.ahead(8) }, func(s *story) { s.ahead(9.9) }},
	{"S7 checkpoint", "not what was saved last", func(s *story) { s.loads("1") }, func(s *story) { s.loads("2") }},
	{"S7 fence", "a living context is refused", func(s *story) { s.hold("a", "x", 10); s.runs(11, 15, "a"); s.effect(12, 101, trace.Refused) },
		func(s *story) {
			s.hold("a", "x", 10)
			s.runs(11, 15, "a").Cancelled = at(12)
			s.effect(13, 101, trace.Refused)
		}},
	{"S7 fence", "an older token is taken", func(s *story) {
		s.tick("a", "x", 10).tick("b", "y", 20)
		s.effect(21, 102, trace.Well)
		s.effect(22, 101, trace.Well)
	},
		func(s *story) {
			s.tick("a", "x", 10).tick("b", "y", 20)
			s.effect(21, 102, trace.Well)
			s.effect(22, 101, trace.Refused)
		}},

	{"S8 told", "nil without a call", func(s *story) { s.calls(1, 9, "do", "c1", trace.Well) }, func(s *story) { s.locks(2, 8, "c1", 0); s.calls(1, 9, "do", "c1", trace.Well) }},
	{"S8 told", "two calls", func(s *story) {
		s.locks(2, 4, "c1", 0)
		s.locks(5, 8, "c1", 1).ID = "d"
		s.calls(1, 9, "do", "c1", trace.Well)
	},
		func(s *story) { s.locks(2, 4, "c1", 0); s.calls(1, 9, "do", "c1", trace.Well) }},
	{"S8 told", "a return before the function's", func(s *story) { s.locks(2, 10, "c1", 0); s.calls(1, 9, "do", "c1", trace.Well) }, func(s *story) { s.locks(2, 9, "c1", 0); s.calls(1, 9, "do", "c1", trace.Well) }},
	{"S8 told", "nil of a function that failed", func(s *story) { s.locks(2, 8, "c1", 0).Result = trace.Failed; s.calls(1, 9, "do", "c1", trace.Well) },
		func(s *story) { s.locks(2, 8, "c1", 0).Result = trace.Failed; s.calls(1, 9, "do", "c1", trace.Failed) }},
	{"S8 told", "held before the caller's time is over", func(s *story) { s.calls(1, 9, "do", "c1", trace.Held) }, func(s *story) { s.calls(1, 9, "do", "c1", trace.Held).Cancelled = at(9) }},
	{"S8 told", "one ID for two functions", func(s *story) { s.locks(2, 8, "c1", 0); s.locks(2, 8, "c2", 1).ID = "c1" }, func(s *story) { s.locks(2, 8, "c1", 0); s.locks(2, 8, "c2", 1) }},
	{"S8 told", "done, and no replica has done it", func(s *story) {
		s.keyed(10, "a", "x", trace.Failed)
		s.calls(1, 20, "once", "c1", trace.Well).Job = key
	},
		func(s *story) { s.keyed(10, "a", "x", trace.Well); s.calls(1, 20, "once", "c1", trace.Well).Job = key }},
	{"S8 told", "given up too soon", func(s *story) {
		s.keyed(10, "a", "x", trace.Failed)
		s.calls(1, 20, "once", "c1", trace.Failed).Job = key
	},
		func(s *story) {
			s.Onces[key] = trace.Once{MaxTries: 1}
			s.keyed(10, "a", "x", trace.Failed)
			s.calls(1, 20, "once", "c1", trace.Failed).Job = key
		}},
	{"S8 told", "an outcome on demand that is not written", func(s *story) { s.answers(trace.Result(store.Failed)) }, func(s *story) { s.answers(trace.Result(store.Succeeded)) }},
	{"S8 status", "a status of another record", func(s *story) { s.listed("other") }, func(s *story) { s.listed("mine") }},
	{"S8 events", "an event without a write", func(s *story) { s.tick("a", "x", 10); s.emits(13, 10, store.Failed) }, func(s *story) { s.tick("a", "x", 10); s.emits(13, 10, store.Succeeded) }},
	{"S8 events", "an event twice", func(s *story) {
		s.tick("a", "x", 10)
		s.emits(13, 10, store.Succeeded)
		s.emits(14, 10, store.Succeeded)
	},
		func(s *story) { s.tick("a", "x", 10); s.emits(13, 10, store.Succeeded) }},

	{"S9 orders", "a paused job begins", func(s *story) { s.order(1, store.OrderPause, ""); s.tick("a", "x", 10) }, func(s *story) { s.order(5, store.OrderPause, ""); s.tick("a", "x", 10) }},
	{"S9 orders", "what was ordered runs twice", func(s *story) {
		s.order(1, store.OrderRun, "r1")
		s.demanded(2, "a", "x", "r1")
		s.demanded(20, "b", "y", "r1")
	},
		func(s *story) {
			s.order(1, store.OrderRun, "r1")
			s.demanded(2, "a", "x", "r1")
			s.demanded(20, "b", "y", "r2")
		}},
	{"S9 closed", "a spoilt entry is written", func(s *story) { s.tick("a", "x", 10); s.spoil(14, 60); s.hold("b", "y", 20) },
		func(s *story) { s.tick("a", "x", 10); s.spoil(14, 16); s.hold("b", "y", 20) }},
	{"S10 after", "a follower before its predecessor", func(s *story) { s.of("after").tick("a", "y", 10).of("job").tick("a", "x", 10) }, func(s *story) { s.follows("after", store.Succeeded) }},
	{"S10 after", "a follower after a failure", func(s *story) { s.follows("after", store.Failed) }, func(s *story) { s.follows("any", store.Failed) }},
	{"S11 stop", "a run begins after a stop", func(s *story) {
		s.tick("a", "x", 10)
		s.add(5, trace.Event{What: trace.Stop, Replica: "a", End: at(9)})
	},
		func(s *story) {
			s.tick("a", "x", 10)
			s.add(5, trace.Event{What: trace.Stop, Replica: "b", End: at(9)})
		}},
	{"S12 previous", "not the last success", func(s *story) { s.given(0) }, func(s *story) { s.given(10) }},
	{"S13 cause", "cancelled, and that was not ordered", func(s *story) { s.cancelled("job", trace.Cancelled) },
		func(s *story) { s.order(11, store.OrderCancel, ""); s.cancelled("job", trace.Cancelled) }},
	{"S13 cause", "replaced by nothing", func(s *story) { s.cancelled("job", trace.Replaced) }, func(s *story) { s.cancelled("replace", trace.Replaced) }},
	{"S13 cause", "stalled without a limit", func(s *story) { s.cancelled("job", trace.Stalled) }, func(s *story) { s.cancelled("job", trace.Lost) }},

	{"L1 settled", "old ticks have no outcome", func(s *story) { s.of("g1").ticks(10, 10).heals() }, func(s *story) { s.of("g1").ticks(10, 30).heals() }},
	{"L1 in time", "a tick does not begin", func(s *story) { s.ticks(10, 190).skips(200).ticks(210, 280).heals() }, func(s *story) { s.ticks(10, 280).heals() }},
	{"L2 runs", "a singleton does not run", func(s *story) { s.of("one").holds(10, 100, "a", "x"); s.heals() }, func(s *story) { s.of("one").holds(10, 280, "a", "x"); s.heals() }},
	{"L3 served", "a caller waits", func(s *story) { s.heals(); s.calls(40, 200, "do", "c1", trace.Held).Cancelled = at(200) }, func(s *story) { s.heals(); s.calls(40, 60, "do", "c1", trace.Held).Cancelled = at(60) }},
	{"L4 orders", "an order without an outcome", func(s *story) { s.ticks(10, 280).heals().order(40, store.OrderRun, "r1") },
		func(s *story) { s.order(40, store.OrderRun, "r1"); s.demands("r1").heals() }},
	{"L4 orders", "a backfill with a tick left out", func(s *story) { s.fills(1) }, func(s *story) { s.fills(2) }},
	{"L5 spread", "one replica holds both shards", func(s *story) { s.heals().of("s-0").holds(10, 280, "a", "x"); s.of("s-1").holds(10, 280, "a", "y") },
		func(s *story) { s.heals().of("s-0").holds(10, 280, "a", "x"); s.of("s-1").holds(10, 280, "b", "y") }},
	{"L6 health", "a job is broken", func(s *story) { s.add(280, trace.Event{What: trace.Health, Replica: "a", Job: "job", Op: "broken"}) },
		func(s *story) {
			s.hold("a", "x", 10).Status = 403
			s.add(280, trace.Event{What: trace.Health, Replica: "a", Job: "job", Op: "broken"})
		}},
	{"L7 budget", "too many requests", func(s *story) { s.ticks(10, 280).heals().reads(300) }, func(s *story) { s.ticks(10, 280).heals().reads(100) }},
	{"Z1 wakes", "no alarm for a tick", func(s *story) { s.zero().tick("a", "x", 3600).skips(7200).tick("a", "y", 10800) }, func(s *story) { s.zero().tick("a", "x", 3600).tick("a", "y", 7200).tick("a", "z", 10800) }},
	{"Z2 few", "messages that are left", func(s *story) { s.zero().letters(3) }, func(s *story) { s.zero().letters(1) }},
	{"Z3 quiet", "starts for nothing", func(s *story) { s.zero().awakes(40) }, func(s *story) { s.zero().awakes(4) }},
}

// TestPlanted judges the logs that were made by hand.
func TestPlanted(t *testing.T) {
	shown := map[string]bool{}
	for _, p := range planted {
		shown[p.property] = true
		t.Run(p.property+"/"+p.name, func(t *testing.T) {
			if got := judged(p.bad); !slices.Equal(slices.Collect(maps.Keys(got)), []string{p.property}) {
				t.Errorf("the bad log: got %v, want %s alone", got, p.property)
			}
			if got := judged(p.fine); len(got) > 0 {
				t.Errorf("the fine log: got %v", got)
			}
		})
	}
	for _, p := range properties {
		if !shown[p.name] {
			t.Errorf("no log shows that %s is judged", p.name)
		}
	}
}

func judged(plant func(s *story)) map[string][]string {
	s, got := newStory(), map[string][]string{}
	plant(s)
	for _, v := range Judge(&s.Log) {
		got[v.Invariant] = append(got[v.Invariant], v.String())
	}
	return got
}

// again claims the first tick again, after its first run: under another lease, of b, or under the first one.
func (s *story) again(attempt int, id string) {
	s.hold("a", "x", 10)
	s.runs(11, 12, "a")
	who := "a"
	if id != "x" {
		who = "b"
		s.request(14, trace.Operator, "break", "")
		s.acquire(15, who, id)
	}
	s.write(15.3, who, "claim", id, func(r *store.Record) {
		r.Token++
		r.Run = store.Run{Tick: at(10), Attempt: attempt, Status: store.Running}
	})
}

// overlap is a second attempt that begins at 16, and a first one that goes on until then or longer.
func (s *story) overlap(until float64) {
	s.of("rerun").again(2, "y")
	s.runs(16, 19, "b")
	for _, e := range s.Events {
		if e.What == trace.Ran && e.Replica == "a" {
			e.End = at(until)
		}
	}
}

func (s *story) takenBack() {
	s.hold("a", "x", 10)
	s.write(11, "a", "take back", "x", func(r *store.Record) { r.Run = store.Run{Status: store.Idle} })
}

// anew deletes the entry and makes it again.
func (s *story) anew(t float64, token int64) {
	s.request(t, trace.Operator, "delete", "")
	s.write(t+0.1, "b", "create", "", func(r *store.Record) {
		*r = store.Record{Token: token, Watermark: r.Watermark, Run: store.Run{Status: store.Idle}}
	})
}

// keyed does the work of a key.
func (s *story) keyed(t float64, replica, id string, result trace.Result) {
	status := store.Failed
	if result == trace.Well {
		status = store.Succeeded
	}
	s.of(key).holds(t, t+1, replica, id).Result = result
	s.finish(t+1.2, replica, id, status)
	s.request(t+1.4, replica, "release", id)
}

func (s *story) ranges(count int) {
	s.acquire(39, "a", "x")
	s.settle(40, "a", "x", store.Outcome{From: at(0), Tick: at(30), Count: count, Status: store.Missed})
}

func (s *story) ends(result trace.Result, status store.Status) *trace.Event {
	s.hold("a", "x", 10)
	s.runs(11, 12, "a").Result = result
	return s.finish(12.2, "a", "x", status)
}

// ahead runs the first tick at a time, which was claimed just before.
func (s *story) ahead(t float64) {
	s.acquire(t-0.6, "a", "x")
	s.claim(t-0.4, "a", "x", 10)
	s.runs(t, 11, "a")
}

func (s *story) loads(n string) {
	s.hold("a", "x", 10)
	for i, kept := range []string{"1", "2"} {
		s.write(float64(11+i), "a", "save", "x", func(*store.Record) {}).Note = kept
	}
	s.add(13, trace.Event{What: trace.Loaded, Replica: "a", Job: s.job, Note: n})
}

func (s *story) effect(t float64, token int64, result trace.Result) {
	s.add(t, trace.Event{What: trace.Effect, Replica: "a", Job: s.job, Token: token, Sent: at(t - 0.1), Result: result})
}

func (s *story) answers(result trace.Result) {
	s.demanded(2, "a", "x", "r1")
	s.finish(3.2, "a", "x", store.Succeeded)
	s.add(4, trace.Event{What: trace.Answered, Replica: "a", Job: s.job, Request: "r1", Result: result})
}

func (s *story) listed(writer string) {
	s.hold("a", "x", 10).Record.Writer = "mine"
	s.add(12, trace.Event{What: trace.Listed, Job: s.job, Record: &store.Record{Writer: writer}, Sent: at(11), Heard: at(12)})
}

func (s *story) emits(t float64, tick float64, status store.Status) {
	s.Emits = true
	s.add(t, trace.Event{What: trace.Emitted, Replica: "a", Job: "job", Op: string(event.Ended), Tick: at(tick), Token: 100 + int64(tick)/10, Note: string(status)})
}

// spoil has an operator overwrite the entry, and mend it later.
func (s *story) spoil(t float64, until float64) {
	s.add(t, trace.Event{What: trace.Corrupted, Job: s.job, Note: "garbage", End: at(until)})
	s.request(t, trace.Operator, "write", "")
	r := s.saved[s.job]
	s.request(until, trace.Operator, "write", "").Record = &r
}

// follows runs a follower after a run of its predecessor.
func (s *story) follows(job string, status store.Status) {
	result := trace.Well
	if status == store.Failed {
		result = trace.Failed
	}
	s.ends(result, status)
	s.of(job).tickAt(14, "b", "y", 10)
}

// given is a second run that is given a tick as the last success.
func (s *story) given(tick float64) {
	s.Around = true
	s.tick("a", "x", 10).hold("a", "y", 20)
	s.runs(20.7, 22, "a").Previous = at(tick)
}

func (s *story) cancelled(job string, why trace.Result) {
	s.of(job).hold("a", "x", 10)
	r := s.runs(11, 25, "a")
	r.Cancelled, r.Why = at(21), why
}

// skips is a tick that does not run.
func (s *story) skips(tick float64) *story {
	s.acquire(tick+8, "a", "skips")
	s.settle(tick+8.2, "a", "skips", store.Outcome{Tick: at(tick), Status: store.Missed})
	s.request(tick+8.4, "a", "release", "skips")
	return s
}

// demands runs all ticks, and one run on demand between them.
func (s *story) demands(request string) *story {
	s.ticks(10, 40).demanded(43, "b", "d", request)
	s.finish(44.2, "b", "d", store.Succeeded)
	s.request(44.4, "b", "release", "d")
	return s.ticks(50, 280)
}

// fills runs some of the two ticks of a backfill.
func (s *story) fills(n int) {
	const seq = 7
	o := s.order(35, store.OrderBackfill, store.BackfillRequest(seq))
	o.Spans = []store.Span{{From: at(-25), To: at(-10)}}
	s.ticks(10, 40)
	for i := range n {
		t, id := float64(43+i*3), []string{"f", "g"}[i]
		s.acquire(t, "b", id)
		s.write(t+0.1, "b", "claim", id, func(r *store.Record) {
			r.Token++
			r.Run = store.Run{Tick: at(float64(-20 + 10*i)), Request: o.Request, Attempt: 1, Status: store.Running}
		})
		s.runs(t+0.2, t+1, "b")
		s.finish(t+1.2, "b", id, store.Succeeded).Record.Backfill = store.Backfilled{Seq: seq, Counts: map[store.Status]int64{store.Succeeded: int64(i + 1)}}
		s.request(t+1.4, "b", "release", id)
	}
	s.ticks(50, 280).heals()
}

func (s *story) reads(n int) {
	for i := range n {
		s.request(200+float64(i)/10, "b", "read", "")
	}
}

// zero is a cluster that is scaled to zero, of a job that is due every hour. All is well from the start for four hours.
func (s *story) zero() *story {
	s.Zero = &trace.Zero{Kind: trace.AsJob, Poll: 30 * time.Second, Start: 10 * time.Second, Lead: time.Minute, Stay: time.Minute}
	s.add(30, trace.Event{What: trace.Healed, End: at(4 * 3600)})
	for _, replica := range []string{"a", "b"} {
		s.add(700, trace.Event{What: trace.Gone, Replica: replica})
	}
	s.add(600, trace.Event{What: trace.Handed, Op: trace.HandedOver, Replica: "a"})
	return s.of("hourly")
}

func (s *story) letters(n int) {
	for i := range n + 1 {
		t := float64(800 + i)
		if i == n {
			t += 3600
		}
		s.add(t, trace.Event{What: trace.Mail, Replica: "a", Op: trace.MailPut, ID: string(rune('a' + i)), End: at(4 * 3600)})
	}
}

func (s *story) awakes(n int) {
	for i := range n {
		t, replica := float64(1000+100*i), string(rune('A'+i))
		s.add(t, trace.Event{What: trace.Up, Replica: replica, Op: trace.ByAlarm, Cause: trace.AtZero})
		s.add(t+5, trace.Event{What: trace.Gone, Replica: replica})
	}
}
