package sim_test

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/internal/sim"
	"github.com/soloist-go/soloist/internal/sim/draw"
	"github.com/soloist-go/soloist/internal/sim/judge"
	"github.com/soloist-go/soloist/internal/sim/trace"
)

// What is wrong with one job, or with its entry, is no other's trouble.
func TestOneJobsFaultIsNoOthers(t *testing.T) {
	const length = 5 * time.Minute
	program := func(moods ...trace.Behavior) []trace.Definition {
		return []trace.Definition{
			{Every: 10 * time.Second, Job: soloist.Job{Name: "ill", Schedule: "*/10 * * * * *", Lease: 15 * time.Second, Timeout: 30 * time.Second, HeartbeatTimeout: 12 * time.Second},
				Least: time.Second, Most: 3 * time.Second, Behaviors: moods},
			{Every: 10 * time.Second, Job: soloist.Job{Name: "often", Schedule: "*/10 * * * * *", Lease: 15 * time.Second}, Least: time.Second, Most: 3 * time.Second},
			{Every: time.Minute, Job: soloist.Job{Name: "minute", Schedule: "* * * * *", Lease: 20 * time.Second}, Least: time.Second, Most: 25 * time.Second},
			{Every: 2 * time.Minute, Job: soloist.Job{Name: "rerun", Schedule: "@every 2m", Lease: 30 * time.Second, Interrupted: soloist.Rerun}, Least: time.Second, Most: 50 * time.Second},
		}
	}
	run := func(t *testing.T, c sim.Config) *trace.Log {
		c.Length, c.NoFaultPlan = length, true
		l := simulate(t, c)
		return l
	}
	always := func(f trace.Fault) []draw.NetworkFault {
		return []draw.NetworkFault{{To: time.Now().Add(1e6 * time.Hour), Slot: -1, Job: "ill", Fault: f, Share: 1}}
	}
	const s = 40 // in which there is the entry of a newer program
	calm := run(t, sim.Config{Seed: s, NetworkFaults: []draw.NetworkFault{}, Program: program()})
	for _, v := range judge.Judge(calm) {
		t.Error(v)
	}
	faults := map[string]sim.Config{
		"no permission":  {NetworkFaults: always(trace.Denied)},
		"no answer":      {NetworkFaults: always(trace.Drop)},
		"answers lost":   {NetworkFaults: always(trace.DropReply)},
		"throttled":      {NetworkFaults: always(trace.Busy)},
		"delivered late": {NetworkFaults: always(trace.Late)},
		"slow":           {NetworkFaults: always(trace.Slow)},
		"another's entry": {NetworkFaults: []draw.NetworkFault{}, Program: append(program(),
			trace.Definition{Every: 10 * time.Second, Job: soloist.Job{Name: trace.Foreign, Schedule: "*/10 * * * * *", Lease: 15 * time.Second}})},
		"panics":        {NetworkFaults: []draw.NetworkFault{}, Program: program(trace.Panics)},
		"never ends":    {NetworkFaults: []draw.NetworkFault{}, Program: program(trace.Hangs)},
		"tells nothing": {NetworkFaults: []draw.NetworkFault{}, Program: program(trace.Silent)},
		"everywhere, and goes on": {NetworkFaults: []draw.NetworkFault{}, Program: append(program()[1:],
			trace.Definition{Every: 10 * time.Second, Job: soloist.Job{Name: "ill", Schedule: "*/10 * * * * *", EveryReplica: true, Timeout: 5 * time.Second},
				Least: time.Second, Most: 3 * time.Second, Behaviors: []trace.Behavior{trace.Stubborn}})},
		"ends goroutines": {NetworkFaults: []draw.NetworkFault{}, Program: program(trace.Exits)},
	}
	for name, c := range faults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if c.Seed = s; c.Program == nil {
				c.Program = program()
			}
			faulty := run(t, c)
			for _, v := range append(judge.Judge(faulty), isolated(calm, faulty, "ill")...) {
				t.Error(v)
			}
		})
	}
}

// isolated compares two simulations of one seed, of which the second had faults in one job more. All other jobs have the same ticks
// claimed in both, none more than a second later for that, with the same outcomes. The first claim of an entry may wait for its
// token, in one of them alone.
func isolated(calm, faulty *trace.Log, job string) (all []trace.Violation) {
	const firstToken = 1100 * time.Millisecond
	a, b := courses(calm), courses(faulty)
	for other, course := range a {
		if other == job {
			continue
		}
		bad := func(at time.Time, format string, args ...any) {
			all = append(all, trace.Violation{Property: "isolation", Time: at, Text: other + ": " + fmt.Sprintf(format, args...)})
		}
		if got := b[other].outcomes; !maps.Equal(got, course.outcomes) {
			bad(faulty.Events[len(faulty.Events)-1].Time, "the outcomes are %v without the fault, and %v with it", course.outcomes, got)
		}
		for tick, at := range course.claims {
			late, claimed := b[other].claims[tick]
			if !claimed {
				bad(at, "tick %s is claimed only without the fault", trace.TimeOfDay(tick))
			} else if late.Sub(at) > time.Second+firstToken || late.Sub(at) > time.Second && !at.Equal(course.first) {
				bad(late, "tick %s is claimed %s late for the fault", trace.TimeOfDay(tick), late.Sub(at))
			}
		}
	}
	return all
}

// A course is what became of the ticks of a job.
type course struct {
	first    time.Time // claim
	claims   map[time.Time]time.Time
	outcomes map[time.Time]event.Status
}

func courses(l *trace.Log) map[string]*course {
	all := map[string]*course{}
	for _, e := range l.Events {
		if e.What != trace.Request || !e.OK() || e.Record == nil || trace.IsSlot(e.Job) {
			continue
		}
		c := all[e.Job]
		if c == nil {
			c = &course{e.Time, map[time.Time]time.Time{}, map[time.Time]event.Status{}}
			all[e.Job] = c
		}
		if e.Op == "claim" {
			if len(c.claims) == 0 {
				c.first = e.Time
			}
			c.claims[e.Record.Run.Tick.UTC()] = e.Time
		}
		for _, o := range e.Record.History {
			c.outcomes[o.Tick.UTC()] = o.Status
		}
	}
	return all
}
