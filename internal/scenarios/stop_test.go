package scenarios_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist/internal/sim"
	"github.com/soloist-go/soloist/internal/sim/trace"
)

// stop has a replica asked to stop. It returns a channel that is closed when it
// has.
func (s *story) stop(name string) <-chan struct{} {
	gone := make(chan struct{})
	s.late.Go(func() {
		defer close(gone)
		s.replicas[name].Stop()
	})
	return gone
}

// a is asked to stop while one of its requests is under way. What it has begun to run it
// ends, and says what became of it; what it has not is b's, which comes up when a is gone.
// At its claim a has a grace of 5 s or none: within its grace it runs the tick, as followers
// that looked before the tick expect; without one it takes the claim back.
func TestSIGTERMAtEachStep(t *testing.T) {
	ok := []string{"200"}
	byA := outcome{ran: "a 01:00:00", finish: ok, release: ok}
	back := outcome{ran: "b 01:00:00", takeBack: ok, release: ok}
	for step, want := range map[string]map[time.Duration]outcome{
		"a's acquire":               {5 * time.Second: {ran: "b 01:00:00", release: []string{"409 LeaseIdMismatchWithLeaseOperation"}}}, // the orphan runs out
		"the reply to a's acquire":  {5 * time.Second: {ran: "b 01:00:00", release: ok}},
		"a's claim":                 {5 * time.Second: byA, 0: back},
		"the reply to a's claim":    {5 * time.Second: byA, 0: back},
		"a's finish":                {5 * time.Second: byA},
		"the reply to a's finish":   {5 * time.Second: byA},
		"a's release":               {5 * time.Second: byA},
		"the reply to a's release":  {5 * time.Second: byA},
		"a's progress":              {5 * time.Second: byA},
		"the reply to a's progress": {5 * time.Second: byA},
	} {
		for grace, want := range want {
			runCase(t, fmt.Sprintf("%s, grace %s", step, grace), func(s *story) {
				s.play(sim.Part{Name: "a", Work: []sim.Work{hourly(takes(3 * time.Second))}, Grace: grace})
				request := s.hold(step)
				var gone <-chan struct{}
				if strings.HasSuffix(step, "progress") { // it is what a stop makes a say of its run
					s.until("01:00:01")
					gone = s.stop("a")
					request.wait()
				} else {
					request.wait()
					gone = s.stop("a")
				}
				time.Sleep(time.Second)
				request.deliver()
				<-gone
				if s.until("01:00:08"); s.stopped("a").After(s.midnight.Add(time.Hour + 6*time.Second)) {
					s.Errorf("a stopped at %s", s.stopped("a"))
				}
				s.start(hourly(takes(time.Second)), "b")
				s.until("01:00:20")
				s.ran(want.ran)
				s.answers("a's finish", want.finish...)
				s.answers("a's release", want.release...)
				s.answers("a's take back", want.takeBack...)
				s.outcomes("succeeded 01:00:00")
			})
		}
	}
}

// An outcome of a stop is which replica runs the tick, and what the service answers a.
type outcome struct {
	ran                       string
	finish, takeBack, release []string
}

// b holds off for a, whose lease was broken, when it is asked to stop. It goes
// at once and does not release: that b's lease runs out tells c, which has not
// looked on, that a's has run out as well.
func TestSIGTERMInAHoldOff(t *testing.T) {
	runScenario(t, func(s *story) {
		s.start(rerun(takes(time.Minute)), "a")
		s.until("01:00:01")
		s.cut("a")
		s.script.Operate("break now", "job")
		s.start(rerun(takes(10*time.Second)), "b", "c")
		s.hold("c's acquire")
		s.until("01:00:06")
		<-s.stop("b")
		if got := s.stopped("b").Sub(s.midnight); got > time.Hour+6100*time.Millisecond {
			s.Errorf("b stopped at %s", got)
		}
		s.answers("b's release")
		s.until("01:00:16")
		s.ran("a 01:00:00 lost")
		s.until("01:00:40")
		s.ran("a 01:00:00 lost", "c 01:00:00/2")
		s.outcomes("succeeded 01:00:00")
	})
}

// a is asked to stop while a renewal is on its way, which arrives when a has
// released the lease: it brings nothing back.
func TestShutdownWithARenewalInFlight(t *testing.T) {
	runScenario(t, func(s *story) {
		a := s.play(sim.Part{Name: "a", Work: []sim.Work{rerun(takes(time.Minute))}})
		renewal := s.hold("a's renew").wait()
		a.Stop()
		renewal.deliver()
		time.Sleep(time.Second)
		s.ran("a 01:00:00 stopped")
		s.answers("a's release", "200")
		s.answers("a's renew", "409 LeaseIdMismatchWithLeaseOperation")
		s.start(rerun(takes(time.Second)), "b")
		time.Sleep(5 * time.Second)
		s.ran("a 01:00:00 stopped", "b 01:00:00/2")
		s.outcomes("succeeded 01:00:00")
	})
}

// stopped is when a replica had stopped.
func (s *story) stopped(name string) time.Time {
	for _, e := range s.events(trace.Gone, name) {
		return e.Time
	}
	return time.Now()
}
