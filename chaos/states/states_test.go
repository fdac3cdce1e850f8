package states_test

import (
	"flag"
	"os"
	"runtime"
	"testing"

	"pgregory.net/rapid"
)

func TestMain(m *testing.M) {
	flag.Parse()
	flag.Set("rapid.nofailfile", "true")
	for name, value := range map[string]string{"rapid.checks": "300", "rapid.steps": "50"} {
		if f := flag.Lookup(name); f.Value.String() == f.DefValue {
			flag.Set(name, value)
		}
	}
	os.Exit(m.Run())
}

// live runs a service through its actions.
func live(tab table) func(*rapid.T) {
	return func(t *rapid.T) {
		s := newService(t, tab)
		s.create(t)
		t.Repeat(s.actions())
	}
}

func TestService(t *testing.T) {
	rapid.Check(t, live(parse(documented)))
}

// The machine is checked: it meets each cell of the table, and tells a wrong one.
func TestWrongCellsAreFound(t *testing.T) {
	set(t, "rapid.shrinktime", "0s")
	set(t, "rapid.checks", "20000") // some cells are met in one of a hundred; the search ends there
	right := parse(documented)
	found := 0
	for row, cells := range right {
		for state, c := range cells {
			for _, wrong := range forgeries(row, state, c) {
				if fails(live(right.forged(row, state, wrong))) {
					found++
					continue
				}
				t.Errorf("%s while %s leads to %s: that it would lead to %s passes", row, state, c, wrong)
			}
		}
	}
	t.Logf("%d wrong cells were found", found)
}

// set sets a flag for one test.
func set(t *testing.T, name, value string) {
	old := flag.Lookup(name).Value.String()
	flag.Set(name, value)
	t.Cleanup(func() { flag.Set(name, old) })
}

// fails reports whether a property does not hold.
func fails(property func(*rapid.T)) bool {
	q := new(quiet)
	done := make(chan struct{})
	go func() {
		defer close(done)
		rapid.Check(q, property)
	}()
	<-done
	return q.failed
}

// quiet is a test of which nobody hears.
type quiet struct{ failed bool }

func (q *quiet) Helper()               {}
func (q *quiet) Name() string          { return "quiet" }
func (q *quiet) Logf(string, ...any)   {}
func (q *quiet) Log(...any)            {}
func (q *quiet) Skipf(string, ...any)  { runtime.Goexit() }
func (q *quiet) Skip(...any)           { runtime.Goexit() }
func (q *quiet) SkipNow()              { runtime.Goexit() }
func (q *quiet) Errorf(string, ...any) { q.failed = true }
func (q *quiet) Error(...any)          { q.failed = true }
func (q *quiet) Fatalf(string, ...any) { q.FailNow() }
func (q *quiet) Fatal(...any)          { q.FailNow() }
func (q *quiet) Fail()                 { q.failed = true }
func (q *quiet) Failed() bool          { return q.failed }
func (q *quiet) FailNow() {
	q.failed = true
	runtime.Goexit()
}
