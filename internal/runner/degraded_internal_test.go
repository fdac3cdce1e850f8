package runner

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

// jobsOf returns the sources of new jobs of a replica.
func jobsOf(r *Replica, names ...string) (sources []*source) {
	for _, name := range names {
		st := &state{job: name, place: len(r.jobs.states), degradation: &r.vitals.degradation}
		r.jobs.states = append(r.jobs.states, st)
		sources = append(sources, &source{origin: &origin{}, state: st})
	}
	return sources
}

// A step asks whether the replica is degraded. It must not look at each job for that: with
// 10,000 of them the steps of one tick would look a hundred million times.
func TestDegradedLooksAtNoJob(t *testing.T) {
	r := &Replica{}
	for _, s := range jobsOf(r, "a", "b", "c") {
		s.state.mu.Lock() // a look would wait for ever
		defer s.state.mu.Unlock()
	}
	if err := r.Degraded(); err != nil {
		t.Errorf("it is degraded: %v", err)
	}
}

// The first of the jobs that go on is named, whichever of them began.
func TestDegradedNamesTheFirstJob(t *testing.T) {
	r := &Replica{}
	jobs := jobsOf(r, "a", "b", "c")
	by := &source{origin: &origin{byHand: "x"}, state: jobs[1].state}
	stays := errors.New("it stays")
	steps := []struct {
		of    *source
		cause error
		want  string // the job that is named; empty: none is
	}{
		{jobs[0], nil, ""}, {jobs[2], stays, "c"}, {jobs[1], stays, "b"}, {by, stays, "b"}, {jobs[1], nil, "b"},
		{jobs[0], stays, "a"}, {jobs[0], nil, "b"}, {by, nil, "c"}, {jobs[2], nil, ""},
	}
	for i, step := range steps {
		step.of.setOverrun(step.cause)
		got := ""
		if err := r.Degraded(); err != nil {
			got, _, _ = strings.Cut(err.Error(), " ")
		}
		if got != step.want {
			t.Errorf("after step %d: %q is named, want %q", i, got, step.want)
		}
	}
	jobs[1].state.everyReplica = true
	if jobs[1].setOverrun(stays); r.Degraded() != nil || !slices.ContainsFunc(jobs[1].state.get().overrun, func(o overrun) bool { return o.of == jobs[1].origin }) {
		t.Error("a job of every replica degrades it, or its overrun is not kept")
	}
}
