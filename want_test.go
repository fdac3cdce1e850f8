package soloist_test

import (
	"bytes"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/soloist-go/soloist/store"
)

// wantRuns checks how many calls of Do there were.
func (c *cluster) wantRuns(want int) {
	c.t.Helper()
	if got := c.all(); len(got) != want {
		c.t.Errorf("%d runs, want %d: %+v", len(got), want, got)
	}
}

// wantInTime checks that no run began later than late after its tick.
func (c *cluster) wantInTime(late time.Duration) {
	c.t.Helper()
	for _, r := range c.all() {
		if got := r.start.Sub(r.Tick); got > late {
			c.t.Errorf("tick %s started %s late", r.Tick.Format(time.TimeOnly), got)
		}
	}
}

// wantOutcomes checks the history of a job: these outcomes and no others, oldest first.
func (c *cluster) wantOutcomes(job string, want ...string) {
	c.t.Helper()
	if got := c.outcomes(job); !slices.Equal(got, want) {
		c.t.Errorf("outcomes of %s:\ngot  %q\nwant %q", job, got, want)
	}
}

// wantAllSucceeded checks that each outcome of the job "work" is a success.
func (c *cluster) wantAllSucceeded() {
	c.t.Helper()
	for _, outcome := range c.outcomes("work") {
		if !strings.HasPrefix(outcome, "succeeded") {
			c.t.Errorf("got %s", outcome)
		}
	}
}

// outcomes returns the history of a job as text, oldest first: "succeeded
// 00:00:10", "missed 00:00:20-00:00:50 (4) reason".
func (c *cluster) outcomes(job string) []string {
	c.t.Helper()
	var out []string
	for _, f := range c.record(job).History {
		out = append([]string{outcomeText(f)}, out...)
	}
	return out
}

func outcomeText(f store.Outcome) string {
	b := &bytes.Buffer{}
	b.WriteString(string(f.Status) + " ")
	if !f.From.IsZero() {
		b.WriteString(f.From.Format("15:04:05") + "-")
	}
	b.WriteString(f.Tick.Format("15:04:05"))
	if f.Reason != "" {
		b.WriteString(" " + f.Reason)
	}
	return b.String()
}

// wantLines checks how many lines of a replica's log contain all of parts.
func (r *replica) wantLines(want int, parts ...string) {
	r.tap.t.Helper()
	if got := r.log.lines(parts...); len(got) != want {
		r.tap.t.Errorf("%s logs %q %d times, want %d: %q", r.Replica, parts, len(got), want, got)
	}
}

// wantWell checks that a replica's health tells of no trouble.
func (r *replica) wantWell() {
	r.tap.t.Helper()
	if h := r.Health(); h.Storage != nil || len(h.Broken) > 0 {
		r.tap.t.Errorf("health of %s: %+v", r.Replica, h)
	}
}

// wantError checks that there is an error that contains all of parts.
func wantError(t *testing.T, err error, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("the error is %v, want %q", err, parts)
			return
		}
	}
}

// once checks that each tick ran once, and returns how many ran.
func once(t *testing.T, runs []ran) int {
	t.Helper()
	seen := map[time.Time]int{}
	for _, r := range runs {
		if seen[r.Tick]++; seen[r.Tick] > 1 {
			t.Errorf("tick %s ran %d times", r.Tick, seen[r.Tick])
		}
	}
	return len(seen)
}

// afterTheFirst leaves out what came due in the first two seconds: the first claim
// of an entry waits for its token meanwhile.
func afterTheFirst(runs []ran) []ran {
	begin := time.Date(2000, 1, 1, 0, 0, 2, 0, time.UTC)
	return slices.DeleteFunc(runs, func(r ran) bool { return !r.Tick.After(begin) })
}

// succession returns the runs, which have to be n, one after the other.
func (c *cluster) succession(n int) []ran {
	c.t.Helper()
	runs := c.all()
	if len(runs) != n {
		c.t.Fatalf("%d runs, want %d: %+v", len(runs), n, runs)
	}
	disjoint(c.t, runs)
	for i := 1; i < n; i++ {
		if runs[i-1].end.Equal(runs[i].start) {
			c.t.Errorf("run %d begins at the instant at which the one before ends: %s", i+1, runs[i].start)
		}
	}
	return runs
}

// disjoint checks that no two terms overlap and that tokens grow.
func disjoint(t *testing.T, runs []ran) {
	t.Helper()
	for i := 1; i < len(runs); i++ {
		if runs[i-1].end.IsZero() || runs[i-1].end.After(runs[i].start) {
			t.Errorf("term %d ends at %s, the next begins at %s", i, runs[i-1].end, runs[i].start)
		}
		if runs[i].Token <= runs[i-1].Token {
			t.Errorf("token %d after %d", runs[i].Token, runs[i-1].Token)
		}
	}
}

// A logBook keeps what a replica logs.
type logBook struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *logBook) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

// lines returns the lines that contain all of parts.
func (l *logBook) lines(parts ...string) (out []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
next:
	for line := range strings.Lines(l.b.String()) {
		for _, p := range parts {
			if !strings.Contains(line, p) {
				continue next
			}
		}
		out = append(out, line)
	}
	return out
}
