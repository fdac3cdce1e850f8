package scenarios_test

import (
	"context"
	"testing"
	"time"

	"github.com/soloist-go/soloist/internal/sim"
)

// An operator breaks the lease of a run, so that it ends with its time.
func TestBreakNaturally(t *testing.T) {
	runCase(t, "while renewing", func(s *story) {
		s.start(hourly(takes(time.Minute)), "a", "b")
		s.hold("b's acquire")
		renewal := s.hold("a's renew").wait()
		s.script.Operate("break", "job")
		renewal.deliver()
		time.Sleep(time.Second)
		s.ran("a 01:00:00 lost")
		s.answers("a's renew", "409 LeaseIsBrokenAndCannotBeRenewed")
	})
	runCase(t, "while claiming", func(s *story) {
		s.start(hourly(takes(time.Minute)), "a")
		claim := s.hold("a's claim").wait()
		s.script.Operate("break", "job")
		claim.deliver()
		s.until("01:00:04")
		s.ran("a 01:00:00") // the lease is its own until its time is up
		s.until("01:00:06")
		s.ran("a 01:00:00 lost")
	})
	runCase(t, "while finishing", func(s *story) {
		s.start(hourly(takes(time.Second)), "a")
		finish := s.hold("a's finish").wait()
		s.script.Operate("break", "job")
		finish.deliver()
		s.until("01:00:05")
		s.ran("a 01:00:00")
		s.outcomes("succeeded 01:00:00")
	})
}

// An operator breaks the lease of a at once, while a hears of nothing and goes
// on. b, which is up for the tick, holds off until a must have given up.
func TestBreakAtOnceWithHoldOffWhileTheOldOneStillRuns(t *testing.T) {
	runScenario(t, func(s *story) {
		s.start(rerun(takes(time.Minute)), "a")
		s.until("01:00:05") // just renewed
		s.start(rerun(takes(10*time.Second)), "b")
		s.cut("a")
		s.script.Operate("break now", "job")
		s.until("01:00:16.3")
		s.ran("a 01:00:00")
		s.says("b", "the last runner's lease did not run out by itself")
		s.until("01:00:40")
		s.ran("a 01:00:00 lost", "b 01:00:00/2")
		s.outcomes("succeeded 01:00:00")
	})
}

// frequent is a job that is due all the time.
func frequent(takes func(context.Context, *sim.RunContext) error) sim.Work {
	d := rerun(takes)
	d.Every, d.Schedule = 10*time.Second, "@every 10s"
	return d
}

// An operator deletes the entry while a, which is cut off, goes on under it
// until 00:00:21.4. b makes it anew, and another tick is due before that; it waits
// until a must have given up.
func TestDeleteAndReCreate(t *testing.T) {
	runCase(t, "during a run", func(s *story) {
		s.start(frequent(takes(time.Minute)), "a")
		s.until("00:00:11")
		s.start(frequent(takes(time.Second)), "b")
		s.until("00:00:12") // it has seen a's entry
		s.cut("a")
		s.script.Operate("delete", "job")
		s.until("00:00:21.3")
		s.ran("a 00:00:10")
		s.says("b", "the last runner's lease did not run out by itself")
		s.until("00:00:38")
		s.ran("a 00:00:10 lost", "b 00:00:30")
	})
	runCase(t, "during a hold-off", func(s *story) {
		s.start(frequent(takes(time.Minute)), "a")
		s.until("00:00:11")
		s.start(frequent(takes(time.Second)), "b")
		s.cut("a")
		s.script.Operate("break now", "job")
		s.until("00:00:13") // b holds off
		s.says("b", "the last runner's lease did not run out by itself")
		s.script.Operate("delete", "job")
		s.until("00:00:21.3")
		s.ran("a 00:00:10")
		s.until("00:00:38")
		s.ran("a 00:00:10 lost", "b 00:00:30")
	})
}
