package judge

import (
	"net/http"
	"slices"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/internal/entry"
	"github.com/soloist-go/soloist/internal/sim/trace"
	"github.com/soloist-go/soloist/store"
)

const lease = 15 * time.Second

func at(seconds float64) time.Time {
	return time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC).Add(time.Duration(seconds * float64(time.Second)))
}

// A story is a log made by hand, of the replicas a and b. Its methods say what happens to one job, by seconds.
type story struct {
	trace.Log
	job   string
	saved map[string]store.Record // by entry
}

// key is the entry of work that is done once.
var key = entry.OfKey("migrate", "v1")

// newStory has jobs that are due every ten seconds, a singleton, shards, a group, a lock of two slots and work that is done once.
func newStory() *story {
	due := func(name string, change func(d *trace.Definition)) trace.Definition {
		d := trace.Definition{Name: name, Every: 10 * time.Second, Schedule: "@every 10s", Lease: lease}
		change(&d)
		return d
	}
	defs := []trace.Definition{
		due("job", func(*trace.Definition) {}),
		due("rerun", func(d *trace.Definition) { d.Interrupted = soloist.Rerun }),
		due("after", func(d *trace.Definition) { d.Follows = "job" }),
		due("any", func(d *trace.Definition) { d.Follows, d.FollowsAny = "job", true }),
		due("g1", func(d *trace.Definition) { d.Group, d.Slots = "g", 1 }),
		due("g2", func(d *trace.Definition) { d.Group, d.Slots = "g", 1 }),
		due("replace", func(d *trace.Definition) { d.Overlap = soloist.Replace }),
		due("hourly", func(d *trace.Definition) { d.Every = time.Hour }),
		due("one", func(d *trace.Definition) { d.Every = 0 }),
		due("s-0", func(d *trace.Definition) { d.Every, d.Whole, d.Shard, d.Shards = 0, "s", 0, 2 }),
		due("s-1", func(d *trace.Definition) { d.Every, d.Whole, d.Shard, d.Shards = 0, "s", 1, 2 }),
	}
	s := &story{job: "job", saved: map[string]store.Record{}, Log: trace.Log{Fleet: map[string][]trace.Definition{"a": defs, "b": defs},
		Locks: map[string]trace.Lock{"lock": {Slots: 2, Lease: lease}}, Onces: map[string]trace.Once{key: {Lease: lease}}}}
	s.add(0, trace.Event{What: trace.Up, Replica: "a"})
	s.add(0, trace.Event{What: trace.Up, Replica: "b"})
	return s
}

// of is the same story about another entry.
func (s *story) of(job string) *story {
	s.job = job
	return s
}

func (s *story) add(t float64, e trace.Event) *trace.Event {
	e.Time = at(t)
	s.Events = append(s.Events, &e)
	return &e
}

func (s *story) request(t float64, replica, op, id string) *trace.Event {
	return s.add(t, trace.Event{What: trace.Request, Replica: replica, Job: s.job, Op: op, Lease: id, Match: true, Status: http.StatusOK,
		Sent: at(t - 0.05), Heard: at(t + 0.05)})
}

// write changes the record, which the first write makes.
func (s *story) write(t float64, replica, op, id string, change func(r *store.Record)) *trace.Event {
	if _, ok := s.saved[s.job]; !ok && op != "create" {
		s.write(0.1, "a", "create", "", func(r *store.Record) { r.Token, r.Watermark, r.Run.Status = 100, at(0), store.Idle })
	}
	r := s.saved[s.job]
	r.History = slices.Clone(r.History)
	change(&r)
	s.saved[s.job] = r
	q := s.request(t, replica, op, id)
	q.Record = &r
	return q
}

func (s *story) acquire(t float64, replica, id string) *trace.Event {
	q := s.request(t, replica, "acquire", id)
	q.Span = lease
	return q
}

func (s *story) claim(t float64, replica, id string, tick float64) *trace.Event {
	return s.write(t, replica, "claim", id, func(r *store.Record) {
		r.Token++
		r.Run = store.Run{Tick: at(tick), Attempt: 1, Status: store.Running, Lease: store.Seconds(lease)}
	})
}

