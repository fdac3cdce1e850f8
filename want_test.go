package soloist_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
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

// ok checks that there is no error.
func (c *cluster) ok(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Error(err)
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

// successor checks that there are two runs, one after the other, and how long after since the second one began.
func (c *cluster) successor(since time.Time, least, most time.Duration) (first, next ran) {
	c.t.Helper()
	runs := c.succession(2)
	if took := runs[1].start.Sub(since); took < least || took > most {
		c.t.Errorf("%s follows after %s, want %s to %s", runs[1].replica, took, least, most)
	}
	return runs[0], runs[1]
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

var lives = flag.Int("lives", 8, "of TestNextDueFindsNothingBefore: how many apps")

// If nothing happens meanwhile, there is nothing to do before the time that NextDue named: whoever sleeps until then
// misses nothing. Random apps have pauses, followers, orders, backfills, deaths and FinishBy.
func TestNextDueFindsNothingBefore(t *testing.T) {
	for seed := range uint64(*lives) {
		beside(t, fmt.Sprint(seed), func(t *testing.T, c *cluster) {
			l := &life{cluster: c, Rand: rand.New(rand.NewPCG(seed, 0))}
			l.draw()
			for end := time.Now().Add(30 * time.Hour); time.Now().Before(end) && !t.Failed(); {
				l.step()
			}
		})
	}
}

// A life is an app that runs only when a replica is wanted.
type life struct {
	*cluster
	*rand.Rand
	jobs []soloist.Work
	last string // what has happened last
}

// draw draws the jobs: up to three of their own, and followers of the first.
func (l *life) draw() {
	for i := range 1 + l.IntN(3) {
		j := named(fmt.Sprint("own-", i), work(pick(l, "*/30 * * * *", "@hourly", "0 */3 * * *", "@daily"), pick(l, time.Second, 5*time.Minute, 40*time.Minute)))
		j.Interrupted = pick(l, soloist.Abandon, soloist.Rerun)
		j.Missed = pick(l, soloist.RunLatest, soloist.RunAll, soloist.SkipMissed)
		if j.Missed == soloist.RunLatest {
			j.Overlap = pick(l, soloist.SkipOverlap, soloist.QueueOne)
		}
		j.FinishBy = pick(l, 0, time.Minute, 2*time.Hour)
		j.Paused = l.IntN(8) == 0
		if l.IntN(3) == 0 {
			j.Do = func(context.Context, *soloist.Run) error { return errLate }
		}
		l.jobs = append(l.jobs, j)
	}
	for i := range l.IntN(3) {
		f := following(fmt.Sprint("after-", i), "own-0", pick(l, time.Second, 5*time.Minute))
		f.AfterAny = l.IntN(2) == 0
		l.jobs = append(l.jobs, f)
	}
}

// step asks when a replica is wanted, and either asks again just before, and wakes one up then, or has something happen.
func (l *life) step() {
	at := l.asks()
	switch left := time.Until(at); {
	case l.IntN(4) == 0:
		if left > 0 {
			time.Sleep(time.Duration(l.Int64N(int64(max(left, time.Hour)))))
		}
		l.happens()
	case left > wantedSoon:
		time.Sleep(left - wantedDoubt)
		l.reported(at)
		if again := l.asks(); again.Before(at) {
			l.t.Errorf("at %s a replica is wanted at %s, and before that it was at %s; %s", time.Now().Format(time.DateTime), again.Format(time.TimeOnly), at.Format(time.TimeOnly), l.last)
		}
		fallthrough
	default:
		time.Sleep(time.Until(at))
		time.Sleep(time.Second)
		l.wakes()
	}
}

const (
	wantedDoubt = 2 * time.Second // by how much the time that is named may be late: dates of the service have whole seconds
	// wantedSoon is from when on a time that is named stays. Before that it may come of a live lease, which ends sooner if its
	// holder has died, or of a report of late ticks, which is a minute after the last.
	wantedSoon = time.Minute + wantedDoubt
)

// asks returns when a replica is wanted. Never is in two hours: until then nothing happens either.
func (l *life) asks() time.Time {
	at, err := l.replica("asks", l.jobs...).NextDue(l.t.Context())
	if err != nil {
		l.t.Fatal(err)
	}
	if at.IsZero() {
		at = time.Now().Add(2 * time.Hour)
	}
	return at
}

// reported checks that each tick that is late was reported, since no replica is wanted before at.
func (l *life) reported(at time.Time) {
	all, err := l.replica("status", l.jobs...).Status(l.t.Context())
	if err != nil {
		l.t.Fatal(err)
	}
	for _, s := range all {
		if told := s.Record.Past.Late; s.Late.Count > told.Count {
			l.t.Errorf("at %s %s is late: %+v, of which %+v is reported, and a replica is wanted at %s; %s",
				time.Now().Format(time.DateTime), s.Name, s.Late, told, at.Format(time.TimeOnly), l.last)
		}
	}
}

// wakes has a replica run what is due, or die meanwhile.
func (l *life) wakes() {
	r, d := l.replica("woken", l.jobs...), pick(l, time.Hour, time.Hour, 2*time.Minute)
	if l.IntN(4) == 0 { // the lease of what it has run lasts a moment longer
		r.meets(fail(errNetwork, "release"))
	}
	if l.IntN(6) == 0 {
		l.last = "a replica dies"
		defer l.happens() // before another one takes over
		die := time.AfterFunc(time.Duration(l.Int64N(int64(time.Minute))), r.kill)
		defer die.Stop()
	} else {
		l.last = "a replica runs for " + d.String()
	}
	ctx, cancel := context.WithTimeout(l.t.Context(), d)
	defer cancel()
	r.RunDue(ctx, soloist.Wake{}) // a death, or the end of its time, is an error
	l.last += " until " + time.Now().Format(time.TimeOnly)
}

// happens has an operator order something, which may be refused.
func (l *life) happens() {
	job := fmt.Sprint("own-", l.IntN(3))
	o := soloist.Order{Job: job, By: "anna", Kind: pick(l, store.OrderPause, store.OrderPause, store.OrderResume, store.OrderRun, store.OrderCancel, store.OrderBackfill, store.OrderCancelBackfill)}
	switch o.Kind {
	case store.OrderPause:
		o.Until = pick(l, time.Time{}, time.Now().Add(20*time.Minute), time.Now().Add(5*time.Hour))
	case store.OrderBackfill:
		o.Backfill = soloist.Backfill{From: time.Now().Add(-5 * time.Hour), To: time.Now().Add(-time.Hour), All: true}
	}
	_, err := l.replica("desk", l.jobs...).Order(l.t.Context(), o)
	l.last = fmt.Sprintf("%s of %s: %v", o.Kind, job, err)
}

func pick[T any](r interface{ IntN(int) int }, of ...T) T { return of[r.IntN(len(of))] }
