package soloist_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/internal/nightly"
	"github.com/soloist-go/soloist/store"
)

// hourly is a job whose first attempt takes three hours, and each further one
// as long as further.
func hourly(window, further time.Duration) soloist.Job {
	return soloist.Job{Name: "work", Schedule: "@hourly", Lease: D, StartingDeadline: window, Interrupted: soloist.Rerun,
		Do: func(ctx context.Context, run *soloist.Run) error {
			takes := further
			if run.Tick.Hour() == 1 && run.Tick.Day() == 1 && run.Attempt == 1 {
				takes = 3 * time.Hour
			}
			return pause(ctx, takes)
		}}
}

// Two days after its runner was gone, with the newest tick five minutes old, a
// tick is run again only where its starting deadline allows it. Overlap is told
// of the ticks alone that came due under a run.
func TestFurtherAttemptHasStartingDeadline(t *testing.T) {
	const late = "the starting deadline has passed"
	for name, tt := range map[string]struct {
		stopped bool // in good order; else the runner dies
		window  time.Duration
		further time.Duration
		want    []string
	}{
		"died, past the deadline": {false, 10 * time.Minute, 0, []string{"abandoned 01:00:00 its runner died, and " + late,
			"missed 01:00:00-01:00:00 a newer one was due", "succeeded 02:00:00"}},
		"stopped, past the deadline": {true, 10 * time.Minute, 0, []string{"abandoned 01:00:00 not run again: " + late,
			"missed 01:00:00-01:00:00 a newer one was due", "succeeded 02:00:00"}},
		"no deadline, and nothing due under it": {false, 0, 10 * time.Minute, []string{"succeeded 01:00:00",
			"missed 01:00:00-01:00:00 a newer one was due", "succeeded 02:00:00"}},
		"no deadline, two ticks due under it": {false, 0, 2 * time.Hour, []string{"succeeded 01:00:00",
			"missed 01:00:00-02:00:00 a newer one was due", "skipped 02:00:00-04:00:00 overlap"}},
		"within the deadline, and nothing due under it": {false, 50 * time.Hour, 10 * time.Minute, []string{"succeeded 01:00:00",
			"missed 01:00:00-01:00:00 a newer one was due", "succeeded 02:00:00"}},
		"within the deadline, one tick due under it": {false, 50 * time.Hour, 58 * time.Minute, []string{"succeeded 01:00:00",
			"missed 01:00:00-02:00:00 a newer one was due", "skipped 03:00:00 overlap"}},
	} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			a := c.start("a", hourly(tt.window, tt.further))
			time.Sleep(time.Hour + 2*time.Minute)
			if !tt.stopped {
				a.kill()
			}
			a.stop()
			time.Sleep(49*time.Hour + 3*time.Minute)
			c.start("b", hourly(tt.window, tt.further))
			time.Sleep(2*time.Hour + 50*time.Minute)
			if got := c.outcomes("work"); len(got) < len(tt.want) || !slices.Equal(got[:len(tt.want)], tt.want) {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
			if lines := overlapsWithout(c.record("work"), c.all(), time.Hour); len(lines) > 0 {
				t.Errorf("overlap is told of %q", lines)
			}
		})
	}
}

// overlapsWithout are the ticks, of a job that is due at each multiple of every,
// that are said to have come due under a run, and did not.
func overlapsWithout(r store.Record, runs []ran, every time.Duration) (all []string) {
	for _, f := range r.History {
		from := f.From
		if from.IsZero() {
			from = f.Tick.Add(-every)
		}
		for tick := from.Add(every); f.Reason == "overlap" && !tick.After(f.Tick); tick = tick.Add(every) {
			if !slices.ContainsFunc(runs, func(r ran) bool { return !tick.Before(r.start) && (r.end.IsZero() || !tick.After(r.end)) }) {
				all = append(all, tick.Format(time.RFC3339))
			}
		}
	}
	return all
}

