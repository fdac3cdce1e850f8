package runs

import (
	"slices"
	"testing"
	"time"
)

// TestLeaders has one mistake in each log.
func TestLeaders(t *testing.T) {
	line := func(what string, second, pid int) Line {
		return Line{what, at(second), time.Unix(0, 0), "job-0", string(rune('a' + pid)), pid}
	}
	good := []Line{line(Start, 0, 0), line(Kill, 10, 0), line(Start, 13, 1), line(Kill, 20, 1), line(Start, 22, 2), line(End, 30, 2)}
	for name, c := range map[string]struct {
		lines                []Line
		twice, lost, changes int
		delays               []time.Duration
	}{
		"nothing wrong":          {good, 0, 0, 0, []time.Duration{2 * time.Second, 3 * time.Second}},
		"two lead":               {append(slices.Clone(good), line(Start, 15, 2)), 1, 0, 1, []time.Duration{2 * time.Second, 3 * time.Second}},
		"nobody follows":         {good[:4], 0, 1, 0, []time.Duration{3 * time.Second}},
		"a change for no reason": {append(slices.Clone(good), line(Start, 31, 0)), 0, 0, 1, []time.Duration{2 * time.Second, 3 * time.Second}},
	} {
		r := JudgeLeader(c.lines, window())
		if r.Twice != c.twice || r.Lost != c.lost || r.Changes() != c.changes || !slices.Equal(r.Delays, c.delays) {
			t.Errorf("%s: got %+v, %d changes", name, r, r.Changes())
		}
	}
}
