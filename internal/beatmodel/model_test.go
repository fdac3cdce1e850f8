package beatmodel

import (
	"flag"
	"fmt"
	"testing"
)

var statesFlag = flag.Bool("states", false, "explore the models of millions of states, too: ten minutes, and 3 GB of memory")

// limit is more than the number of states of each model: each is explored to its end.
const limit = 50e6

// A size says when a model is explored.
type size int

const (
	small  size = iota // always
	medium             // unless -short
	large              // with -states
)

// right are the models of the program as it is to be.
var right = []struct {
	size
	Model
}{
	{small, Model{Beats: []uint8{2, 2}, Lease: 3}},
	{small, Model{Beats: []uint8{2, 1}, Lease: 3}},
	{small, Model{Beats: []uint8{2, 0}, Lease: 3}},
	{small, Model{Beats: []uint8{2, 2}, Lease: 3, Deletes: true}},
	{small, Model{Beats: []uint8{1, 1}, Lease: 2, Breaks: true}},

	{medium, Model{Beats: []uint8{2, 2}, Lease: 3, Breaks: true}},
	{medium, Model{Beats: []uint8{2, 2}, Lease: 3, Late: 1}},
	{medium, Model{Beats: []uint8{3, 3}, Lease: 4}},
	{medium, Model{Beats: []uint8{1, 1}, Lease: 2, Finish: true, Breaks: true, Crashes: true}},
	{medium, Model{Beats: []uint8{1, 1}, Lease: 2, Late: 1, Finish: true}},
	{medium, Model{Beats: []uint8{1, 1}, Lease: 2, Late: 1, Deletes: true}},
	{medium, Model{Beats: []uint8{1, 0}, Lease: 2, Breaks: true}},
	{medium, Model{Beats: []uint8{1, 1, 1}, Lease: 2}},

	{large, Model{Beats: []uint8{2, 2}, Lease: 3, Late: 1, Finish: true, Breaks: true, Crashes: true}},
	{large, Model{Beats: []uint8{2, 2}, Lease: 3, Late: 1, Finish: true, Deletes: true}},
	{large, Model{Beats: []uint8{2, 1}, Lease: 3, Late: 1, Breaks: true}},
	{large, Model{Beats: []uint8{3, 2}, Lease: 4, Breaks: true}},
	{large, Model{Beats: []uint8{3, 3}, Lease: 5, Late: 1}},
	{large, Model{Beats: []uint8{1, 1}, Lease: 2, Late: 2}},
	{large, Model{Beats: []uint8{2, 0}, Lease: 3, Finish: true, Breaks: true}},
	{large, Model{Beats: []uint8{1, 0}, Lease: 2, Late: 1, Finish: true, Breaks: true}},
	{large, Model{Beats: []uint8{1, 0, 0}, Lease: 2}},
	{large, Model{Beats: []uint8{2, 2, 2}, Lease: 3}},
}

func TestTwoNeverAct(t *testing.T) {
	for _, x := range right {
		t.Run(x.title(), func(t *testing.T) {
			if x.size == medium && testing.Short() || x.size == large && !*statesFlag {
				t.Skip("many states")
			}
			t.Parallel()
			demandRight(t, x.Model)
		})
	}
}

// title names a model by what is in it.
func (m *Model) title() string {
	name := fmt.Sprintf("L=%d D=%d late=%d", m.Beats, m.Lease, m.Late)
	for _, x := range []struct {
		is   bool
		name string
	}{{m.Finish, "ends"}, {m.Breaks, "breaks"}, {m.Crashes, "crashes"}, {m.Deletes, "deletions"}} {
		if x.is {
			name += " " + x.name
		}
	}
	return name
}

// demandRight explores all states of a model, none of which may be wrong.
func demandRight(t *testing.T, m Model) {
	t.Helper()
	m.Swap = true
	r := m.Explore(limit)
	if r.Capped {
		t.Fatalf("more than %d states", r.States)
	}
	if r.Wrong != "" {
		m.Swap = false
		demandWrong(t, m)
		t.FailNow()
	}
	t.Logf("%d states, none of them wrong", r.States)
}

// demandWrong explores a model until it finds what is wrong with it, and prints a shortest way there.
func demandWrong(t *testing.T, m Model) {
	t.Helper()
	r := m.Explore(limit)
	if r.Wrong == "" {
		t.Fatalf("%d states, none of them wrong", r.States)
	}
	t.Logf("%s, after %d states:", r.Wrong, r.States)
	for _, step := range r.Steps {
		who := "   "
		if step.Who >= 0 {
			who = fmt.Sprintf("%d: ", step.Who+1)
		}
		t.Log(who + step.What)
	}
}

// prompt returns a model in which one way takes one tick, and which demands a successor in time.
func prompt(beats ...uint8) Model {
	l := beats[0]
	return Model{Beats: beats, Lease: 5 * l, Late: 1, Prompt: 1, Within: l + l/3 + 8}
}

// A dead holder is replaced within L, a third of L and eight ways of a request, if L is more than a few
// ways. It cannot be promised sooner.
func TestSuccessorComesInTime(t *testing.T) {
	for _, m := range []Model{prompt(3), prompt(6, 6), prompt(9, 9)} {
		demandRight(t, m)
		m.Within--
		demandWrong(t, m)
	}
	if *statesFlag {
		demandRight(t, prompt(9, 9, 9))
	}
}

// What the model finds where the program promises nothing.
func TestLimits(t *testing.T) {
	for name, m := range map[string]Model{
		"a replica that starts after a deletion holds off for nobody": {Beats: []uint8{1, 1}, Lease: 2, Deletes: true, Crashes: true},
		"with L of three ways, followers break each other's leases":   prompt(3, 3),
	} {
		t.Run(name, func(t *testing.T) { demandWrong(t, m) })
	}
}
