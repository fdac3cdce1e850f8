package soak_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/internal/sim"
	"github.com/soloist-go/soloist/internal/sim/trace"
)

// A world has three replicas of a program, and the faults that a seed draws.
type world struct {
	*sim.Script
	seed     uint64
	dice     *rand.Rand
	change   time.Time // of the clocks, in their zone
	from, to time.Time // the ticks between them count

	places  [3]*sim.Replica // nil: down
	started int
	program []trace.Definition
	changes []func([]trace.Definition) []trace.Definition // versions to come

	mu    sync.Mutex
	fault map[byte]string // by the first letter of replicas: what their requests meet
}

func newWorld(seed uint64, change time.Time) *world {
	w := &world{Script: sim.NewScript(), seed: seed, dice: rand.New(rand.NewPCG(seed, 1)), change: change,
		from: change.Add(-24 * time.Hour), to: change.Add(20 * time.Hour), fault: map[byte]string{}}
	w.Direct = w.carry
	w.program = []trace.Definition{
		{Name: "report", Schedule: nightly.text, Timeout: 2 * time.Hour, Least: time.Hour, Most: time.Hour},
		{Name: "sync", Schedule: onTheHour.text, Missed: soloist.SkipMissed, StartingDeadline: 10 * time.Minute, HeartbeatTimeout: time.Minute,
			Least: time.Minute, Most: 5 * time.Minute, Behaviors: []trace.Behavior{trace.Fine, trace.Fine, trace.Fine, trace.Silent}},
		{Name: "poll", Schedule: everyFive.text, Missed: soloist.RunAll, MaxTries: 2, Backoff: 4 * time.Second, Least: time.Second, Most: 9 * time.Second,
			Behaviors: []trace.Behavior{trace.Fine, trace.Fine, trace.Fine, trace.Fails, trace.Nothing}},
		{Name: "billing", Schedule: afterMidnight.text, Interrupted: soloist.Rerun, Missed: soloist.RunAll, Least: 20 * time.Minute, Most: time.Hour, Saves: true},
		{Name: slow, Schedule: atNight.text, Lease: time.Minute, Least: 25 * time.Minute, Most: 25 * time.Minute},
		{Name: "seasonal", Schedule: atHalfPast.text, Most: time.Minute},
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

// slow is the job whose runs take longer than its ticks are apart.
const slow = "slow"

// calm is for how long nothing goes wrong before the end of the time that counts. After as much again each tick of it has
// its outcome.
const calm = 2 * time.Hour

// live passes the time. Half of the faults come before the change of the clocks; just after that whoever runs is killed.
func (w *world) live() {
	time.Sleep(time.Until(w.from))
	w.up()
	deck := []func(){w.killRunner, w.killRunner, w.restart, w.freeze, w.step, w.step, w.cut, w.cut,
		func() { w.outage(time.Minute) }, func() { w.outage(10 * time.Minute) }, func() { w.outage(time.Hour) }, w.close}
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
			d.Zone = w.change.Location().String()
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

func (w *world) restart() { w.end(w.one(), (*sim.Replica).Stop) }

// killRunner kills a replica that runs something, and leaves its place empty for a while.
func (w *world) killRunner() {
	i := slices.IndexFunc(w.places[:], func(r *sim.Replica) bool { return len(r.Health().Running) > 0 })
	w.end(max(i, 0), (*sim.Replica).Kill)
	time.Sleep(w.upTo(3 * time.Minute))
}

func (w *world) freeze() { w.places[w.one()].Freeze(w.upTo(10 * time.Minute)) }

func (w *world) step() { w.places[w.one()].Step(w.upTo(6*time.Hour) - 3*time.Hour) }

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

// cut has the service out of reach of one replica, outage of all.
func (w *world) cut() { w.without(string(rune('a'+w.one())), w.upTo(20*time.Minute)) }

func (w *world) outage(d time.Duration) { w.without("abc", d/2+w.upTo(d)) }

func (w *world) without(letters string, d time.Duration) {
	how := []string{"busy", "lost", "mute"}[w.dice.IntN(3)]
	for _, now := range []string{how, ""} {
		w.mu.Lock()
		for i := range len(letters) {
			w.fault[letters[i]] = now
		}
		w.mu.Unlock()
		if now != "" {
			time.Sleep(d)
		}
	}
}

// carry answers a request, or not: under mute the service does what is asked, and its answer is lost.
func (w *world) carry(ctx context.Context, p *sim.RPC) (*http.Response, error) {
	w.mu.Lock()
	fault := w.fault[p.Replica()[0]]
	w.mu.Unlock()
	switch fault {
	case "":
		return p.Go(ctx)
	case "busy":
		return p.Refuse(ctx, http.StatusServiceUnavailable, "ServerBusy")
	case "mute":
		if _, err := p.There(ctx); err != nil {
			return nil, err
		}
	}
	<-ctx.Done()
	return nil, ctx.Err()
}