// A tick that stalled has the deadline too.
func TestStalledTickHasStartingDeadline(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := hourly(10*time.Minute, 0)
		job.HeartbeatTimeout = 11 * time.Minute
		c.start("a", job)
		c.start("b", job)
		time.Sleep(time.Hour + 15*time.Minute)
		if got := c.outcomes("work"); len(got) != 1 || !strings.HasPrefix(got[0], "stalled 01:00:00 not run again: the starting deadline") {
			t.Errorf("got %q", got)
		}
		c.wantRuns(1)
	})
}

func TestTickUnderRunIsSkipped(t *testing.T) {
	inCluster(t, func(c *cluster) {
		c.start("a", work("@every 10s", 25*time.Second))
		c.start("b", work("@every 10s", 25*time.Second))
		time.Sleep(76 * time.Second)
		c.wantOutcomes("work", "succeeded 00:00:10", "skipped 00:00:10-00:00:30 overlap",
			"succeeded 00:00:40", "skipped 00:00:40-00:01:00 overlap")
	})
}

// A job that takes 25 s is due every 10 s, on three replicas; the one that
// runs the second time dies under it.
func TestRunLongerThanInterval(t *testing.T) {
	const abandoned = "abandoned 00:00:40 its runner died"
	for name, tt := range map[string]struct {
		missed      soloist.MissedPolicy
		interrupted soloist.InterruptedPolicy
		want        []string // the first outcomes
		second      string   // the tick that the dead runner had
		attempt     int      // of the run after its death
	}{
		"latest, abandon": {soloist.RunLatest, soloist.Abandon, []string{"succeeded 00:00:10", "skipped 00:00:10-00:00:30 overlap",
			abandoned, "succeeded "}, "40", 1},
		"latest, rerun": {soloist.RunLatest, soloist.Rerun, []string{"succeeded 00:00:10", "skipped 00:00:10-00:00:30 overlap",
			"succeeded 00:00:40", "skipped "}, "40", 2},
		"skip, abandon": {soloist.SkipMissed, soloist.Abandon, []string{"succeeded 00:00:10", "skipped 00:00:10-00:00:30 overlap",
			abandoned, "succeeded "}, "40", 1},
		"skip, rerun": {soloist.SkipMissed, soloist.Rerun, []string{"succeeded 00:00:10", "skipped 00:00:10-00:00:30 overlap",
			"succeeded 00:00:40", "skipped "}, "40", 2},
		"all, abandon": {soloist.RunAll, soloist.Abandon, []string{"succeeded 00:00:10", "abandoned 00:00:20 its runner died",
			"succeeded 00:00:30", "succeeded 00:00:40"}, "20", 1},
		"all, rerun": {soloist.RunAll, soloist.Rerun, []string{"succeeded 00:00:10", "succeeded 00:00:20",
			"succeeded 00:00:30"}, "20", 2},
	} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			job := work("@every 10s", 25*time.Second)
			job.Missed, job.Interrupted = tt.missed, tt.interrupted
			all := map[string]*replica{}
			for _, name := range []string{"a", "b", "c"} {
				all[name] = c.start(name, job)
			}
			time.Sleep(45 * time.Second)
			runs := c.all()
			if len(runs) != 2 || runs[1].Tick.Format("05") != tt.second {
				t.Fatalf("got %+v", runs)
			}
			all[runs[1].replica].kill()
			time.Sleep(2 * time.Minute)
			runs = c.all()
			if runs[2].Attempt != tt.attempt || (tt.attempt == 2) != runs[2].Tick.Equal(runs[1].Tick) {
				t.Errorf("after the death: %+v", runs[2].Run)
			}
			disjoint(t, runs)
			// Whether a tick is missed while the death is not noticed depends on
			// the renewal before it.
			got := slices.DeleteFunc(c.outcomes("work"), func(f string) bool { return strings.HasPrefix(f, "missed") })
			if !alike(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			if without := overlapsWithout(c.record("work"), runs, 10*time.Second); len(without) > 0 {
				t.Errorf("overlap is told of %q: %q", without, c.outcomes("work"))
			}
		})
	}
}

