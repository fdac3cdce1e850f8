package soloist

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/soloist-go/soloist/internal/schedule"
)

var midnight = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)

func clockTime(s string) time.Time {
	at, err := time.Parse("15:04:05", s)
	if err != nil {
		panic(err)
	}
	return midnight.Add(at.Sub(at.Truncate(24 * time.Hour)))
}

func every10s(t testing.TB) *schedule.Schedule {
	t.Helper()
	s, err := schedule.Parse("@every 10s", "", "job")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// told is what was settled, newest first: "missed 00:00:10-00:00:30(2) reason".
func told(r *Record) (out []string) {
	for _, f := range r.History {
		s := string(f.Status) + " "
		if !f.From.IsZero() {
			s += f.From.Format("15:04:05") + "-"
		}
		s += f.Tick.Format("15:04:05")
		if f.Count > 0 {
			s += fmt.Sprintf("(%d)", f.Count)
		}
		out = append(out, s+" "+f.Reason)
	}
	return out
}

func TestPlan(t *testing.T) {
	for name, tt := range map[string]struct {
		through, now string
		tick         string // a tick that was claimed and whose runner died
		attempt      int
		deaths       int
		p            planner
		claims       string // empty: none
		asAttempt    int
		told         []string
		nothing      bool
	}{
		"nothing due":    {through: "00:00:10", now: "00:00:19", nothing: true},
		"due":            {through: "00:00:10", now: "00:00:20", claims: "00:00:20", asAttempt: 1},
		"late":           {through: "00:00:10", now: "00:00:29", claims: "00:00:20", asAttempt: 1},
		"missed one":     {through: "00:00:10", now: "00:00:31", claims: "00:00:30", asAttempt: 1, told: []string{"missed 00:00:20 a newer one was due"}},
		"missed some":    {through: "00:00:10", now: "00:01:00", claims: "00:01:00", asAttempt: 1, told: []string{"missed 00:00:10-00:00:50(4) a newer one was due"}},
		"within window":  {through: "00:00:10", now: "00:00:22", p: planner{window: 2 * time.Second}, claims: "00:00:20", asAttempt: 1},
		"outside window": {through: "00:00:10", now: "00:00:23", p: planner{window: 2 * time.Second}, told: []string{"missed 00:00:20 outside the window"}},
		"skip: on time":  {through: "00:00:10", now: "00:00:23", p: planner{missed: SkipMissed, lease: 5 * time.Second}, claims: "00:00:20", asAttempt: 1},
		"skip: too late": {through: "00:00:10", now: "00:00:26", p: planner{missed: SkipMissed, lease: 5 * time.Second}, told: []string{"missed 00:00:20 outside the window"}},
		"all: first":     {through: "00:00:10", now: "00:00:51", p: planner{missed: RunAll}, claims: "00:00:20", asAttempt: 1},
		"all: window":    {through: "00:00:10", now: "00:00:51", p: planner{missed: RunAll, window: 21 * time.Second}, claims: "00:00:30", asAttempt: 1, told: []string{"missed 00:00:20 outside the window"}},
		"all: too many":  {through: "00:00:10", now: "01:00:00", p: planner{missed: RunAll}, claims: "00:43:30", asAttempt: 1, told: []string{"missed 00:00:10-00:43:20(259) too many were due"}},
		"all: as many as are run": {through: "00:00:10", now: "01:00:00", p: planner{missed: RunAll, window: 995 * time.Second}, claims: "00:43:30", asAttempt: 1,
			told: []string{"missed 00:00:10-00:43:20(259) outside the window"}},
		"died: abandoned": {through: "00:00:10", tick: "00:00:20", attempt: 1, now: "00:00:22", told: []string{"abandoned 00:00:20 its runner died"}},
		"died: and more": {through: "00:00:10", tick: "00:00:20", attempt: 1, now: "00:00:52", claims: "00:00:50", asAttempt: 1,
			told: []string{"missed 00:00:20-00:00:40(2) a newer one was due", "abandoned 00:00:20 its runner died"}},
		"died: rerun": {through: "00:00:10", tick: "00:00:20", attempt: 1, now: "00:00:52", p: planner{interrupted: Rerun}, claims: "00:00:20", asAttempt: 2},
		"died: rerun in time": {through: "00:00:10", tick: "00:00:20", attempt: 1, now: "00:01:00", p: planner{interrupted: Rerun, window: 40 * time.Second},
			claims: "00:00:20", asAttempt: 2},
		"died: too late": {through: "00:00:10", tick: "00:00:20", attempt: 1, now: "00:01:01", p: planner{interrupted: Rerun, window: 40 * time.Second}, claims: "00:01:00", asAttempt: 1,
			told: []string{"missed 00:00:20-00:00:50(3) a newer one was due", "abandoned 00:00:20 its runner died, and the starting deadline has passed"}},
		"died: too often": {through: "00:00:10", tick: "00:00:20", attempt: 5, deaths: 4, now: "00:00:22", p: planner{interrupted: Rerun}, told: []string{"abandoned 00:00:20 its runner died"}},
		"stopped often":   {through: "00:00:10", tick: "00:00:20", attempt: 9, deaths: 3, now: "00:00:22", p: planner{interrupted: Rerun}, claims: "00:00:20", asAttempt: 10},
		"other deaths":    {through: "00:00:10", tick: "00:00:20", attempt: 2, deaths: 4, now: "00:00:22", p: planner{interrupted: Rerun}, claims: "00:00:20", asAttempt: 3},
		"paused":          {through: "00:00:10", now: "00:00:31", p: planner{paused: true}, told: []string{"skipped 00:00:10-00:00:30(2) paused"}},
		"paused: died": {through: "00:00:10", tick: "00:00:20", attempt: 1, now: "00:00:22", p: planner{paused: true, interrupted: Rerun},
			told: []string{"abandoned 00:00:20 its runner died"}},
	} {
		t.Run(name, func(t *testing.T) {
			tt.p.ticks = every10s(t)
			r := &Record{Through: clockTime(tt.through), Epoch: 5, Status: Succeeded}
			if tt.tick != "" {
				r.Tick, r.Attempt, r.Deaths, r.Status = clockTime(tt.tick), tt.attempt, tt.deaths, Running
			}
			next, todo := tt.p.plan(r, clockTime(tt.now))
			if todo == tt.nothing {
				t.Fatalf("something to do: %t", todo)
			}
			if len(r.History) != 0 || r.Epoch != 5 {
				t.Error("the plan changed what it was made from")
			}
			if got := told(&next.record); !slices.Equal(got, tt.told) {
				t.Errorf("settles %q, want %q", got, tt.told)
			}
			if next.run != (tt.claims != "") {
				t.Fatalf("runs: %t", next.run)
			}
			if !next.run {
				return
			}
			got := next.record
			if !got.Tick.Equal(clockTime(tt.claims)) || got.Attempt != tt.asAttempt || got.Epoch != 6 || got.Status != Running {
				t.Errorf("claims %s as attempt %d with token %d", got.Tick, got.Attempt, got.Epoch)
			}
			if !got.Through.Before(got.Tick) {
				t.Errorf("the claimed tick %s is settled already", got.Tick)
			}
		})
	}
}

// A count that stopped says so, and one that came to the limit by itself is
// exact.
func TestTheCountOfALongRange(t *testing.T) {
	for n, want := range map[int]Fate{maxCount - 1: {Count: maxCount - 1}, maxCount: {Count: maxCount}, maxCount + 1: {Count: maxCount, AtLeast: true}} {
		p := planner{ticks: every10s(t)}
		r := &Record{Through: midnight, Status: Succeeded}
		next, _ := p.plan(r, midnight.Add(time.Duration(n+1)*10*time.Second))
		if got := next.record.History[0]; got.Count != want.Count || got.AtLeast != want.AtLeast {
			t.Errorf("%d ticks are told as %d, at least: %t", n, got.Count, got.AtLeast)
		}
	}
}

func TestTheYoungerDefinitionCounts(t *testing.T) {
	p := planner{ticks: every10s(t), spec: "mine", since: clockTime("00:05:00")}
	r := &Record{Through: clockTime("00:00:10"), Spec: "theirs", Status: Succeeded}
	now := clockTime("00:05:03")
	for since, yields := range map[string]bool{"00:04:00": false, "00:06:00": true, "00:05:00": true} {
		r.Since = clockTime(since)
		next, todo := p.plan(r, now)
		if p.outdated(r) != yields || todo == yields {
			t.Errorf("since %s: yields %t, has to do %t", since, p.outdated(r), todo)
		}
		if !yields && (next.run || !next.record.Through.Equal(now) || next.record.Spec != "mine") {
			t.Errorf("since %s: got %+v", since, next)
		}
	}
}

// An older replica of the definition in force claims without making it older:
// else a replica of another definition, started in between, would take the job.
func TestAClaimNeverMakesItsDefinitionOlder(t *testing.T) {
	mine, younger := clockTime("00:05:00"), clockTime("00:07:00")
	for name, tt := range map[string]struct {
		p planner
		r Record
	}{
		"a tick is due":    {planner{ticks: every10s(t)}, Record{Status: Succeeded}},
		"a run by hand":    {planner{ticks: every10s(t), request: "by hand"}, Record{Status: Succeeded}},
		"a further run":    {planner{ticks: every10s(t), interrupted: Rerun}, Record{Status: Running, Tick: clockTime("00:00:20"), Attempt: 1}},
		"a singleton":      {planner{}, Record{Status: Succeeded}},
		"a dead singleton": {planner{}, Record{Status: Running, Attempt: 1}},
	} {
		for written, want := range map[time.Time]time.Time{younger: younger, mine: mine, midnight: mine} {
			tt.p.spec, tt.p.since = "spec", mine
			tt.r.Spec, tt.r.Since, tt.r.Through, tt.r.Epoch = "spec", written, clockTime("00:00:10"), 5
			next, _ := tt.p.plan(&tt.r, clockTime("00:00:31"))
			if got := next.record.Since; !next.run || !got.Equal(want) {
				t.Errorf("%s, since %s: claims %t, since %s, want %s", name, written.Format("15:04"), next.run, got.Format("15:04"), want.Format("15:04"))
			}
		}
	}
}

// Whatever happens in whatever order, each tick up to the watermark is counted
// under one fate, and the watermark never moves back.
func TestEachTickHasOneFate(t *testing.T) {
	for seed := range uint64(100) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		p := planner{ticks: every10s(t), lease: 15 * time.Second,
			missed:      []MissedPolicy{RunLatest, RunAll, SkipMissed}[rnd.IntN(3)],
			interrupted: []InterruptedPolicy{Abandon, Rerun}[rnd.IntN(2)],
			window:      []time.Duration{0, 0, 25 * time.Second}[rnd.IntN(3)]}
		r := Record{Created: midnight, Through: midnight, Status: Idle}
		now := midnight
		for step := range 200 {
			now = now.Add(time.Duration(rnd.ExpFloat64() * float64(20*time.Second)))
			p.paused = rnd.IntN(10) == 0
			before := r.Through
			if next, todo := p.plan(&r, now); todo {
				r = next.record
				if next.run && rnd.IntN(4) > 0 { // else the runner dies
					now = now.Add(time.Duration(rnd.ExpFloat64() * float64(9*time.Second)))
					status := []Status{Succeeded, Failed, Abandoned, Skipped}[rnd.IntN(4)]
					r = p.finish(&r, status, "reason", now, now)
				}
			}
			if r.Through.Before(before) {
				t.Fatalf("seed %d, step %d: the watermark moved from %s to %s", seed, step, before, r.Through)
			}
			var counted int64
			for _, n := range r.Counts {
				counted += n
			}
			if want := int64(p.ticks.Count(midnight, r.Through, maxCount)); counted != want {
				t.Fatalf("seed %d, step %d: %d fates for %d ticks up to %s: %q", seed, step, counted, want, r.Through, told(&r))
			}
		}
	}
}
