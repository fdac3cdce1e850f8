package scenarios_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/soloist-go/soloist/internal/sim"
	"github.com/soloist-go/soloist/internal/sim/trace"
)

// a's acquisition is applied, and a does not hear of it. It repeats it under
// the same id, which the service grants.
func TestAcquireAppliedReplyLostSameIDAgain(t *testing.T) {
	runScenario(t, func(s *story) {
		s.start(hourly(takes(time.Second)), "a")
		s.lose("the reply to a's acquire")
		s.until("01:00:10")
		s.ran("a 01:00:00")
		s.answers("a's acquire", "201", "201")
		s.outcomes("succeeded 01:00:00")
	})
}

// Both acquisitions of a come to nothing, so it releases what it may have. The
// release overtakes the first, which then takes the lease for no session. The next read
// of a shows that lease, and a releases it.
func TestAcquireDelayedPastGivingUpReleaseRacedBeforeIt(t *testing.T) {
	runScenario(t, func(s *story) {
		s.start(hourly(takes(time.Second)), "a")
		orphan := s.hold("a's acquire")
		s.lose("a's acquire")
		s.until("01:00:04.2")
		s.answers("a's release", "409 LeaseIdMismatchWithLeaseOperation")
		orphan.deliver()
		s.until("01:00:05")
		s.answers("a's release", "409 LeaseIdMismatchWithLeaseOperation", "200")
		s.ran()
		s.until("01:00:25")
		s.ran("a 01:00:00")
		s.outcomes("succeeded 01:00:00")
	})
}

// The acquisitions of a, b and c come at one instant.
func TestThreeAcquiresAtOneInstant(t *testing.T) {
	runScenario(t, func(s *story) {
		s.start(hourly(takes(time.Second)), "a", "b", "c")
		a, b, c := s.hold("a's acquire"), s.hold("b's acquire"), s.hold("c's acquire")
		s.until("01:00:01")
		a.deliver()
		b.deliver()
		c.deliver()
		s.until("01:00:05")
		var got []string
		for _, e := range s.events(trace.Request, "") {
			if e.Op == "acquire" {
				got = append(got, fmt.Sprint(e.Status, e.Code))
			}
		}
		s.same("answers", got, []string{"201", "409LeaseAlreadyPresent", "409LeaseAlreadyPresent"})
		if n := len(s.events(trace.Ran, "")); n != 1 {
			s.Errorf("%d runs", n)
		}
	})
}

// b comes while a has the lease and has not claimed, c when it has. One is told
// that the lease is taken, the other that the entry has changed: both have
// lost, neither has missed anything.
func Test412And409Both(t *testing.T) {
	runScenario(t, func(s *story) {
		s.start(hourly(takes(3*time.Second)), "a", "b", "c")
		b, c, claim := s.hold("b's acquire"), s.hold("c's acquire"), s.hold("a's claim")
		claim.wait()
		b.deliver()
		time.Sleep(sim.Leg)
		claim.deliver()
		time.Sleep(sim.Leg)
		c.deliver()
		s.until("01:00:10")
		s.ran("a 01:00:00")
		s.answers("b's acquire", "409 LeaseAlreadyPresent")
		s.answers("c's acquire", "412 ConditionNotMet")
		s.outcomes("succeeded 01:00:00")
	})
}

// a acquires and dies. b, which was told that the lease is taken, before the tick or after
// it, does not walk away: it has the tick when the lease has run out.
func TestWinnerDiesBetweenAcquireAndClaimAfterTheLosersSaw409(t *testing.T) {
	for _, told := range []string{"00:59:59.5", "01:00:01"} {
		runCase(t, "told at "+told, func(s *story) {
			a := s.start(hourly(takes(time.Second)), "a", "b")
			late := s.hold("b's acquire")
			a.KillAt("acquire after")
			s.until(told)
			late.deliver()
			s.until("01:00:02")
			s.answers("a's acquire", "201")
			s.answers("b's acquire", "409 LeaseAlreadyPresent")
			s.until("01:00:13.9") // a's lease is over
			s.ran()
			s.until("01:00:18")
			s.ran("b 01:00:00")
			s.outcomes("succeeded 01:00:00")
		})
	}
}

// a dies under a run. b takes over and dies before its claim, while c is refused the lease.
func TestWinnerOfTakeOverDiesAfterTheLoserSaw409(t *testing.T) {
	runScenario(t, func(s *story) {
		a := s.start(rerun(takes(5*time.Second)), "a")
		s.until("01:00:02")
		b := s.start(rerun(takes(5*time.Second)), "b")
		s.start(rerun(takes(5*time.Second)), "c")
		b.KillAt("acquire after")
		a.Kill()
		first, second := s.hold("b's acquire"), s.hold("c's acquire")
		second.wait()
		first.wait().deliver()
		time.Sleep(100 * time.Millisecond)
		second.deliver()
		s.until("01:01:00")
		s.answers("b's acquire", "201")
		s.answers("c's acquire", "409 LeaseAlreadyPresent", "201")
		s.ran("a 01:00:00", "c 01:00:00/2")
		s.outcomes("succeeded 01:00:00")
	})
}

// a dies under a run. b reads that the lease has run out; before its own
// acquisition gets through, c has taken over, run and gone.
func TestFollowerReadsExpiredAnotherAcquiresThenItsOwnAcquire(t *testing.T) {
	runScenario(t, func(s *story) {
		a := s.start(rerun(takes(5*time.Second)), "a")
		s.until("01:00:02")
		s.start(rerun(takes(5*time.Second)), "b", "c")
		a.Kill()
		b := s.hold("b's acquire")
		c := s.hold("c's acquire")
		b.wait()
		c.wait().deliver()
		time.Sleep(time.Second)
		b.deliver()
		s.until("01:00:40")
		s.ran("a 01:00:00", "c 01:00:00/2")
		s.answers("b's acquire", "412 ConditionNotMet")
		s.outcomes("succeeded 01:00:00")
	})
}