// hold acquires the lease and claims a tick, half a second after it.
func (s *story) hold(replica, id string, tick float64) *trace.Event {
	s.acquire(tick+0.2, replica, id)
	return s.claim(tick+0.5, replica, id, tick)
}

// runs is the function under the last claim of the job.
func (s *story) runs(from, to float64, replica string) *trace.Event {
	r := s.saved[s.job]
	return s.add(from, trace.Event{What: trace.Ran, Replica: replica, Job: s.job, Token: r.Token, Tick: r.Run.Tick, Request: r.Run.Request, Attempt: r.Run.Attempt, Try: 1,
		End: at(to), Result: trace.Well})
}

// finish writes the outcome of the run, which settles its tick.
func (s *story) finish(t float64, replica, id string, status store.Status) *trace.Event {
	return s.write(t, replica, "finish", id, func(r *store.Record) {
		r.Run.Status = status
		if r.Run.Request == "" {
			r.Watermark = r.Run.Tick
		}
		r.History = append([]store.Outcome{{Tick: r.Run.Tick, Request: r.Run.Request, Status: status, Token: r.Token, Attempt: r.Run.Attempt, End: at(t)}}, r.History...)
	})
}

// settle writes outcomes of ticks that did not run.
func (s *story) settle(t float64, replica, id string, all ...store.Outcome) *trace.Event {
	return s.write(t, replica, "settle", id, func(r *store.Record) {
		for _, o := range all {
			r.History, r.Watermark = append([]store.Outcome{o}, r.History...), o.Tick
		}
	})
}

// tick runs one tick from its claim to the release.
func (s *story) tick(replica, id string, tick float64) *story {
	return s.tickAt(tick, replica, id, tick)
}

func (s *story) tickAt(t float64, replica, id string, tick float64) *story {
	s.acquire(t+0.2, replica, id)
	s.claim(t+0.5, replica, id, tick)
	s.runs(t+0.7, t+2, replica)
	s.finish(t+2.2, replica, id, store.Succeeded)
	s.request(t+2.4, replica, "release", id)
	return s
}

// ticks runs all ticks from one to another.
func (s *story) ticks(from, to float64) *story {
	for t := from; t <= to; t += 10 {
		s.tick("a", s.job+at(t).String(), t)
	}
	return s
}

// heals ends all faults at 30. What was due has its outcome at 270.
func (s *story) heals() *story {
	s.add(30, trace.Event{What: trace.Healed})
	s.add(280, trace.Event{What: trace.Asked})
	return s
}

// holds is a singleton, a shard or the slot of a lock that a replica holds from a time on.
func (s *story) holds(from, to float64, replica, id string) *trace.Event {
	s.acquire(from, replica, id).Span = time.Hour
	s.claim(from+0.1, replica, id, 0).Record.Run.Tick = time.Time{}
	r := s.saved[s.job]
	r.Run.Tick = time.Time{}
	s.saved[s.job] = r
	return s.runs(from+0.2, to, replica)
}

// locks is the function of a call of the lock, under a slot of it.
func (s *story) locks(from, to float64, call string, slot int) *trace.Event {
	r := s.of(entry.OfSlot(entry.Lock, slot, "lock")).holds(from, to, "a", call)
	r.Job, r.Lock, r.Slot, r.Call, r.ID = "", "lock", slot, call, call
	return r
}

// calls is one call of the lock, or of once.
func (s *story) calls(from, to float64, op, call string, result trace.Result) *trace.Event {
	return s.add(from, trace.Event{What: trace.Called, Replica: "a", Op: op, Lock: "lock", Call: call, End: at(to), Result: result})
}

func (s *story) order(t float64, kind store.OrderKind, request string) *trace.Event {
	return s.add(t, trace.Event{What: trace.Ordered, Replica: "operator", Job: s.job, Op: string(kind), Request: request, Heard: at(t + 0.1), End: at(t + 60)})
}

// demanded claims and runs what was ordered.
func (s *story) demanded(t float64, replica, id, request string) *trace.Event {
	s.acquire(t, replica, id)
	s.write(t+0.1, replica, "claim", id, func(r *store.Record) {
		r.Token++
		r.Run = store.Run{Tick: at(t), Request: request, Attempt: 1, Status: store.Running}
	})
	return s.runs(t+0.2, t+1, replica)
}
