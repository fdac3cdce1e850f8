package scenarios_test

import (
	"context"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/internal/sim"
	"github.com/soloist-go/soloist/internal/sim/trace"
)

// armed is a job whose ticks are claimed ahead.
func armed(job sim.Work) sim.Work {
	job.ClaimAhead = true
	return job
}

// arms has a run the tick at 01:00:00 and then claim the one at 02:00:00, which b looks for
// before that. It returns a.
func (s *story) arms(job sim.Work) *sim.Replica {
	s.Helper()
	a := s.start(armed(job), "a")
	s.until("01:30:00")
	s.start(armed(job), "b")
	s.until("01:59:58.2")
	if r := s.record(); !r.Run.Armed || r.Run.Replica != "a" {
		s.Fatalf("the record says %+v", r.Run)
	}
	return a
}

// began demands that the last run began between two times.
func (s *story) began(from, to string) {
	s.Helper()
	runs := s.events(trace.Ran, "")
	if at := runs[len(runs)-1].Time.UTC().Format("15:04:05.000"); at < from || at > to {
		s.Errorf("the run began at %s, want from %s to %s", at, from, to)
	}
}

// Nothing happens: the run begins at its tick, without a call, and b has looked once before it,
// once after it, and once before the end.
func TestArmedRunBeginsOnTheDot(t *testing.T) {
	runScenario(t, func(s *story) {
		s.arms(hourly(takes(time.Second)))
		s.until("02:00:10")
		s.ran("a 01:00:00", "a 02:00:00")
		s.began("02:00:00.000", "02:00:00.001")
		s.outcomes("succeeded 01:00:00", "succeeded 02:00:00")
	})
}

// a is asked to stop in each part of the last two seconds. In time it takes the claim back,
// and b runs the tick when it is due. Once b may have looked, a runs the tick.
func TestStopInEachPartOfTheLead(t *testing.T) {
	for at, ran := range map[string]string{"01:59:58.2": "b", "01:59:58.4": "b", "01:59:58.7": "a", "01:59:59.2": "a", "01:59:59.7": "a", "01:59:59.99": "a"} {
		runCase(t, at, func(s *story) {
			s.arms(hourly(takes(time.Second)))
			s.until(at)
			<-s.stop("a")
			s.until("02:00:10")
			s.ran("a 01:00:00", ran+" 02:00:00")
			s.began("02:00:00.000", "02:00:00.021") // b may have to claim it then
			s.outcomes("succeeded 01:00:00", "succeeded 02:00:00")
			s.answers("a's take back", map[string][]string{"b": {"200"}}[ran]...)
			s.answers("a's release", "200", "200")
		})
	}
}

// a dies with the claim. That is a death in the run: under Abandon the tick is given up, under
// Rerun it is run again.
func TestDeathWithAnArmedRun(t *testing.T) {
	runCase(t, "Abandon", func(s *story) {
		a := s.arms(hourly(takes(time.Second)))
		a.Kill()
		s.until("02:00:30")
		s.ran("a 01:00:00")
		s.until("02:30:00")
		s.outcomes("succeeded 01:00:00", "abandoned 02:00:00 its runner died")
	})
	runCase(t, "Rerun", func(s *story) {
		a := s.arms(rerun(takes(time.Second)))
		a.Kill()
		s.until("02:00:30")
		s.ran("a 01:00:00", "b 02:00:00/2")
		s.outcomes("succeeded 01:00:00", "succeeded 02:00:00")
	})
}

// The job is paused before its tick. The claim is taken back, and nothing runs.
func TestPauseOfAnArmedRun(t *testing.T) {
	runScenario(t, func(s *story) {
		s.script.TakeOrders()
		a := s.arms(hourly(takes(time.Second)))
		if err := a.Order(soloist.Order{Kind: soloist.OrderPause, Job: "job", By: trace.Orderer}); err != nil {
			s.Fatal(err)
		}
		s.until("02:30:00")
		s.ran("a 01:00:00")
		s.answers("a's take back", "200")
		if err := a.Order(soloist.Order{Kind: soloist.OrderResume, Job: "job", By: trace.Orderer}); err != nil {
			s.Fatal(err)
		}
		s.until("03:00:10")
		s.outcomes("succeeded 01:00:00", "skipped 02:00:00 paused", "succeeded 03:00:00")
	})
}

// A run by hand is ordered before the tick. It comes first, and the tick after it.
func TestRunByHandBeforeAnArmedRun(t *testing.T) {
	runScenario(t, func(s *story) {
		s.script.TakeOrders()
		a := s.arms(hourly(takes(100 * time.Millisecond)))
		if err := a.Order(soloist.Order{Kind: soloist.OrderRun, Job: "job", Request: "please", By: trace.Orderer}); err != nil {
			s.Fatal(err)
		}
		s.until("02:00:20")
		s.answers("a's take back", "200")
		requests := map[string]int{}
		for _, r := range s.events(trace.Ran, "") {
			if requests[r.Request]++; r.Request == "" {
				requests[r.Tick.UTC().Format(time.TimeOnly)]++
			}
		}
		if requests["please"] != 1 || requests["02:00:00"] != 1 {
			s.Errorf("the runs are %v", requests)
		}
	})
}

