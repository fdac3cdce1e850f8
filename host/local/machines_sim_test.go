package local_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/store"
)

// A fleet is some machines that share a directory, with one entry in it. Their
// clocks have nothing to do with each other.
type fleet struct {
	t     *testing.T
	r     *rand.Rand
	dir   local.Dir
	etag  string
	now   time.Duration // true time
	all   []*member
	ids   int
	deeds []deed
}

// A member is one machine of a fleet.
type member struct {
	*machine
	name string
	rate float64             // of its clocks: off by one in a hundred at most
	see  local.Machine       // what its processes see
	ids  map[string]struct{} // of leases that its processes take for theirs
}

// newFleet draws two or three machines: one has been up for days and another for
// seconds, one shows the right time and another none of this year.
func newFleet(t *testing.T, seed uint64) *fleet {
	f := &fleet{t: t, r: rand.New(rand.NewPCG(seed, 0)), dir: local.Dir{Path: t.TempDir()}}
	for i := range 2 + f.r.IntN(2) {
		m := &machine{wall: newMachine().wall.Add(one(f.r, 0, f.upTo(2*time.Second), time.Hour, -time.Hour, -400*24*time.Hour)),
			boot: one(f.r, f.upTo(5*time.Second), f.upTo(time.Hour), f.upTo(50*24*time.Hour)), start: fmt.Sprintf("m%d", i)}
		f.all = append(f.all, &member{machine: m, name: m.start, rate: 0.99 + 0.02*f.r.Float64(), see: m.tell, ids: map[string]struct{}{}})
	}
	f.etag = create(t, f.on(f.all[0]), "app/job").ETag
	return f
}

func one[T any](r *rand.Rand, values ...T) T { return values[r.IntN(len(values))] }

func (f *fleet) upTo(d time.Duration) time.Duration { return time.Duration(f.r.Int64N(int64(d))) }

func (f *fleet) on(m *member) local.Dir { return f.dir.On(m.see) }

// live has the fleet do so many things, with time between them.
func (f *fleet) live(n int) {
	for range n {
		d := one(f.r, 0, f.upTo(time.Second), f.upTo(5*time.Second), f.upTo(5*time.Second), f.upTo(25*time.Second))
		f.now += d
		for _, m := range f.all {
			m.pass(time.Duration(float64(d) * m.rate))
		}
		f.act(one(f.r, f.all...))
	}
}

// act has one machine do something: a process that holds the lease goes on with
// it, ends it or dies; any other wants it, looks, or befalls.
func (f *fleet) act(m *member) {
	for _, id := range slices.Sorted(maps.Keys(m.ids)) {
		f.hold(m, id)
	}
	switch f.r.IntN(20) {
	case 0:
		f.add(deed{op: "restart"}, m)
		clear(m.ids)
		m.restart()
	case 1:
		m.step(one(f.r, time.Hour, -time.Hour, f.upTo(30*time.Second)))
	case 2:
		f.add(deed{op: "break", done: f.did(f.end(m))}, m)
	case 3, 4, 5, 6, 7, 8, 9:
		e, err := f.on(m).Read(f.t.Context(), "app/job")
		f.did(err)
		f.add(deed{op: "look", state: e.State}, m)
	default:
		f.acquire(m)
	}
}

// end breaks the lease, whatever was written or only if nothing was.
func (f *fleet) end(m *member) error {
	if f.r.IntN(4) == 0 {
		return f.on(m).BreakUnchanged(f.t.Context(), "app/job", f.etag)
	}
	return f.on(m).Break(f.t.Context(), "app/job", one(f.r, -1, 0, 2*time.Second))
}

func (f *fleet) acquire(m *member) {
	f.ids++
	id, length := fmt.Sprintf("00000000-0000-4000-8000-%012d", f.ids), one(f.r, 5*time.Second, 15*time.Second, time.Minute)
	_, err := f.on(m).Lease("app/job", id).Acquire(f.t.Context(), length, f.etag)
	done := f.did(err)
	f.add(deed{op: "acquire", id: id, length: length, done: done}, m)
	if done {
		m.ids[id] = struct{}{}
	}
}

// hold is what a process does that has acquired the lease, and may have lost it.
func (f *fleet) hold(m *member, id string) {
	l := f.on(m).Lease("app/job", id)
	var err error
	op := one(f.r, "renew", "renew", "renew", "renew", "write", "write", "release", "die", "")
	switch op {
	case "":
		return
	case "renew":
		_, err = l.Renew(f.t.Context())
	case "write":
		var s store.Revision
		if s, err = l.Write(f.t.Context(), f.etag, []byte("x")); err == nil {
			f.etag = s.ETag
		}
	case "release":
		err = l.Release(f.t.Context())
	}
	done := f.did(err)
	if f.add(deed{op: op, id: id, done: done}, m); !done || op == "release" || op == "die" {
		delete(m.ids, id)
	}
}

// did reports whether the store did what it was asked for.
func (f *fleet) did(err error) bool {
	if err != nil && !errors.Is(err, soloist.ErrHeld) && !errors.Is(err, soloist.ErrLost) {
		f.t.Error(err)
	}
	return err == nil
}

