package scenarios_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/internal/sim"
	"github.com/soloist-go/soloist/internal/sim/trace"
)

// a's wall clock is ahead by two seconds, and a, which ran the tick before, acquires ahead
// of b. A job of a moment is over before b thinks it is due. b finds it settled; and a did
// not begin before its time, but for the second that the service's clock leaves out.
func TestTickClaimedEarlyByAFastClock(t *testing.T) {
	runScenario(t, func(s *story) {
		quick := []sim.Work{hourly(takes(10 * time.Millisecond))}
		s.play(sim.Part{Name: "a", Work: quick, Skew: 2 * time.Second})
		s.until("01:30:00")
		s.play(sim.Part{Name: "b", Work: quick})
		s.until("02:00:30")
		s.ran("a 01:00:00", "a 02:00:00")
		s.outcomes("succeeded 01:00:00", "succeeded 02:00:00")
		s.answers("b's acquire")
		for _, e := range s.events(trace.Ran, "a")[1:] {
			if early := e.Tick.Sub(e.Time); early < 100*time.Millisecond || early > time.Second {
				s.Errorf("it began %s early", early)
			}
		}
	})
}

// The date of each answer proves that a's clock is a moment early for its look before the
// tick. It looks once all the same, or waits: it does not ask until the service's second is
// over. That it sends few requests is checked at the end of each story.
func TestLookOfAFastClock(t *testing.T) {
	runScenario(t, func(s *story) {
		quick := []sim.Work{hourly(takes(10 * time.Millisecond))}
		s.play(sim.Part{Name: "a", Work: quick, Skew: 2 * time.Second})
		s.play(sim.Part{Name: "b", Work: quick})
		s.until("01:00:30")
		s.outcomes("succeeded 01:00:00")
	})
}

// b's wall clock is behind by four seconds: when it thinks that a tick is due,
// a short run of it is long over.
func TestSlowClockAfterAShortJob(t *testing.T) {
	runScenario(t, func(s *story) {
		quick := []sim.Work{hourly(takes(10 * time.Millisecond))}
		s.play(sim.Part{Name: "a", Work: quick})
		s.play(sim.Part{Name: "b", Work: quick, Skew: -4 * time.Second})
		s.until("03:00:30")
		if got := len(s.events(trace.Ran, "")); got != 3 {
			s.Errorf("%d runs", got)
		}
		s.outcomes("succeeded 01:00:00", "succeeded 02:00:00", "succeeded 03:00:00")
	})
}

// Nobody gets through at 01:00 and 02:00.
func TestATickAndTheNextBothDueAfterAnOutage(t *testing.T) {
	for name, tt := range map[string]struct {
		missed   soloist.MissedPolicy
		ran      []string
		outcomes []string
	}{
		"latest": {soloist.RunLatest, []string{"a 02:00:00"}, []string{"missed 01:00:00 a newer one was due", "succeeded 02:00:00"}},
		"all":    {soloist.RunAll, []string{"a 01:00:00", "a 02:00:00"}, []string{"succeeded 01:00:00", "succeeded 02:00:00"}},
		"skip":   {soloist.SkipMissed, nil, []string{"missed 00:00:00-02:00:00 past the starting deadline"}},
	} {
		runCase(t, name, func(s *story) {
			job := hourly(takes(time.Second))
			job.Missed = tt.missed
			s.start(job, "a")
			s.until("00:59:00")
			s.cut("a")
			s.until("02:10:00")
			s.mend("a")
			s.until("02:10:30")
			s.ran(tt.ran...)
			s.outcomes(tt.outcomes...)
		})
	}
}

// "Half past two" in Berlin, on the days on which it does not come and comes
// twice. a dies under the run and b takes the tick over: in the fold when the
// clocks show half past two for the second time.
func TestDSTGapAndFoldWithTakeOverInBetween(t *testing.T) {
	for name, tt := range map[string]struct{ before, dies, after, tick, next string }{
		"gap":  {"2000-03-26 00:50:00", "2000-03-26 01:00:05", "2000-03-26 01:40:00", "01:00:00", "2000-03-27 00:35:00"},
		"fold": {"2000-10-29 00:20:00", "2000-10-29 01:29:50", "2000-10-29 01:55:00", "00:30:00", "2000-10-30 01:35:00"},
	} {
		runCase(t, name, func(s *story) {
			job := rerun(takes(61 * time.Minute))
			job.Every, job.Schedule, job.TimeZone = 0, "30 2 * * *", "Europe/Berlin"
			s.until(tt.before)
			a := s.start(job, "a")
			s.until(tt.dies)
			s.ran("a " + tt.tick)
			job.Act = takes(time.Minute)
			s.start(job, "b")
			a.Kill()
			s.until(tt.after)
			s.ran("a "+tt.tick, "b "+tt.tick+"/2")
			s.outcomes("succeeded " + tt.tick)
			s.until(tt.next)
			s.ran("a "+tt.tick, "b "+tt.tick+"/2", "b "+tt.next[11:14]+"30:00")
		})
	}
}

// Fifty replicas ask for the lease of one tick at the same instant before it. One has it,
// for five requests with its look; each other one is through with four: its look, the
// acquisition that is refused, a look at who was first, and one after the tick.
func TestFiftyReplicasSameTickNoJitter(t *testing.T) {
	runScenario(t, func(s *story) {
		var requests []*inflight
		for i := range 50 {
			name := fmt.Sprintf("r%02d", i)
			s.start(hourly(takes(100*time.Millisecond)), name)
			requests = append(requests, s.hold(name+"'s acquire"))
		}
		for _, l := range requests {
			l.wait()
		}
		s.until("00:59:59.8")
		for _, l := range requests {
			l.deliver()
			synctest.Wait() // the service takes one after the other
		}
		s.until("01:00:50") // after a minute each replica looks once more, for marks
		if got := len(s.events(trace.Ran, "")); got != 1 {
			s.Errorf("%d runs", got)
		}
		s.outcomes("succeeded 01:00:00")
		counts := map[string]int{}
		for _, e := range s.events(trace.Request, "") {
			if e.Sent.After(s.midnight.Add(time.Hour - 2*time.Second)) {
				counts[e.Replica]++
			}
		}
		for name, n := range counts {
			if won := len(s.events(trace.Ran, name)) > 0; won && n != 5 || !won && n != 4 {
				s.Errorf("%s sends %d requests", name, n)
			}
		}
	})
}
