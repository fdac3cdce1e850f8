package sim_test

import (
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/internal/sim"
)

// What is wrong with one job, or with its entry, is no other's trouble.
func TestOneJobsFaultIsNoOthers(t *testing.T) {
	const length = 5 * time.Minute
	program := func(moods ...sim.Mood) []sim.Definition {
		return []sim.Definition{
			{Name: "ill", Every: 10 * time.Second, Schedule: "*/10 * * * * *", Lease: 15 * time.Second, Timeout: 30 * time.Second, HeartbeatTimeout: 12 * time.Second,
				Least: time.Second, Most: 3 * time.Second, Moods: moods},
			{Name: "often", Every: 10 * time.Second, Schedule: "*/10 * * * * *", Lease: 15 * time.Second, Least: time.Second, Most: 3 * time.Second},
			{Name: "minute", Every: time.Minute, Schedule: "* * * * *", Lease: 20 * time.Second, Least: time.Second, Most: 25 * time.Second},
			{Name: "rerun", Every: 2 * time.Minute, Schedule: "@every 2m", Lease: 30 * time.Second, Interrupted: soloist.Rerun, Least: time.Second, Most: 50 * time.Second},
		}
	}
	run := func(t *testing.T, c sim.Config) *sim.Log {
		c.Length, c.NoDeeds = length, true
		l, _ := simulate(t, c)
		return l
	}
	always := func(f sim.Fault) []sim.Spell {
		return []sim.Spell{{To: time.Now().Add(1e6 * time.Hour), Slot: -1, Job: "ill", Fault: f, Share: 1}}
	}
	const s = 40 // in which there is the entry of a newer program
	calm := run(t, sim.Config{Seed: s, Spells: []sim.Spell{}, Program: program()})
	for _, v := range sim.Check(calm) {
		t.Error(v)
	}
	faults := map[string]sim.Config{
		"no permission":  {Spells: always(sim.Denied)},
		"no answer":      {Spells: always(sim.Drop)},
		"answers lost":   {Spells: always(sim.DropReply)},
		"throttled":      {Spells: always(sim.Busy)},
		"delivered late": {Spells: always(sim.Late)},
		"slow":           {Spells: always(sim.Slow)},
		"another's entry": {Spells: []sim.Spell{}, Program: append(program(),
			sim.Definition{Name: sim.Foreign, Every: 10 * time.Second, Schedule: "*/10 * * * * *", Lease: 15 * time.Second})},
		"panics":        {Spells: []sim.Spell{}, Program: program(sim.Panics)},
		"never ends":    {Spells: []sim.Spell{}, Program: program(sim.Hangs)},
		"tells nothing": {Spells: []sim.Spell{}, Program: program(sim.Silent)},
		"everywhere, and goes on": {Spells: []sim.Spell{}, Program: append(program()[1:],
			sim.Definition{Name: "ill", Every: 10 * time.Second, Schedule: "*/10 * * * * *", EveryReplica: true, Timeout: 5 * time.Second,
				Least: time.Second, Most: 3 * time.Second, Moods: []sim.Mood{sim.Stubborn}})},
		"ends goroutines": {Spells: []sim.Spell{}, Program: program(sim.Exits)},
	}
	for name, c := range faults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if c.Seed = s; c.Program == nil {
				c.Program = program()
			}
			faulty := run(t, c)
			for _, v := range append(sim.Check(faulty), sim.Isolated(calm, faulty, "ill")...) {
				t.Error(v)
			}
		})
	}
}
