package beatmodel

import "slices"

// A Result is what an exploration has found.
type Result struct {
	States int    // that can be reached
	Wrong  string // what must never be and can be; empty: nothing
	Steps  []Move // a shortest way there
}

// Explore visits each state that can be reached from the first one, nearest first. It ends at the first that
// is wrong.
func (m *Model) Explore() Result {
	start := m.start()
	m.canonical(&start)
	states, from, seen := []State{start}, []int{0}, map[State]struct{}{start: {}}
	var o moves
	for n := 0; n < len(states); n++ {
		if wrong := m.wrong(&states[n]); wrong != "" {
			return Result{len(states), wrong, m.way(states, from, n)}
		}
		for _, move := range m.next(&o, states[n]) {
			if _, ok := seen[move.To]; !ok {
				seen[move.To] = struct{}{}
				states, from = append(states, move.To), append(from, n)
			}
		}
	}
	return Result{States: len(states)}
}

// start returns the first state: an entry without a run.
func (m *Model) start() (s State) {
	s.Blob = Blob{Record: Record{Token: baseToken}}
	return s
}

// next returns the steps from a state. The next call overwrites them.
func (m *Model) next(o *moves, s State) []Move {
	o.from, o.all = s, o.all[:0]
	for i := range m.Beats {
		m.travel(o, i, s.Replicas[i].Call)
		m.travel(o, i, s.Replicas[i].Renewal)
		m.follow(o, i)
		m.hold(o, i)
	}
	m.arrive(o)
	m.disturb(o)
	m.tick(o)
	for k := range o.all {
		m.canonical(&o.all[k].To)
	}
	return o.all
}

// way returns the steps to a state.
func (m *Model) way(states []State, from []int, n int) (steps []Move) {
	for ; n > 0; n = from[n] {
		all := m.next(new(moves), states[from[n]])
		steps = append(steps, all[slices.IndexFunc(all, func(x Move) bool { return x.To == states[n] })])
	}
	slices.Reverse(steps)
	return steps
}
