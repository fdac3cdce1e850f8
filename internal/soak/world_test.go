package soak_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/internal/sim"
	"github.com/soloist-go/soloist/internal/sim/trace"
)

// A world has three replicas of a program, and the faults that a seed draws.
type world struct {
	*sim.Script
	dice     *rand.Rand
	change   time.Time // of the clocks, in their zone
	from, to time.Time // the ticks between them count

	places  [3]*sim.Replica // nil: down
	started int
	program []trace.Definition
	changes []func([]trace.Definition) []trace.Definition // versions to come

	down atomic.Bool // the service refuses all
}

func newWorld(seed uint64, change time.Time) *world {
	w := &world{Script: sim.NewScript(), dice: rand.New(rand.NewPCG(seed, 1)), change: change,
		from: change.Add(-24 * time.Hour), to: change.Add(20 * time.Hour)}
	w.Direct = func(ctx context.Context, p *sim.RPC) (*http.Response, error) {
		if w.down.Load() {
			return p.Refuse(ctx, http.StatusServiceUnavailable, "ServerBusy")
		}
		return p.Go(ctx)
	}
	w.program = []trace.Definition{
		{Job: soloist.Job{Name: "report", Schedule: nightly.text, Timeout: 2 * time.Hour}, Least: time.Hour, Most: time.Hour},
		{Job: soloist.Job{Name: "sync", Schedule: onTheHour.text, Late: soloist.Late{Missed: soloist.SkipMissed, Start: 10 * time.Minute}, HeartbeatTimeout: time.Minute},
			Least: time.Minute, Most: 5 * time.Minute, Behaviors: []trace.Behavior{trace.Fine, trace.Fine, trace.Fine, trace.Silent}},
		{Job: soloist.Job{Name: "poll", Schedule: everyFive.text, Late: soloist.Late{Missed: soloist.RunAll}, Retry: soloist.Retry{MaxTries: 2, Backoff: 4 * time.Second}}, Least: time.Second, Most: 9 * time.Second,
			Behaviors: []trace.Behavior{trace.Fine, trace.Fine, trace.Fine, trace.Fails, trace.Nothing}},
		{Job: soloist.Job{Name: "billing", Schedule: afterMidnight.text, Interrupted: soloist.Rerun, Late: soloist.Late{Missed: soloist.RunAll}}, Least: 20 * time.Minute, Most: time.Hour, Saves: true},
		{Job: soloist.Job{Name: "slow", Schedule: atNight.text, Lease: time.Minute}, Least: 25 * time.Minute, Most: 25 * time.Minute},
		{Job: soloist.Job{Name: "seasonal", Schedule: atHalfPast.text}, Most: time.Minute},
	}
	seasonal := w.program[5]
	w.changes = []func([]trace.Definition) []trace.Definition{
		edit("poll", func(d *trace.Definition) { d.Paused = true }),
		edit("poll", func(d *trace.Definition) { d.Paused = false }),
		edit("sync", func(d *trace.Definition) { d.Schedule = onTheHour.text }), // the same version, unless [world.close] came before
		func(all []trace.Definition) []trace.Definition { return all[:len(all)-1] },
		func(all []trace.Definition) []trace.Definition { return append(all, seasonal) },
	}
	return w
}

func edit(job string, f func(*trace.Definition)) func([]trace.Definition) []trace.Definition {
	return func(all []trace.Definition) []trace.Definition {
		f(&all[slices.IndexFunc(all, func(d trace.Definition) bool { return d.Name == job })])
		return all
	}
}

// calm is for how long nothing goes wrong before the end of the time that counts. After as much again each tick of it has
// its outcome.
const calm = 2 * time.Hour

// live passes the time. Half of the faults come before the change of the clocks; just after that whoever runs is killed.
func (w *world) live() {
	time.Sleep(time.Until(w.from))
	w.up()
	restart := func() { w.end(w.one(), (*sim.Replica).Stop) }
	freeze := func() { w.places[w.one()].Freeze(w.upTo(10 * time.Minute)) }
	step := func() { w.places[w.one()].Step(w.upTo(6*time.Hour) - 3*time.Hour) }
	deck := []func(){w.killRunner, w.killRunner, restart, freeze, step, step, w.close}
	for _, d := range []time.Duration{time.Minute, 10 * time.Minute, time.Hour} {
		deck = append(deck, func() { w.outage(d) })
	}
	for range w.changes {
		deck = append(deck, w.deploy)
	}
	w.dice.Shuffle(len(deck), func(i, j int) { deck[i], deck[j] = deck[j], deck[i] })
	half := len(deck) / 2
	w.play(deck[:half], w.change)
	time.Sleep(time.Until(w.change.Add(5 * time.Minute)))
	w.killRunner()
	w.up()
	w.play(deck[half:], w.to.Add(-calm))
	time.Sleep(time.Until(w.to.Add(calm)))
}

func (w *world) play(deck []func(), until time.Time) {
	for i, fault := range deck {
		time.Sleep(w.upTo(time.Until(until) / time.Duration(len(deck)-i)))
		fault()
		w.up()
	}
}

// upTo draws a time.
func (w *world) upTo(d time.Duration) time.Duration {
	return time.Duration(w.dice.Int64N(max(1, int64(d))))
}

func (w *world) one() int { return w.dice.IntN(len(w.places)) }

// up starts a replica with the program of now in each place where there is none.
func (w *world) up() {
	for i, r := range w.places {
		if r != nil {
			continue
		}
		w.started++
		skew := w.upTo(4*time.Second) - 2*time.Second
		if w.dice.IntN(5) == 0 {
			skew *= 3600
		}
		p := sim.Part{Name: fmt.Sprintf("%c%d", 'a'+i, w.started), Skew: skew, Drift: w.dice.Int64N(400) - 200, Grace: 25 * time.Second}
		for _, d := range w.program {
			d.TimeZone = w.change.Location().String()
			p.Work = append(p.Work, sim.Work{Definition: d})
		}
		w.places[i] = w.Start(p)
	}
}

// end ends the replica in a place, and waits.
func (w *world) end(i int, how func(*sim.Replica)) {
	how(w.places[i])
	w.places[i] = nil
}

// killRunner kills a replica that runs something, and leaves its place empty for a while.
func (w *world) killRunner() {
	i := slices.IndexFunc(w.places[:], func(r *sim.Replica) bool { return len(r.Health().Running) > 0 })
	w.end(max(i, 0), (*sim.Replica).Kill)
	time.Sleep(w.upTo(3 * time.Minute))
}

// deploy restarts one replica after the other with the next version.
func (w *world) deploy() {
	w.program, w.changes = w.changes[0](slices.Clone(w.program)), w.changes[1:]
	for i := range w.places {
		w.end(i, (*sim.Replica).Stop)
		time.Sleep(5 * time.Second)
		w.up()
	}
}

// close stops all replicas for some hours. Those that come back have another schedule.
func (w *world) close() {
	for i := range w.places {
		w.end(i, (*sim.Replica).Stop)
	}
	w.program = edit("sync", func(d *trace.Definition) { d.Schedule = atHalfPast.text })(slices.Clone(w.program))
	time.Sleep(4 * time.Hour)
}

// outage has the service refuse all requests.
func (w *world) outage(d time.Duration) {
	w.down.Store(true)
	time.Sleep(d/2 + w.upTo(d))
	w.down.Store(false)
}