// alike compares the first outcomes; the ends of ranges, which depend on when the
// death is noticed, may be left out of want.
func alike(got, want []string) bool {
	return len(got) >= len(want) && slices.EqualFunc(got[:len(want)], want, func(g, w string) bool {
		if before, after, ok := strings.Cut(w, "- "); ok {
			return strings.HasPrefix(g, before+"-") && strings.HasSuffix(g, after)
		}
		return g == w || strings.HasSuffix(w, " ") && strings.HasPrefix(g, w)
	})
}

func TestRunAllRunsEachTick(t *testing.T) {
	inCluster(t, func(c *cluster) {
		all := work("@every 10s", time.Second)
		all.Missed = soloist.RunAll
		a := c.start("a", all)
		time.Sleep(12 * time.Second)
		a.stop()
		time.Sleep(time.Minute)
		c.start("b", all)
		time.Sleep(10 * time.Second) // 00:01:22
		if got := once(t, c.all()); got != 8 {
			t.Errorf("%d ticks ran, want 8", got)
		}
		if !slices.IsSortedFunc(c.all(), func(x, y ran) int { return x.Tick.Compare(y.Tick) }) {
			t.Error("not in order")
		}
	})
}

func TestPausedTicksAreSkipped(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := work("@every 10s", time.Second)
		job.Paused = true
		c.start("a", job)
		time.Sleep(25 * time.Second)
		c.wantOutcomes("work", "skipped 00:00:10 paused", "skipped 00:00:20 paused")
		c.wantRuns(0)
	})
}

// A pause is on purpose: its ticks are no warnings.
func TestPausedJobDoesNotWarn(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := work("* * * * *", 0)
		job.Paused = true
		a := c.start("a", job)
		time.Sleep(10 * time.Minute)
		a.wantLines(0, "level=WARN")
		if n := len(a.log.lines("level=INFO", "paused")); n == 0 {
			t.Error("the log does not say that ticks are skipped")
		}
	})
}

func TestDeadRunnerIsReplaced(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.start("a", work("@every 5s", time.Hour))
		time.Sleep(6 * time.Second)
		c.start("b", work("@every 5s", time.Second))
		time.Sleep(27 * time.Second) // 00:00:33
		a.kill()
		killed := time.Now()
		time.Sleep(D + 2*time.Second)
		runs := c.all()
		if len(runs) < 2 || runs[1].replica != "b" {
			t.Fatalf("nobody took over: %+v", runs)
		}
		if late := runs[1].start.Sub(killed); late > D+2*time.Second {
			t.Errorf("taken over after %s", late)
		}
		if runs[0].end.IsZero() || !errors.Is(runs[0].cause, store.ErrLost) {
			t.Fatalf("the old run ended at %s with %v", runs[0].end, runs[0].cause)
		}
		if !runs[0].end.Before(runs[1].start) {
			t.Errorf("the old run ended at %s, the new one began at %s", runs[0].end, runs[1].start)
		}
		if runs[1].Token <= runs[0].Token {
			t.Errorf("token %d after %d", runs[1].Token, runs[0].Token)
		}
		outcomes := c.outcomes("work")
		if len(outcomes) < 2 || outcomes[0] != "abandoned 00:00:05 its runner died" || !strings.HasPrefix(outcomes[1], "missed 00:00:05-") {
			t.Errorf("got %q", outcomes)
		}
	})
}

