package check_test

import (
	"fmt"
	"slices"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/internal/sim/check"
	"github.com/soloist-go/soloist/store"
)

// What the checker took for a violation once, and violations beside it.
var _ = plant(stories{
	"": {
		func(s *story) { s.spent(5) },
		func(s *story) { s.lostBetweenTries(133.5, 133) },
		func(s *story) { s.lostBetweenTries(133.5, 144).Cause = soloist.ErrTimeout.Error() }, // which was too long
		func(s *story) { s.startedFromZero(); s.lostBetweenTries(133.5, 144) },
		func(s *story) { s.unwritten(138, 120) },
		func(s *story) { s.twoTools(""); s.request("a", "read", "", 890, 200) },
		func(s *story) { s.outdatedBesideTool("another schedule") },
		func(s *story) { s.freeze(18.2, 23.8); s.slowClaim() },
		func(s *story) { s.unclaimed("the claim was not confirmed, so nothing runs") },
		func(s *story) { s.unclaimed(""); s.dropped(); s.request("a", "read", "", 13, 200) },
		func(s *story) { s.freeze(10.1, 14.95); s.longRun() },
	},
	"I11 release": {
		func(s *story) { s.unclaimed("something else") },
		func(s *story) { s.unclaimed(""); s.dropped(); s.request("a", "read", "", 14.5, 200) },
		func(s *story) { s.unclaimed(""); s.dropped(); s.request("b", "read", "", 13, 200) },
	},
	"I3 span":     {(*story).longRun},
	"I19 overlap": {(*story).slowClaim},
	"I15 attempts": {func(s *story) { s.spent(4) }, func(s *story) { s.lostBetweenTries(131.5, 133) },
		func(s *story) { s.startedFromZero(); s.lostBetweenTries(133.5, 133) }}, // before the trust in its lease is over
	"I17 unhindered": {
		func(s *story) { s.unwritten(100, 120) },
		func(s *story) { s.unwritten(238, 180) }, // longer than a replica may
	},
	"I16 occupied": {
		func(s *story) { s.twoTools("the job is looked after again") },
		func(s *story) { s.outdatedBesideTool("no room") },
	},
})

// spent is a tick that is claimed so often, and whose runners die. The last one's
// claim was not confirmed: it runs nothing, settles the tick itself under its next
// lease, and is stopped later.
func (s *story) spent(attempts int) {
	s.reruns()
	for n := 1; n <= attempts; n++ {
		t, id := 40*float64(n)-30, fmt.Sprint(n)
		s.acquire("a", id, t)
		claim := s.claim("a", id, t+0.5, 10)
		claim.Record.Run.Attempt, s.last.Run.Attempt = n, n
		if n < attempts {
			s.run("a", t+1, t+2).Cause = store.ErrLost.Error()
			continue
		}
		claim.Heard, claim.Cause = time.Time{}, "reply lost"
		s.add(check.Event{What: check.Said, Replica: "a", Job: "job", Time: at(t + 5), Note: "the claim was not confirmed, so nothing runs"})
	}
	t := 40*float64(attempts) + 10
	s.acquire("a", "0", t)
	s.write("a", "settle", "0", t+0.5, func(r *store.Record) {
		r.Run.Status, r.Watermark = store.Abandoned, at(10)
		r.History = append([]store.Outcome{{Tick: at(10), Status: store.Abandoned, Reason: "its runner died", Token: r.Token, Attempt: r.Run.Attempt}}, r.History...)
	})
	s.request("a", "release", "0", t+1, 200)
	s.say("a", t+5, check.Stop)
	s.say("a", t+6, check.Gone)
}

// lostBetweenTries is a tick with five attempts, whose fourth loses its lease after a try has failed.
// Its replica is asked to hand the job over at one time, and writes the outcome of that attempt at another.
func (s *story) lostBetweenTries(asked, told float64) *check.Event {
	s.spent(5)
	claim := s.Events[slices.IndexFunc(s.Events, func(e *check.Event) bool { return e.Op == "claim" && e.Lease == "4" })]
	run := s.Events[slices.IndexFunc(s.Events, func(e *check.Event) bool { return e.What == check.Ran && e.Attempt == 4 })]
	run.Cause, run.Note = "", "failed"
	last := s.last
	s.last = *claim.Record
	s.write("a", "finish", "4", told, func(r *store.Record) { r.Run.Status, r.Run.Finished = store.Abandoned, at(told-0.1) })
	s.last = last
	s.add(check.Event{What: check.Yield, Job: "job", Time: at(asked)})
	return run
}

// startedFromZero says that a platform has started a, which does not stay.
func (s *story) startedFromZero() {
	s.Events[slices.IndexFunc(s.Events, func(e *check.Event) bool { return e.What == check.Up && e.Replica == "a" })].Cause = check.AtZero
}

// unwritten is the tick at 60, whose runner may not write its outcome, and tries
// until the time to. The ticks after that up to last are missed.
func (s *story) unwritten(to, last float64) {
	s.Fleet["a"][0].Every = time.Minute
	s.begin("a", "1", 60, 61, 63)
	for t := 64.0; t < to; t += 4 {
		e := s.request("a", "finish", "1", t, 0)
		e.Cause, e.Heard = string(check.ReadOnly), at(t+0.1)
		s.request("a", "renew", "1", t+1, 200)
	}
	s.acquire("b", "2", last+80)
	s.write("b", "settle", "2", last+80.5, func(r *store.Record) {
		r.Run.Status, r.Watermark = store.Abandoned, at(last)
		r.History = append([]store.Outcome{
			{Tick: at(last), Status: store.Missed, Reason: "a newer one was due"},
			{Tick: at(60), Status: store.Abandoned, Reason: "its runner died", Token: r.Token, Attempt: 1}}, r.History...)
	})
	s.request("b", "release", "2", last+81, 200)
}

