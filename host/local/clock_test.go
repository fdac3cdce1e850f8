package local_test

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
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

func TestDirRenewedAfterStep(t *testing.T) {
	for _, step := range []time.Duration{time.Hour, -time.Hour} {
		m := newMachine()
		d := local.Dir{Path: t.TempDir()}.On(m.tell)
		l, _ := held(t, d, 10*time.Second)
		m.pass(9 * time.Second)
		m.step(step)
		if _, err := l.Renew(t.Context()); err != nil {
			t.Errorf("%v: %v", step, err)
		}
		m.wantEnd(t, "the lease, after a step of "+step.String(), d, 10*time.Second, store.Leased, store.Expired)
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
			other.boot, other.start = 5*time.Second, "other"
			d := local.Dir{Path: t.TempDir()}
			here, there := d.On(m.tell), d.On(other.tell)
			l, etag := held(t, here, 20*time.Second)
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

// oldFile is a state file as the version before this one knows it.
type oldFile struct {
	Schema int    `json:"schema"`
	Entry  string `json:"entry"`
	ETag   string `json:"etag"`
	Record string `json:"record"`
	Lease  struct {
		ID     string        `json:"id,omitempty"`
		Length time.Duration `json:"length_ns,omitempty"`
		Until  time.Time     `json:"until,omitzero"`
		Broken bool          `json:"broken,omitempty"`
	} `json:"lease,omitzero"`
}

// A lease that the version before took is honoured by the wall clock. What this one writes has the form that it knows,
// unless something would get lost.
func TestDirVersionBefore(t *testing.T) {
	m := newMachine()
	d := local.Dir{Path: t.TempDir()}.On(m.tell)
	create(t, d, "app/job")
	var old oldFile
	wantRead := func(what string, schema int, until time.Time) {
		t.Helper()
		text, err := os.ReadFile(current(t, d))
		if err == nil {
			err = json.Unmarshal(text, &old)
		}
		if err != nil {
			t.Fatal(err)
		}
		if old.Schema != schema || !old.Lease.Until.Equal(until) {
			t.Errorf("%s: the version before reads %+v, want schema %d and a lease until %v", what, old, schema, until)
		}
	}
	wantRead("new", 1, time.Time{})
	old.Lease.ID, old.Lease.Length, old.Lease.Until = id1, 10*time.Second, m.wall.Add(10*time.Second)
	text, err := json.Marshal(old)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(place(d)); err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(d.Path, "app", "job.json"), string(text)) // where that version had it
	m.wantEnd(t, "the lease", d, 10*time.Second, store.Leased, store.Expired)
	l := d.Lease("app/job", id1)
	if _, err := l.Renew(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantRead("renewed", 1, m.wall.Add(10*time.Second))
	m.step(time.Hour)
	stamp, err := save(t, l, old.ETag, "x", "y")
	if err != nil {
		t.Fatal(err)
	}
	wantRead("with a checkpoint", 2, m.wall.Add(10*time.Second))
	if _, err := save(t, l, stamp.ETag, "x", ""); err != nil {
		t.Fatal(err)
	}
	wantRead("emptied", 1, m.wall.Add(10*time.Second))
	if got := files(t, filepath.Join(d.Path, "app")); got != "job.d" {
		t.Errorf("files: got %s", got)
	}
}

// Entries of the version before are listed and can be removed; their logs go on.
func TestDirOfVersionBefore(t *testing.T) {
	d := local.Dir{Path: t.TempDir(), Now: time.Now}
	app := filepath.Join(d.Path, "app")
	if err := os.MkdirAll(filepath.Join(app, ".log", "job"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, job := range []string{"job", "lock"} {
		put(t, filepath.Join(app, job+".json"), `{"schema":1,"entry":"app/`+job+`","etag":"e","record":"r"}`)
	}
	put(t, filepath.Join(app, "job.lock"), "")
	put(t, filepath.Join(app, ".log", "job", "000001.log"), "{\"a\": \"#1 1 00000000 x\"}\n")
	apps, err := d.Apps(t.Context())
	if err != nil || len(apps) != 1 {
		t.Errorf("apps are %q, %v", apps, err)
	}
	names := ""
	err = d.List(t.Context(), "app", func(name string, e store.Entry) bool { names += name + "=" + string(e.Record) + " "; return true })
	if err != nil || names != "app/job=r app/lock=r " {
		t.Errorf("listed %s, %v", names, err)
	}
	if err := d.Remove(t.Context(), "app/lock", "e"); err != nil {
		t.Error(err)
	}
	wantError(t, "read", errOf(d.Read(t.Context(), "app/lock")), fs.ErrNotExist)
	log := store.LogName("app/job", "000001")
	wantError(t, "append", d.Append(t.Context(), log, 3, []byte("late")), store.ErrChanged)
	if err := d.Append(t.Context(), log, 25, []byte("more")); err != nil {
		t.Error(err)
	}
	if got, err := d.ReadLog(t.Context(), log, 20, 100); err != nil || string(got) != " x\"}\nmore" {
		t.Errorf("the log ends with %q, %v", got, err)
	}
}