func (f *fleet) add(d deed, m *member) {
	d.at, d.machine, d.start, d.boot = f.now, m.name, m.start, m.boot
	f.deeds = append(f.deeds, d)
}

// Machines that share a directory never hold a lease at the same time, whatever
// their clocks show; no holder loses a live one, and a dead one's becomes free.
func TestMachinesShareADirectory(t *testing.T) {
	var deeds, taken, sharing int
	seeds := uint64(20)
	if testing.Short() {
		seeds = 5
	}
	for seed := range seeds {
		f := newFleet(t, seed)
		f.live(120)
		for _, why := range judgeMachines(f.deeds) {
			t.Errorf("seed %d: %s", seed, why)
		}
		last := ""
		for _, d := range f.deeds {
			if deeds++; d.op == "acquire" && d.done {
				if taken++; last != "" && last != d.machine {
					sharing++
				}
				last = d.machine
			}
		}
	}
	t.Logf("%d deeds, %d acquisitions, %d of them after one on another machine", deeds, taken, sharing)
	if sharing < 5*int(seeds)/2 {
		t.Errorf("the lease went from machine to machine %d times: too few to mean anything", sharing)
	}
}

// The judge finds what goes wrong where machines are taken for one: by a program
// that compares the times since two starts, or two wall clocks.
func TestJudgeFindsMachinesTakenForOne(t *testing.T) {
	for name, mistake := range map[string]func(m *machine) local.Machine{
		"one start": func(m *machine) local.Machine {
			return func() (time.Time, time.Duration, string) { return m.wall, m.boot, "one" }
		},
		"wall clocks": func(m *machine) local.Machine {
			return func() (time.Time, time.Duration, string) { return m.wall, 0, "" }
		},
	} {
		var bad []string
		for seed := range uint64(5) {
			f := newFleet(t, seed)
			for _, m := range f.all {
				m.see = mistake(m.machine)
			}
			f.live(100)
			bad = append(bad, judgeMachines(f.deeds)...)
		}
		if !slices.ContainsFunc(bad, func(why string) bool { return strings.Contains(why, "it takes the live lease of") }) {
			t.Errorf("%s: it says %q", name, bad)
		}
	}
}

// Each rule of the judge is broken by deeds that are made up; deeds that keep
// all rules break none.
func TestJudgeOfMachinesFindsWhatIsPlanted(t *testing.T) {
	const s = time.Second
	a := func(at time.Duration, op, id string, done bool) deed {
		return deed{at: at, machine: "a", start: "a", boot: time.Hour + at, op: op, id: id, length: 20 * s, done: done}
	}
	b := func(at time.Duration, op, id string, done bool) deed {
		return deed{at: at, machine: "b", start: "b", boot: 5*s + at, op: op, id: id, length: 20 * s, done: done}
	}
	look := func(d deed, state store.LeaseState) deed { d.state = state; return d }
	for want, all := range map[string][][]deed{
		"": {
			{a(0, "acquire", "1", true), b(1*s, "acquire", "2", false), a(10*s, "renew", "1", true), a(25*s, "write", "1", true)},
			{a(0, "acquire", "1", true), look(b(1*s, "look", "", true), store.Leased), b(21*s, "acquire", "2", true), a(22*s, "renew", "1", false)},
			{a(0, "acquire", "1", true), a(2*s, "release", "1", true), b(3*s, "acquire", "2", true)},
			{a(0, "acquire", "1", true), b(2*s, "break", "", true), b(3*s, "acquire", "2", true)},
			{a(0, "acquire", "1", true), a(2*s, "restart", "", false), b(3*s, "acquire", "2", false)},
		},
		"it takes the live lease of 1 on a": {{a(0, "acquire", "1", true), b(1*s, "acquire", "2", true)}},
		"it is refused a free lease": {
			{a(0, "acquire", "1", true), a(20*s, "acquire", "2", false)},
			{a(0, "acquire", "1", true), look(b(1*s, "look", "", true), store.Leased), b(21*s, "acquire", "2", false)},
			{a(0, "acquire", "1", true), a(1*s, "release", "1", true), b(21*s, "acquire", "2", false)},
		},
		"it sees the live lease of 1 as expired": {{a(0, "acquire", "1", true), look(b(1*s, "look", "", true), store.Expired)}},
		"it sees a free lease as leased":         {{a(0, "acquire", "1", true), look(a(20*s, "look", "", true), store.Leased)}},
		"it is not the holder":                   {{a(0, "acquire", "1", true), a(1*s, "release", "1", true), a(2*s, "write", "1", true)}},
		"its lease has ended":                    {{a(0, "acquire", "1", true), a(20*s, "write", "1", true)}},
		"the holder is refused":                  {{a(0, "acquire", "1", true), b(1*s, "look", "", true), a(15*s, "renew", "1", false)}},
	} {
		for n, deeds := range all {
			got := judgeMachines(deeds)
			if want == "" && len(got) > 0 || want != "" && !slices.ContainsFunc(got, func(why string) bool { return strings.HasSuffix(why, want) }) {
				t.Errorf("%q %d: it says %q", want, n, got)
			}
		}
	}
}
