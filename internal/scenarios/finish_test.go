package scenarios_test

import (
	"testing"
	"time"
)

// a's machine sleeps in the middle of a run; b has the same tick under the next
// token. What a then writes to a resource that fences is refused.
func TestPauseInsideDoSideEffectWithTheOldTokenRefused(t *testing.T) {
	runScenario(t, func(s *story) {
		a := s.start(rerun(deaf(10*time.Second)), "a")
		s.until("01:00:06")
		s.start(rerun(deaf(10*time.Second)), "b")
		a.Freeze(30 * time.Second)
		s.until("01:01:00")
		s.ran("a 01:00:00 lost", "b 01:00:00/2")
		s.effects("a well", "b well", "b well", "a refused")
		s.outcomes("succeeded 01:00:00")
	})
}

// a is cut off until its lease has run out, while its run goes on to a good end.
// Nobody has touched the lease: a takes it up again and says so.
func TestFinishAfterExpiryUntouched(t *testing.T) {
	runScenario(t, func(s *story) {
		s.start(hourly(deaf(20*time.Second)), "a")
		s.until("01:00:01")
		s.cut("a")
		s.until("01:00:19")
		s.mend("a")
		s.until("01:00:40")
		s.ran("a 01:00:00 lost")
		s.answers("a's finish", "412 LeaseLost", "200")
		s.outcomes("succeeded 01:00:00 after the end of its context: the lease is lost: no renewal in time")
	})
}

// Both releases of a are lost, and the next tick is due before its lease runs
// out. The tick waits for that, and those after it come as ever.
func TestReleaseLost(t *testing.T) {
	runScenario(t, func(s *story) {
		s.start(frequent(takes(time.Second)), "a")
		s.lose("a's release")
		s.lose("a's release")
		s.until("00:00:25")
		s.ran("a 00:00:10")
		s.until("00:00:35")
		s.ran("a 00:00:10", "a 00:00:20", "a 00:00:30")
		s.outcomes("succeeded 00:00:10", "succeeded 00:00:20", "succeeded 00:00:30")
	})
}