func TestDeadLeaderIsReplaced(t *testing.T) {
	for after := range 10 {
		inCluster(t, func(c *cluster) {
			all := map[string]*replica{}
			for _, name := range []string{"a", "b", "c"} {
				all[name] = c.start(name, leader())
			}
			time.Sleep(time.Minute + time.Duration(after)*510*time.Millisecond)
			all[c.all()[0].replica].kill()
			killed := time.Now()
			time.Sleep(D + 2*time.Second)
			runs := c.succession(2)
			if took := runs[1].start.Sub(killed); took > D+1500*time.Millisecond {
				t.Errorf("replaced after %s", took)
			}
			if !errors.Is(runs[0].cause, store.ErrLost) {
				t.Errorf("the old term ended with %v", runs[0].cause)
			}
		})
	}
}

func TestRerunRepeatsTickElsewhere(t *testing.T) {
	for name, end := range map[string]func(*replica){"dies": func(r *replica) { r.kill() }, "stops": func(r *replica) { r.stop() }} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			time.Sleep(59 * time.Minute)
			a := c.start("a", rerun(work("0 * * * *", time.Hour)))
			time.Sleep(time.Minute + time.Second)
			c.start("b", rerun(work("0 * * * *", time.Second)))
			time.Sleep(time.Minute)
			end(a)
			time.Sleep(D + 3*time.Second)
			runs := c.all()
			if len(runs) != 2 || !runs[1].Tick.Equal(runs[0].Tick) || runs[1].Attempt != 2 {
				t.Fatalf("got %+v", runs)
			}
			c.wantOutcomes("work", "succeeded 01:00:00")
		})
	}
}

// A run that an outage has ended did not fail: its runner was cut off.
func TestRerunRepeatsLostRun(t *testing.T) {
	for _, helper := range []bool{false, true} {
		inCluster(t, func(c *cluster) {
			job := rerun(work("0 * * * *", 40*time.Second))
			a := c.start("a", job)
			time.Sleep(time.Hour + time.Second)
			if helper {
				c.start("b", job)
			}
			time.Sleep(5 * time.Second)
			a.tap.meet(fail(errNetwork))
			time.Sleep(20 * time.Second)
			a.tap.meet(nil)
			time.Sleep(3 * time.Minute)
			if got := c.outcomes("work"); !slices.Equal(got, []string{"succeeded 01:00:00"}) {
				t.Errorf("with a second replica: %t: got %q", helper, got)
			}
		})
	}
}

func TestAbandonedRunIsToldInTime(t *testing.T) {
	inCluster(t, func(c *cluster) {
		time.Sleep(59 * time.Minute)
		a := c.start("a", work("0 * * * *", time.Hour))
		time.Sleep(time.Minute + time.Second)
		b := c.start("b", work("0 * * * *", time.Hour))
		time.Sleep(time.Minute)
		a.kill()
		time.Sleep(D + time.Minute + time.Second)
		b.wantLines(1, "level=WARN", "outcome=abandoned", "its runner died", "runner=a")
		c.wantOutcomes("work", "abandoned 01:00:00 its runner died")
	})
}

// long is a job that takes half an hour.
func long() soloist.Job {
	return rerun(work("@daily", 30*time.Minute))
}

// A long run survives any number of orderly deploys: they are no deaths.
func TestDeploysAreNoDeaths(t *testing.T) {
	inCluster(t, func(c *cluster) {
		time.Sleep(23*time.Hour + 59*time.Minute)
		replica := c.start("a", long())
		for i := range 8 {
			time.Sleep(3 * time.Minute)
			replica.stop()
			replica = c.start(string(rune('b'+i)), long())
		}
		time.Sleep(40 * time.Minute)
		c.wantOutcomes("work", "succeeded 00:00:00")
		for i, r := range c.all() {
			if r.Attempt != i+1 {
				t.Errorf("run %d is attempt %d", i+1, r.Attempt)
			}
		}
		if r := c.record("work"); r.Run.Attempt != 9 || r.Run.Deaths != 0 {
			t.Errorf("attempt %d, %d deaths", r.Run.Attempt, r.Run.Deaths)
		}
	})
}

