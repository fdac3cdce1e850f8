package beatmodel

import "slices"

// A Result is what an exploration has found.
type Result struct {
	States int    // that can be reached
	Wrong  string // what must never be and can be; empty: nothing
	Steps  []Move // a shortest way there
	Capped bool   // there are more states
}

// Explore visits each state that can be reached from the first one, nearest first, up to a number of
// them. It ends at the first that is wrong.
func (m *Model) Explore(limit int) Result {
	visited := newSet()
	start := m.start()
	m.canonical(&start)
	visited.add(&start, -1)
	var o moves
	for n := 0; n < len(visited.states); n++ {
		if wrong := m.wrong(&visited.states[n]); wrong != "" {
			return Result{States: len(visited.states), Wrong: wrong, Steps: m.way(visited, n)}
		}
		if len(visited.states) > limit {
			return Result{States: len(visited.states), Capped: true}
		}
		all := m.next(&o, visited.states[n])
		if len(all) == 0 && visited.states[n].Alone > 0 {
			return Result{States: len(visited.states), Wrong: "nothing can happen any more", Steps: m.way(visited, n)}
		}
		for k := range all {
			visited.add(&all[k].To, n)
		}
	}
	return Result{States: len(visited.states)}
}

// next returns the steps from a state. The next call overwrites them.
func (m *Model) next(o *moves, s State) []Move {
	o.from, o.all = s, o.all[:0]
	if m.Prompt > 0 && s.Alone == 0 {
		return nil // there is a successor
	}
	for i := range m.Beats {
		m.travel(o, i, s.Replicas[i].Call)
		m.travel(o, i, s.Replicas[i].Renewal)
		m.follow(o, i)
		m.hold(o, i)
	}
	m.arrive(o)
	m.disturb(o)
	if m.mayPass(&s) {
		m.tick(o)
	}
	for k := range o.all {
		m.canonical(&o.all[k].To)
	}
	return o.all
}

// way returns the steps to a state.
func (m *Model) way(visited *set, n int) (steps []Move) {
	for ; visited.from[n] >= 0; n = int(visited.from[n]) {
		var o moves
		all := m.next(&o, visited.states[visited.from[n]])
		k := slices.IndexFunc(all, func(x Move) bool { return x.To == visited.states[n] })
		steps = append(steps, all[k])
	}
	slices.Reverse(steps)
	return steps
}
