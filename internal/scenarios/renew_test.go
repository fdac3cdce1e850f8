package scenarios_test

import (
	"context"
	"testing"
	"time"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/internal/sim"
)

// The reply to a's acquisition takes two seconds, until after the tick, and none to its renewals
// comes: they count for nothing, though each is applied. The run ends when the
// acquisition can be trusted no more, which counts from when it was sent.
func TestRenewalRepliesThatNeverCome(t *testing.T) {
	runScenario(t, func(s *story) {
		s.start(hourly(takes(time.Minute)), "a")
		acquired := s.hold("the reply to a's acquire")
		s.lose("the replies to all a's renew")
		s.until("01:00:01")
		acquired.deliver()
		s.until("01:00:11.3")
		s.ran("a 01:00:00")
		s.until("01:00:11.4")
		s.ran("a 01:00:00 lost")
		s.until("01:00:30")
	})
}

// a is cut off, and meanwhile its wall clock is set back by a minute. That gives
// its run no more time: how long is no question to a wall clock.
func TestWallClockSetBackWhileCutOff(t *testing.T) {
	runScenario(t, func(s *story) {
		a := s.start(hourly(takes(time.Minute)), "a")
		s.until("01:00:01")
		s.cut("a")
		a.Step(-time.Minute)
		s.until("01:00:12.4")
		s.ran("a 01:00:00 lost")
		s.until("01:00:30")
	})
}

// The reply to a's renewal is long under way when the run asks for another one,
// which is lost, as is all that follows. What the first reply brings counts from
// when the first was sent.
func TestReplyOfRenewal1AfterRenewal2WasSent(t *testing.T) {
	runScenario(t, func(s *story) {
		s.start(hourly(func(ctx context.Context, run *sim.RunContext) error {
			if err := run.Sleep(ctx, third+time.Second); err != nil {
				return err
			}
			_ = run.Check(ctx)
			return takes(time.Minute)(ctx, run)
		}), "a")
		first := s.hold("the reply to a's renew")
		s.lose("all a's renew")
		first.wait()
		time.Sleep(try - 100*time.Millisecond)
		first.deliver()
		s.until("01:00:20")
		s.ran("a 01:00:00 lost")
		s.answers("a's renew", "200", "-", "-", "-", "-")
	})
}

// A renewal of a reaches the service when the lease has run out and nobody has
// touched it: it is granted, and brings nothing back. a's run has ended; what
// became of it is recorded under the lease that it has again.
func TestRenewalLandsOnAnExpiredUntouchedLease(t *testing.T) {
	runScenario(t, func(s *story) {
		s.start(hourly(takes(time.Minute)), "a")
		late := s.hold("a's renew")
		late.wait()
		s.cut("a")
		s.until("01:00:16")
		s.ran("a 01:00:00 lost")
		late.deliver()
		s.mend("a")
		s.until("01:00:30")
		s.ran("a 01:00:00 lost")
		s.answers("a's finish", "-", "200")
		if f := s.record().History; len(f) != 1 || f[0].Status != event.Abandoned {
			s.Errorf("got %+v", f)
		}
	})
}
