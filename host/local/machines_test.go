package local_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/store"
)

// A fleet is some machines that share a directory, with one entry in it. Their
// clocks have nothing to do with each other.
type fleet struct {
	t       *testing.T
	r       *rand.Rand
	dir     local.Dir
	etag    string
	now     time.Duration // true time
	all     []*member
	ids     int
	holder  holder
	sharing int // how often the lease went from one machine to another
	seed    uint64
}

// A holder is what the lease is like, by what was done alone: no file is read for it.
type holder struct {
	id     string
	by     *member
	length time.Duration
	at     time.Duration // of the acquisition or the last renewal, by true time
	over   bool          // nothing is promised: its process has died, or the lease was broken
}

// trusts reports whether the holder may act on its lease: it allows for two
// clocks that are off by one in a hundred each.
func (f *fleet) trusts() bool {
	h := f.holder
	return h.id != "" && !h.over && f.now < h.at+h.length*98/100
}

// contradicts tells what contradicts that a lease has one holder, who keeps it.
func (f *fleet) contradicts(m *member, format string, args ...any) {
	f.t.Errorf("seed %d, %s on %s: %s", f.seed, f.now, m.name, fmt.Sprintf(format, args...))
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
	f := &fleet{t: t, r: rand.New(rand.NewPCG(seed, 0)), dir: local.Dir{Path: t.TempDir()}, seed: seed}
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
		clear(m.ids)
		if f.holder.by == m {
			f.holder.over = true
		}
		m.restart()
	case 1:
		m.step(one(f.r, time.Hour, -time.Hour, f.upTo(30*time.Second)))
	case 2:
		if f.did(f.end(m)) {
			f.holder.over = true
		}
	case 3, 4, 5, 6, 7, 8, 9:
		e, err := f.on(m).Read(f.t.Context(), "app/job")
		if f.did(err) && e.State != store.Leased && f.trusts() {
			f.contradicts(m, "it sees the live lease of %s as %s", f.holder.id, e.State)
		}
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
	if !f.did(err) {
		return
	}
	if f.trusts() {
		f.contradicts(m, "it takes the live lease of %s on %s", f.holder.id, f.holder.by.name)
	}
	if f.holder.by != nil && f.holder.by != m {
		f.sharing++
	}
	m.ids[id] = struct{}{}
	f.holder = holder{id: id, by: m, length: length, at: f.now}
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
	done, own := f.did(err), id == f.holder.id
	switch {
	case op == "die" || op == "release":
		delete(m.ids, id)
		f.holder.over = f.holder.over || own
	case done && !own:
		f.contradicts(m, "%s is not the holder and does %s", id, op)
	case !done && own && f.trusts():
		f.contradicts(m, "%s is the holder and is refused to %s", id, op)
	case !done:
		delete(m.ids, id)
	case op == "renew":
		f.holder.at = f.now
	}
}

// did reports whether the store did what it was asked for.
func (f *fleet) did(err error) bool {
	if err != nil && !errors.Is(err, soloist.ErrHeld) && !errors.Is(err, soloist.ErrLost) {
		f.t.Error(err)
	}
	return err == nil
}

// Machines that share a directory never hold a lease at the same time, whatever
// their clocks show, and no holder loses a live one.
func TestMachinesShareADirectory(t *testing.T) {
	sharing, seeds := 0, uint64(20)
	if testing.Short() {
		seeds = 5
	}
	for seed := range seeds {
		f := newFleet(t, seed)
		f.live(120)
		sharing += f.sharing
	}
	if sharing < 5*int(seeds)/2 {
		t.Errorf("the lease went from machine to machine %d times: too few to mean anything", sharing)
	}
}

// Many machines that look at the lease of a dead one in turn find it free after
// its length.
func TestManyMachinesFreeLeaseOfDeadOne(t *testing.T) {
	base := local.Dir{Path: t.TempDir()}
	dead := &machine{wall: newMachine().wall, boot: time.Hour, start: "dead"}
	held(t, base.On(dead.tell), 10*time.Second)
	var all []*machine
	for i := range 64 {
		all = append(all, &machine{wall: dead.wall, boot: time.Duration(i+1) * time.Hour, start: fmt.Sprintf("m%d", i)})
	}
	live := true
	for range 12 {
		for _, m := range all {
			m.pass(time.Second)
			r, err := base.On(m.tell).Read(t.Context(), "app/job")
			if err != nil {
				t.Fatal(err)
			}
			live = r.State.Live()
		}
	}
	if live {
		t.Error("the lease of 10 s is not free after 12 s")
	}
}
