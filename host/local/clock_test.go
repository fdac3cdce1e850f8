package local_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/store"
)

// machine is one with clocks that the test moves.
type machine struct {
	wall  time.Time
	boot  time.Duration
	start string
}

func newMachine() *machine {
	return &machine{wall: time.Date(2026, 11, 21, 2, 30, 0, 123456789, time.UTC), boot: 90 * time.Minute, start: "first"}
}

func (m *machine) tell() (time.Time, time.Duration, string) { return m.wall, m.boot, m.start }

// pass lets time pass, on all clocks.
func (m *machine) pass(d time.Duration) {
	m.wall = m.wall.Add(d)
	m.boot += d
}

// step sets the wall clock.
func (m *machine) step(d time.Duration) { m.wall = m.wall.Add(d) }

// restart takes some seconds.
func (m *machine) restart() {
	m.wall = m.wall.Add(4 * time.Second)
	m.boot, m.start = 3*time.Second, m.start+" again"
}

// wantEnd lets the time pass that a lease has left, and checks that it is live until
// a nanosecond before.
func (m *machine) wantEnd(t *testing.T, what string, d local.Dir, left time.Duration, live, over store.LeaseState) {
	t.Helper()
	m.pass(left - 1)
	wantState(t, "a nanosecond before the end of "+what, d, live)
	m.pass(1)
	wantState(t, "at the end of "+what, d, over)
}

func TestDirWallClockStepped(t *testing.T) {
	for _, step := range []time.Duration{time.Hour, -time.Hour} {
		for _, broken := range []bool{false, true} {
			t.Run(fmt.Sprintf("%v, broken %t", step, broken), func(t *testing.T) {
				m := newMachine()
				d := local.Dir{Path: t.TempDir()}.On(m.tell)
				l, _ := held(t, d, 10*time.Second)
				live, over := store.Leased, store.Expired
				if broken {
					live, over = store.Breaking, store.Broken
					if err := d.Break(t.Context(), "app/job", -1); err != nil {
						t.Fatal(err)
					}
				}
				m.step(step)
				m.pass(5 * time.Second)
				e, err := d.Read(t.Context(), "app/job")
				if err != nil || e.State != live || !e.Date.Equal(m.wall) {
					t.Errorf("midway: got %q at %v, %v, want %q at %v", e.State, e.Date, err, live, m.wall)
				}
				if _, err := l.Write(t.Context(), e.ETag, []byte("x")); err != nil { // saves the file anew
					t.Errorf("write: %v", err)
				}
				m.step(step)
				m.wantEnd(t, "the lease", d, 5*time.Second, live, over)
				m.step(-24 * time.Hour)
				wantState(t, "put back after the end", d, over)
			})
		}
	}
}

// The holder died with the machine. Another machine may share the directory,
// and nothing tells the two cases apart: the lease lasts its length again.
func TestDirMachineRestarted(t *testing.T) {
	m := newMachine()
	d := local.Dir{Path: t.TempDir()}.On(m.tell)
	_, etag := held(t, d, 20*time.Second)
	m.restart()
	wantState(t, "after the restart", d, store.Leased)
	m.restart() // again, before it was over
	wantState(t, "after another restart", d, store.Leased)
	m.wantEnd(t, "its length once more", d, 20*time.Second, store.Leased, store.Expired)
	acquire(t, d.Lease("app/job", id2), time.Minute, etag)
	if _, err := d.Lease("app/job", id2).Write(t.Context(), etag, []byte("x")); err != nil {
		t.Errorf("write: %v", err)
	}
	m.pass(time.Minute - 1)
	wantState(t, "the new lease, a nanosecond before its end", d, store.Leased)
}

// An operator or a replica on one machine breaks the lease of another.
func TestDirBrokenElsewhere(t *testing.T) {
	for call, end := range map[string]func(d local.Dir, etag string) error{
		"Break":          func(d local.Dir, _ string) error { return d.Break(t.Context(), "app/job", 0) },
		"BreakUnchanged": func(d local.Dir, etag string) error { return d.BreakUnchanged(t.Context(), "app/job", etag) },
	} {
		t.Run(call, func(t *testing.T) {
			m, other := newMachine(), newMachine()
			other.boot, other.start = 500*time.Hour, "other"
			d := local.Dir{Path: t.TempDir()}
			here, there := d.On(m.tell), d.On(other.tell)
			l, etag := held(t, here, 20*time.Second)
			wantState(t, "there, where the clock is ahead", there, store.Leased)
			if err := end(there, etag); err != nil {
				t.Fatal(err)
			}
			wantState(t, "here", here, store.Broken)
			wantState(t, "there", there, store.Broken)
			wantError(t, "write", errOf(l.Write(t.Context(), etag, []byte("x"))), store.ErrLost)
			acquire(t, there.Lease("app/job", id2), 20*time.Second, etag)
			wantError(t, "renew", errOf(l.Renew(t.Context())), store.ErrLost)
		})
	}
}

// A process that cannot tell when the machine started, and one that can, honour
// the leases and the breaks of each other.
func TestDirMixed(t *testing.T) {
	m := newMachine()
	blind := func() (time.Time, time.Duration, string) { return m.wall, 0, "" }
	for name, by := range map[string][2]local.Machine{"blind looks": {m.tell, blind}, "blind holds": {blind, m.tell}} {
		t.Run(name, func(t *testing.T) {
			d := local.Dir{Path: t.TempDir()}
			holder, looker := d.On(by[0]), d.On(by[1])
			l, _ := held(t, holder, 10*time.Second)
			m.wantEnd(t, "the lease", looker, 10*time.Second, store.Leased, store.Expired)
			if _, err := l.Renew(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := looker.Break(t.Context(), "app/job", 2*time.Second); err != nil {
				t.Fatal(err)
			}
			m.wantEnd(t, "a break", holder, 2*time.Second, store.Breaking, store.Broken)
		})
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
