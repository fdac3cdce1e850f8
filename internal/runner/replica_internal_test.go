package runner

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// Outcomes wait for what is about to start, and not for ever.
func TestOutcomesWaitForStarts(t *testing.T) {
	for _, c := range []struct {
		name string
		play func(s *starts) // what is about to start, and when it does
		want time.Duration   // that an outcome waits
	}{
		{"nothing starts", func(*starts) {}, 0},
		{"one starts", func(s *starts) { time.AfterFunc(10*time.Millisecond, s.add()) }, 10 * time.Millisecond},
		{"two start", func(s *starts) {
			a, b := s.add(), s.add()
			time.AfterFunc(10*time.Millisecond, a)
			time.AfterFunc(18*time.Millisecond, b)
		}, 26 * time.Millisecond},
		{"two start at once", func(s *starts) {
			a, b := s.add(), s.add()
			time.AfterFunc(10*time.Millisecond, a)
			time.AfterFunc(10*time.Millisecond, b)
		}, 10*time.Millisecond + startsShortest},
		{"two start far apart", func(s *starts) {
			a, b := s.add(), s.add()
			time.AfterFunc(5*time.Millisecond, a)
			time.AfterFunc(45*time.Millisecond, b)
		}, 45*time.Millisecond + startsLongest},
		{"one more comes", func(s *starts) {
			s.add()()
			s.add()
			a, b := s.add(), s.add()
			a()
			b()
		}, startsCheck * 2},
		{"one hangs", func(s *starts) { s.add() }, startsCheck},
		{"one hangs after others", func(s *starts) {
			s.add()
			time.AfterFunc(20*time.Millisecond, s.add())
		}, 2 * startsCheck},
		{"they keep coming", func(s *starts) {
			for range 990 {
				time.Sleep(time.Millisecond)
				done := s.add()
				time.AfterFunc(5*time.Millisecond, done)
			}
			s.add()
		}, time.Millisecond + startsMost - 990*time.Millisecond},
		{"they come one after the other", func(s *starts) {
			a, b := s.add(), s.add()
			a()
			b()
			for range 55 {
				done := s.add()
				time.Sleep(11 * time.Millisecond)
				done()
				time.Sleep(7 * time.Millisecond)
			}
			s.add()()
		}, startsMost - 990*time.Millisecond},
		{"the next ones while one hangs", func(s *starts) {
			s.add()
			time.Sleep(time.Second)
			time.AfterFunc(20*time.Millisecond, s.add())
		}, 20 * time.Millisecond},
		{"the next ones after one that hung", func(s *starts) {
			hung := s.add()
			time.Sleep(time.Second)
			hung()
			time.AfterFunc(20*time.Millisecond, s.add())
		}, 20 * time.Millisecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &starts{}
				c.play(s)
				begin := time.Now()
				s.wait(t.Context(), t.Context())
				if got := time.Since(begin); got != c.want {
					t.Errorf("an outcome waits %s, want %s", got, c.want)
				}
			})
		})
	}
}

// A replica that stops waits for nothing, nor does one that has lost its lease.
func TestStopEndsWaitForStarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &starts{}
		defer s.add()()
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		begin := time.Now()
		s.wait(ctx, t.Context())
		s.wait(t.Context(), ctx)
		if got := time.Since(begin); got != time.Millisecond {
			t.Errorf("it waits %s, want a millisecond", got)
		}
	})
}

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
