package scenarios_test

import (
	"testing"
	"time"
)

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
