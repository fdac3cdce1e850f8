package judge_test

import (
	"slices"
	"testing"
	"time"

	"github.com/soloist-go/soloist/proof/zero/judge"
)

var noon = time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)

func after(d time.Duration) time.Time { return noon.Add(d) }

// good is an hour in which a replica was up from 20 s before each of four ticks until 5 s after it.
func good() judge.Story {
	s := judge.Story{From: noon.Add(-time.Minute), To: after(59 * time.Minute), Polling: 30 * time.Second, Jobs: map[string]string{"work": "*/15 * * * *"}}
	for n := range time.Duration(4) {
		due := after(n * 15 * time.Minute)
		s.Starts = append(s.Starts, judge.Start{Job: "work", Tick: due, At: due.Add(10 * time.Millisecond)})
		s.Wakes = append(s.Wakes, judge.Wake{Visible: due.Add(-time.Minute), Seen: due.Add(-21 * time.Second)})
		s.Replicas = append(s.Replicas, judge.Replica{Begun: due.Add(-21 * time.Second), Up: due.Add(-20 * time.Second), Gone: due.Add(5 * time.Second)})
	}
	return s
}

func faults(t *testing.T, s judge.Story) []string {
	t.Helper()
	ticks, err := s.Ticks()
	if err != nil {
		t.Fatal(err)
	}
	return judge.Faults(ticks, 2*time.Second)
}

func TestFaultsAreFound(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*judge.Story)
		want   []string
	}{
		"none":  {func(*judge.Story) {}, nil},
		"lost":  {func(s *judge.Story) { s.Starts = s.Starts[1:] }, []string{"work of 12:00:00 was not run"}},
		"twice": {func(s *judge.Story) { s.Starts = append(s.Starts, s.Starts[1]) }, []string{"work of 12:15:00 was run 2 times"}},
		"early": {func(s *judge.Story) { s.Starts[2].At = s.Starts[2].Tick.Add(-1) }, []string{"work of 12:30:00 was run 1ns early"}},
		"late with a replica up": {func(s *judge.Story) { s.Starts[3].At = s.Starts[3].Tick.Add(2001 * time.Millisecond) },
			[]string{"work of 12:45:00 was run 2.001s late, of which 0s was the platform's"}},
		"two seconds": {func(s *judge.Story) { s.Starts[3].At = s.Starts[3].Tick.Add(2 * time.Second) }, nil},
		"the platform was late by a look and a start": {func(s *judge.Story) { late(s, 31*time.Second, 31*time.Second+10*time.Millisecond) }, nil},
		"the alarm was late": {func(s *judge.Story) { late(s, 40*time.Second, 40*time.Second) },
			[]string{"work of 12:00:00 was run 40s late, of which 31s was the platform's"}},
		"a replica was up before it was due": {func(s *judge.Story) {
			s.Replicas[1].Begun, s.Replicas[1].Up = after(15*time.Minute+9*time.Second), after(15*time.Minute+10*time.Second)
			s.Replicas[1].Gone, s.Starts[1].At = after(16*time.Minute), after(15*time.Minute+11*time.Second)
		}, nil},
		"the replica was slow": {func(s *judge.Story) { late(s, 10*time.Second, 13*time.Second) },
			[]string{"work of 12:00:00 was run 13s late, of which 10s was the platform's"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := good()
			test.change(&s)
			if got := faults(t, s); !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// late has the replica of the first tick up so long after it is due, and the run.
func late(s *judge.Story, up, run time.Duration) {
	s.Replicas[0].Begun, s.Replicas[0].Up, s.Replicas[0].Gone = after(up-time.Second), after(up), after(up+time.Minute)
	s.Starts[0].At = after(run)
}
