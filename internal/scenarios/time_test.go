package scenarios_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

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
