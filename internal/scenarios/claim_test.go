package scenarios_test

import (
	"testing"
	"time"

	"github.com/soloist-go/soloist/internal/sim"
)

// The machine of a sleeps for longer than its lease, between the reply to its
// claim and the start of the run. b has the tick, and a does not start it.
func TestPauseOfALeaseBetweenClaimReplyAndStart(t *testing.T) {
	runScenario(t, func(s *story) {
		a := s.start(rerun(takes(10*time.Second)), "a")
		a.FreezeAt("claim after", D+5*time.Second)
		s.until("01:00:01")
		s.start(rerun(takes(10*time.Second)), "b")
		s.until("01:00:40")
		s.ran("b 01:00:00/2")
		s.says("a", "the claim was not confirmed")
		s.outcomes("succeeded 01:00:00")
	})
}

// a's lease is broken under it. b holds off, and none of its renewals but the
// first is answered; then it claims, and its machine sleeps, not for long but
// past what that renewal brings. It does not start what it has claimed.
func TestPausePastTheDeadlineBetweenClaimReplyAndStart(t *testing.T) {
	runScenario(t, func(s *story) {
		s.start(rerun(takes(time.Minute)), "a")
		s.until("01:00:01")
		s.cut("a")
		s.script.Operate("break now", "job")
		b := s.start(rerun(takes(time.Minute)), "b")
		lost := s.lose("all b's second renew")
		b.FreezeAt("claim after", 2400*time.Millisecond)
		s.until("01:00:19")
		s.ran("a 01:00:00 lost")
		s.says("b", "the lease was lost before the run began")
		s.over(lost)
		s.until("01:02:00")
		s.ran("a 01:00:00 lost", "b 01:00:00/3")
	})
}

// a has a lease of a minute and dies, b one of 15 s: b waits out the one that a
// had. Then the other way round.
func TestMixedLeaseLengths(t *testing.T) {
	for name, tt := range map[string]struct{ dead, alive time.Duration }{
		"a long one dies":  {time.Minute, D},
		"a short one dies": {D, time.Minute},
	} {
		runCase(t, name, func(s *story) {
			of := func(lease time.Duration) sim.Work {
				d := rerun(takes(100 * time.Second))
				d.Lease = lease
				return d
			}
			a := s.start(of(tt.dead), "a")
			s.until("01:00:01")
			s.start(of(tt.alive), "b")
			a.Kill()
			s.until("01:00:00")
			time.Sleep(tt.dead)
			s.ran("a 01:00:00")
			time.Sleep(2 * time.Second)
			s.ran("a 01:00:00", "b 01:00:00/2")
			if got := time.Duration(s.record().Run.Lease); got != tt.alive {
				s.Errorf("the record tells a lease of %s: after an expired one b has its own", got)
			}
		})
	}
}