// twoTools have the lease one after the other. The replicas tell of the first one,
// and between the two they say what they have seen.
func (s *story) twoTools(between string) {
	s.Fleet["a"][0].Every = time.Minute
	s.tick("a", "1", 60)
	for _, to := range []float64{500, 900} {
		s.add(check.Event{What: check.Leased, Job: "job", Time: at(to - 398), End: at(to)})
	}
	for _, replica := range []string{"a", "b"} {
		s.add(check.Event{What: check.Said, Replica: replica, Job: "job", Time: at(200), Note: "the job is left alone",
			Cause: "error=leased since then, or longer, by a client that claims nothing"})
		if between != "" {
			s.add(check.Event{What: check.Said, Replica: replica, Job: "job", Time: at(501), Note: between})
		}
	}
}

// outdatedBesideTool is a tool that has the lease while both replicas leave the job alone,
// since the record has something that they do not have.
func (s *story) outdatedBesideTool(something string) {
	s.Fleet["a"][0].Every = time.Minute
	s.tick("a", "1", 60)
	for _, replica := range []string{"a", "b"} {
		s.add(check.Event{What: check.Said, Replica: replica, Job: "job", Time: at(65), Note: "the job is left alone",
			Cause: "error=a replica that started later has " + something + " for this job"})
	}
	s.add(check.Event{What: check.Leased, Job: "job", Time: at(70), End: at(500)})
}

// slowClaim is the tick at 10, whose claim takes until 24, and the tick at 20, which
// comes due before that and counts as overlap.
func (s *story) slowClaim() {
	s.acquire("a", "1", 18)
	s.claim("a", "1", 24, 10)
	s.run("a", 25, 26)
	s.write("a", "finish", "1", 26.5, func(r *store.Record) {
		r.Run.Status, r.Run.Finished, r.Watermark = store.Succeeded, at(26), at(20)
		r.History = append([]store.Outcome{{Tick: at(20), Status: store.Skipped, Reason: "overlap"},
			{Tick: r.Run.Tick, Status: store.Succeeded, Token: r.Token, Attempt: 1, Start: r.Run.Claimed, End: at(26)}}, r.History...)
	})
	s.request("a", "release", "1", 27, 200)
}

// unclaimed is the tick at 10, whose claim is applied late. Its claimer has given it up
// by then and has sent a release, which comes later still. Another replica settles it.
func (s *story) unclaimed(says string) {
	s.acquire("a", "1", 10)
	claim := s.claim("a", "1", 14, 10)
	claim.Sent, claim.Heard, claim.Cause = at(10.5), time.Time{}, "delivered late"
	s.add(check.Event{What: check.Said, Replica: "a", Job: "job", Time: at(13), Note: says})
	s.request("a", "release", "1", 15, 200).Sent = at(13.1)
	s.acquire("b", "2", 16)
	s.write("b", "settle", "2", 30.5, func(r *store.Record) {
		r.Run.Status, r.Watermark = store.Abandoned, at(10)
		r.History = append([]store.Outcome{{Tick: at(10), Status: store.Abandoned, Reason: "its runner died", Token: r.Token, Attempt: 1}}, r.History...)
	})
	s.request("b", "release", "2", 30.8, 200)
}

// dropped says that lines of a's log were lost.
func (s *story) dropped() {
	s.add(check.Event{What: check.Said, Replica: "a", Time: at(13), Note: "lines were dropped"})
}

// longRun is the tick at 10, acquired at 15. Its end is told as four seconds late.
func (s *story) longRun() {
	s.acquire("a", "1", 15)
	s.claim("a", "1", 15.5, 10).Record.Run.Claimed = at(19)
	s.run("a", 16, 18)
	s.write("a", "finish", "1", 18.2, func(r *store.Record) {
		r.Run.Status, r.Run.Finished, r.Watermark = store.Succeeded, at(22), at(10)
		r.History = append([]store.Outcome{{Tick: r.Run.Tick, Status: store.Succeeded, Token: r.Token, Attempt: 1, Start: at(19), End: at(22)}}, r.History...)
	})
	s.request("a", "release", "1", 18.5, 200)
}

var _ = plant(stories{
	"I2a dead": {func(s *story) {
		// a replica keeps its lease, and claims the next tick beside a run that ignores its time-out
		r := s.begin("a", "1", 10, 11, 25)
		r.timeOut(14)
		r.Note = "timeout"
		s.finish("a", "1", 15, store.Failed)
		s.request("a", "renew", "1", 15.5, 200)
		s.claim("a", "1", 20.5, 20)
		s.run("a", 21, 23)
		s.finish("a", "1", 23.5, store.Succeeded)
		s.request("a", "release", "1", 25.5, 200)
	}},
})

var _ = plant(stories{
	"I26 events": {func(s *story) {
		// its replica dies long after that
		s.emits()
		s.tick("a", "1", 10)
		s.say("a", 3000, check.Crash)
	}},
})
