package sim_test

import (
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/internal/sim"
	"github.com/soloist-go/soloist/internal/sim/check"
	"github.com/soloist-go/soloist/internal/sim/trace"
)

// What is wrong with one job, or with its entry, is no other's trouble.
func TestOneJobsFaultIsNoOthers(t *testing.T) {
	const length = 5 * time.Minute
	program := func(moods ...trace.Behavior) []trace.Definition {
		return []trace.Definition{
			{Name: "ill", Every: 10 * time.Second, Schedule: "*/10 * * * * *", Lease: 15 * time.Second, Timeout: 30 * time.Second, HeartbeatTimeout: 12 * time.Second,
				Least: time.Second, Most: 3 * time.Second, Behaviors: moods},
			{Name: "often", Every: 10 * time.Second, Schedule: "*/10 * * * * *", Lease: 15 * time.Second, Least: time.Second, Most: 3 * time.Second},
			{Name: "minute", Every: time.Minute, Schedule: "* * * * *", Lease: 20 * time.Second, Least: time.Second, Most: 25 * time.Second},
			{Name: "rerun", Every: 2 * time.Minute, Schedule: "@every 2m", Lease: 30 * time.Second, Interrupted: soloist.Rerun, Least: time.Second, Most: 50 * time.Second},
		}
	}
	run := func(t *testing.T, c sim.Config) *trace.Log {
		c.Length, c.NoFaultPlan = length, true
		l, _ := simulate(t, c)
		return l
	}
	always := func(f trace.Fault) []sim.NetworkFault {
		return []sim.NetworkFault{{To: time.Now().Add(1e6 * time.Hour), Slot: -1, Job: "ill", Fault: f, Share: 1}}
	}
	const s = 40 // in which there is the entry of a newer program
	calm := run(t, sim.Config{Seed: s, NetworkFaults: []sim.NetworkFault{}, Program: program()})
	for _, v := range check.Judge(calm) {
		t.Error(v)
	}
	faults := map[string]sim.Config{
		"no permission":  {NetworkFaults: always(trace.Denied)},
		"no answer":      {NetworkFaults: always(trace.Drop)},
		"answers lost":   {NetworkFaults: always(trace.DropReply)},
		"throttled":      {NetworkFaults: always(trace.Busy)},
		"delivered late": {NetworkFaults: always(trace.Late)},
		"slow":           {NetworkFaults: always(trace.Slow)},
		"another's entry": {NetworkFaults: []sim.NetworkFault{}, Program: append(program(),
			trace.Definition{Name: trace.Foreign, Every: 10 * time.Second, Schedule: "*/10 * * * * *", Lease: 15 * time.Second})},
		"panics":        {NetworkFaults: []sim.NetworkFault{}, Program: program(trace.Panics)},
		"never ends":    {NetworkFaults: []sim.NetworkFault{}, Program: program(trace.Hangs)},
		"tells nothing": {NetworkFaults: []sim.NetworkFault{}, Program: program(trace.Silent)},
		"everywhere, and goes on": {NetworkFaults: []sim.NetworkFault{}, Program: append(program()[1:],
			trace.Definition{Name: "ill", Every: 10 * time.Second, Schedule: "*/10 * * * * *", EveryReplica: true, Timeout: 5 * time.Second,
				Least: time.Second, Most: 3 * time.Second, Behaviors: []trace.Behavior{trace.Stubborn}})},
		"ends goroutines": {NetworkFaults: []sim.NetworkFault{}, Program: program(trace.Exits)},
	}
	for name, c := range faults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if c.Seed = s; c.Program == nil {
				c.Program = program()
			}
			faulty := run(t, c)
			for _, v := range append(check.Judge(faulty), check.Isolated(calm, faulty, "ill")...) {
				t.Error(v)
			}
		})
	}
}