// Five deaths give a tick up, however often it was stopped in between. The next
// tick begins at zero.
func TestFiveDeathsEndTick(t *testing.T) {
	inCluster(t, func(c *cluster) {
		time.Sleep(23*time.Hour + 59*time.Minute)
		for i := range 9 {
			r := c.start(string(rune('a'+i)), long())
			time.Sleep(3 * time.Minute)
			if i%2 == 0 {
				r.kill()
			}
			r.stop()
		}
		c.start("z", long())
		time.Sleep(3 * time.Minute)
		if got := c.outcomes("work"); !slices.Equal(got, []string{"abandoned 00:00:00 its runner died"}) || len(c.all()) != 9 {
			t.Errorf("got %q after %d runs", got, len(c.all()))
		}
		time.Sleep(25 * time.Hour)
		if r := c.record("work"); r.Run.Deaths != 0 || r.Run.Attempt != 1 || r.Run.Status != store.Succeeded {
			t.Errorf("the next tick: %s, attempt %d, %d deaths", r.Run.Status, r.Run.Attempt, r.Run.Deaths)
		}
	})
}

// A run that needs more time than any call has is not called for ever.
func TestTickTooLongForCallsIsGivenUp(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.replica("a", long())
		a.wake()
		time.Sleep(24 * time.Hour)
		for range 8 {
			ctx, cancel := context.WithTimeout(c.t.Context(), 10*time.Minute)
			if _, err := a.RunDue(ctx, soloist.Wake{}); err != nil && !strings.Contains(err.Error(), "deadline") {
				t.Error(err)
			}
			cancel()
		}
		if got := c.outcomes("work"); !slices.Equal(got, []string{"abandoned 00:00:00 out of time, stopped"}) || len(c.all()) != 5 {
			t.Errorf("got %q after %d runs", got, len(c.all()))
		}
	})
}

// A ledger is every outcome that was ever written for a job, as the store saw it.
type ledger struct {
	t        *testing.T
	outcomes []store.Outcome
	seen     map[string]bool
}

// spy has the ledger learn of each record of a replica that the store accepts.
func (l *ledger) spy(r *replica) {
	r.tap.write = func(record []byte, apply func() error) error {
		err := apply()
		if err == nil {
			l.add(record)
		}
		return err
	}
}

func (l *ledger) add(b []byte) {
	var r store.Record
	if err := json.Unmarshal(b, &r); err != nil {
		l.t.Error(err)
		return
	}
	for _, f := range slices.Backward(r.History) {
		key := fmt.Sprint(f.From, f.Tick, f.Status, f.Token)
		if !l.seen[key] {
			l.seen[key] = true
			l.outcomes = append(l.outcomes, f)
		}
	}
}

// check returns how many ticks have each outcome, after checking that each tick
// of the period up to the watermark has exactly one.
func (l *ledger) check(every time.Duration, r store.Record) map[store.Status]int {
	l.t.Helper()
	counts := map[store.Status]int{}
	slices.SortFunc(l.outcomes, func(a, b store.Outcome) int { return a.Tick.Compare(b.Tick) })
	through := r.Created
	for _, f := range l.outcomes {
		first := f.Tick
		if !f.From.IsZero() {
			first = f.From.Truncate(every).Add(every)
		}
		if want := through.Truncate(every).Add(every); !first.Equal(want) {
			l.t.Errorf("%s begins at %s, want %s", f.Status, first, want)
		}
		n := int(f.Tick.Sub(first)/every) + 1
		if f.Count > 0 && f.Count != n {
			l.t.Errorf("%s up to %s counts %d ticks, want %d", f.Status, f.Tick, f.Count, n)
		}
		counts[f.Status] += n
		through = f.Tick
	}
	if !through.Equal(r.Watermark) {
		l.t.Errorf("the last outcome is of %s, the watermark is %s", through, r.Watermark)
	}
	for status, n := range counts {
		if r.Counts[status] != int64(n) {
			l.t.Errorf("%d ticks %s, but the record counts %d", n, status, r.Counts[status])
		}
	}
	return counts
}