// The lease of the claim is broken before its tick. a has heard of nothing and runs the tick;
// b holds off, and nothing is run twice.
func TestBreakOfAnArmedRun(t *testing.T) {
	runScenario(t, func(s *story) {
		s.arms(rerun(takes(time.Minute)))
		s.script.Operate("break now", "job")
		s.until("02:01:30")
		runs := s.events(trace.Ran, "")
		if len(runs) != 3 || runs[1].Replica != "a" || runs[1].End.After(runs[2].Time) {
			s.Errorf("the runs are %v", runs)
		}
	})
}

// The machine of a is suspended over the tick. For a moment: the run is late. For longer than
// the lease can be trusted: that claim is never run. It is taken back, and the tick is claimed
// anew.
func TestSuspensionOverAnArmedTick(t *testing.T) {
	runCase(t, "short", func(s *story) {
		a := s.arms(hourly(takes(time.Second)))
		s.until("01:59:59")
		a.Freeze(3 * time.Second)
		s.until("02:00:10")
		s.ran("a 01:00:00", "a 02:00:00")
		s.began("02:00:02.000", "02:00:02.002")
	})
	for name, others := range map[string][]string{"long": {"b"}, "long, and alone": nil} {
		runCase(t, name, func(s *story) {
			job := armed(hourly(takes(time.Second)))
			a := s.start(job, "a")
			s.until("01:30:00")
			if len(others) > 0 {
				s.start(job, others...)
			}
			s.until("01:59:59")
			armed := s.record().Token
			a.Freeze(14 * time.Second)
			s.until("02:30:00")
			s.ran("a 01:00:00", "a 02:00:00")
			s.answers("a's take back", "412 LeaseLost", "200") // after a renewal
			if runs := s.events(trace.Ran, ""); runs[1].Token <= armed {
				s.Errorf("the claim with token %d is run", armed)
			}
		})
	}
}

// a keeps its lease from one tick to the next and claims that one ahead. No renewal is answered,
// and the trust ends before the tick. Then an answer comes after all: the claim is taken back.
func TestLateRenewalUnderAnArmedRun(t *testing.T) {
	runScenario(t, func(s *story) {
		runs := 0
		job := armed(hourly(func(ctx context.Context, r *sim.RunContext) error {
			if runs++; runs == 2 {
				return r.Sleep(ctx, 9200*time.Millisecond)
			}
			return r.Sleep(ctx, time.Second)
		}))
		job.Every, job.Schedule = 11*time.Second, "@every 11s" // at 00:00:05, 00:00:16, 00:00:27
		s.start(job, "a")
		s.until("00:00:15")
		renewals := s.hold("the replies to all a's renew").wait()
		s.until("00:00:26.2")
		if r := s.record(); !r.Run.Armed || r.Run.Tick.UTC().Format(time.TimeOnly) != "00:00:27" {
			s.Fatalf("the record says %+v", r.Run)
		}
		s.until("00:00:26.42") // the trust has ended at 26.35
		renewals.deliver()
		s.until("00:00:26.99")
		s.answers("a's take back", "200")
	})
}

// a is asked to stop when b has looked, and its machine is suspended until its grace is over.
// The run does not begin: it would end at once. b has the tick.
func TestSuspensionPastTheGraceOfAnArmedRun(t *testing.T) {
	runScenario(t, func(s *story) {
		a := s.arms(hourly(takes(time.Second)))
		s.until("01:59:59.3")
		gone := s.stop("a")
		s.until("01:59:59.9")
		a.Freeze(6 * time.Second)
		<-gone
		s.until("02:30:00")
		s.ran("a 01:00:00", "b 02:00:00")
		s.answers("a's take back", "200")
	})
}

// The answer to the claim is lost, and a stop comes before a has read what became of it. By
// then the tick is due: a runs it within its grace. Without one it takes the claim back, and b
// has the tick.
func TestStopAfterTheAnswerToAnEarlyClaimIsLost(t *testing.T) {
	for ran, grace := range map[string]time.Duration{"a": 5 * time.Second, "b": 0} {
		runCase(t, grace.String(), func(s *story) {
			job := armed(hourly(takes(time.Second)))
			s.play(sim.Part{Name: "a", Work: []sim.Work{job}, Grace: grace})
			s.until("01:30:00")
			s.start(job, "b")
			s.lose("the reply to a's claim").wait()
			time.Sleep(50 * time.Millisecond)
			<-s.stop("a")
			s.until("02:30:00")
			s.ran("a 01:00:00", ran+" 02:00:00")
			s.outcomes("succeeded 01:00:00", "succeeded 02:00:00")
			s.answers("a's take back", map[string][]string{"b": {"200"}}[ran]...)
		})
	}
}

// The answer to what takes the claim back is lost. a reads that it is done before it releases.
func TestAnswerToATakeBackIsLost(t *testing.T) {
	runScenario(t, func(s *story) {
		s.arms(hourly(takes(time.Second)))
		s.lose("the reply to a's take back")
		<-s.stop("a")
		s.until("02:00:10")
		s.ran("a 01:00:00", "b 02:00:00")
		s.outcomes("succeeded 01:00:00", "succeeded 02:00:00")
		s.answers("a's release", "200", "200")
	})
}

// What takes the claim back arrives nowhere until the trust in the lease has ended, and the
// tick is long due: it is not run by a, and the lease is not released over the claim.
func TestTakeBackThatIsLost(t *testing.T) {
	runScenario(t, func(s *story) {
		s.arms(hourly(takes(time.Second)))
		s.lose("all a's take back")
		s.stop("a")
		s.until("02:30:00")
		s.ran("a 01:00:00")
		s.answers("a's release", "200")
		s.outcomes("succeeded 01:00:00", "abandoned 02:00:00 its runner died")
	})
}
