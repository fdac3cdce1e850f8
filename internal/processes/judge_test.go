//go:build unix

package processes

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// faults judges runs in the order of their starts: tokens grow, each attempt at a tick starts once, and no run starts
// before the run before it has returned or its process was gone.
func faults(starts, ends, killed []event) (list []string) {
	fault := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	over := func(run event) time.Time {
		if i := slices.IndexFunc(ends, func(e event) bool { return e.Token == run.Token }); i >= 0 {
			return ends[i].At
		}
		if i := slices.IndexFunc(killed, func(e event) bool { return e.Replica == run.Replica && e.At.After(run.At) }); i >= 0 {
			return killed[i].At
		}
		return time.Time{}
	}
	attempts := map[string]bool{}
	for i, run := range starts {
		id := fmt.Sprintf("attempt %d at %s", run.Attempt, run.Tick.Format(time.TimeOnly))
		if attempts[id] && !run.Tick.IsZero() {
			fault("%s starts again", id)
		}
		attempts[id] = true
		if i == 0 {
			continue
		}
		before := starts[i-1]
		if run.Token <= before.Token {
			fault("token %d follows token %d", run.Token, before.Token)
		}
		if at := over(before); at.IsZero() || at.After(run.At) {
			fault("token %d starts beside token %d", run.Token, before.Token)
		}
	}
	return list
}

// The judge finds what it is for.
func TestJudge(t *testing.T) {
	t.Parallel()
	tick := time.Date(2026, 3, 1, 2, 0, 0, 0, time.UTC)
	at := func(replica string, token, ms int64) event {
		return event{Replica: replica, Token: token, Attempt: 1, Tick: tick.Add(time.Duration(token) * time.Second), At: tick.Add(time.Duration(ms) * time.Millisecond)}
	}
	again := at("b", 2, 3)
	again.Tick = tick.Add(time.Second)
	for name, tt := range map[string]struct {
		starts, ends, killed []event
		want                 string
	}{
		"in turn":          {[]event{at("a", 1, 1), at("b", 2, 3)}, []event{at("a", 1, 2)}, nil, "[]"},
		"after a kill":     {[]event{at("a", 1, 1), at("b", 2, 3)}, nil, []event{at("a", 0, 2)}, "[]"},
		"under a run":      {[]event{at("a", 1, 1), at("b", 2, 3)}, []event{at("a", 1, 4)}, nil, "[token 2 starts beside token 1]"},
		"no end":           {[]event{at("a", 1, 1), at("b", 2, 3)}, nil, nil, "[token 2 starts beside token 1]"},
		"before the kill":  {[]event{at("a", 1, 1), at("b", 2, 3)}, nil, []event{at("a", 0, 4)}, "[token 2 starts beside token 1]"},
		"an older token":   {[]event{at("a", 2, 1), at("b", 1, 3)}, []event{at("a", 2, 2)}, nil, "[token 1 follows token 2]"},
		"the tick is done": {[]event{at("a", 1, 1), again}, []event{at("a", 1, 2)}, nil, "[attempt 1 at 02:00:01 starts again]"},
	} {
		if got := fmt.Sprint(faults(tt.starts, tt.ends, tt.killed)); got != tt.want {
			t.Errorf("%s: got %s, want %s", name, got, tt.want)
		}
	}
}