// A day with restarts, kills and outages, each night a month and under each other pair of policies three days: every tick
// has one outcome, and nothing is silent.
func TestEachTickHasOneOutcome(t *testing.T) {
	const every = 5 * time.Minute
	for _, missed := range []soloist.MissedPolicy{soloist.RunLatest, soloist.RunAll, soloist.SkipMissed} {
		for _, interrupted := range []soloist.InterruptedPolicy{soloist.Abandon, soloist.Rerun} {
			days, first := 1, missed == soloist.RunLatest && interrupted == soloist.Abandon
			switch {
			case nightly.Runs() && first:
				days = 30
			case nightly.Runs():
				days = 3
			case !first:
				continue
			}
			beside(t, fmt.Sprintf("missed %q interrupted %q", missed, interrupted), func(t *testing.T, c *cluster) {
				rnd := rand.New(rand.NewPCG(1, 2))
				l := &ledger{t: t, seen: map[string]bool{}}
				job := soloist.Job{Name: "work", Schedule: "@every 5m", Lease: time.Minute, Missed: missed, Interrupted: interrupted,
					Do: func(ctx context.Context, run *soloist.Run) error {
						d := time.Minute
						if run.Tick.Unix()/300%13 == 0 {
							d = 9 * time.Minute
						}
						return pause(ctx, d)
					}}
				trouble(c, rnd, days, func(name string) *replica {
					r := c.replica(name, job)
					l.spy(r)
					return c.launch(r)
				})
				c.stopAll()
				r := c.record("work")
				counts := l.check(every, r)
				if behind := time.Since(r.Watermark); behind > 15*time.Minute {
					t.Errorf("the watermark is %s behind", behind)
				}
				starts := map[time.Time]int{}
				for _, run := range c.all() {
					if starts[run.Tick]++; starts[run.Tick] > 1 && interrupted == soloist.Abandon {
						t.Errorf("tick %s was started %d times", run.Tick, starts[run.Tick])
					}
				}
				t.Log(counts)
				if counts[store.Succeeded] < days*150 || counts[store.Missed] == 0 && missed != soloist.RunAll || len(starts) < days*150 {
					t.Errorf("not much of %d days: %v", days, counts)
				}
				if (counts[store.Skipped] == 0) != (missed == soloist.RunAll) {
					t.Errorf("skipped for overlap under %q: %v", missed, counts)
				}
			})
		}
	}
}

// trouble passes days of kills, stops, starts and outages, and then half
// a day in which all is well.
func trouble(c *cluster, rnd *rand.Rand, days int, launch func(name string) *replica) {
	var up []*replica
	n := 0
	begin := func() { n++; up = append(up, launch(fmt.Sprint("r", n))) }
	for end := time.Now().Add(time.Duration(days) * 24 * time.Hour); time.Now().Before(end); {
		time.Sleep(time.Duration(rnd.ExpFloat64() * float64(2*time.Hour)))
		switch i := rnd.IntN(10); {
		case len(up) < 3 && i < 6:
			begin()
		case len(up) == 0:
		case i < 7: // never heard of again
			k := rnd.IntN(len(up))
			up[k].kill()
			up[k].stop() // what is left of it reaches nobody
			up = slices.Delete(up, k, k+1)
		case i < 9:
			k := rnd.IntN(len(up))
			up[k].stop()
			up = slices.Delete(up, k, k+1)
		default: // the store is out of reach for all
			for _, r := range up {
				r.tap.cut.Store(true)
			}
			time.Sleep(time.Duration(rnd.ExpFloat64() * float64(20*time.Minute)))
			for _, r := range up {
				r.tap.cut.Store(false)
			}
		}
	}
	begin()
	time.Sleep(12 * time.Hour)
}
