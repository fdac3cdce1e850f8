package plan

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/soloist-go/soloist/store"
)

var midnight = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)

func clockTime(s string) time.Time {
	at, err := time.Parse("15:04:05", s)
	if err != nil {
		panic(err)
	}
	return midnight.Add(at.Sub(at.Truncate(24 * time.Hour)))
}

// told is what was settled, newest first: "missed 00:00:10-00:00:30(2) reason".
func told(r *store.Record) (out []string) {
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
		tick         string       // a tick that was claimed
		status       store.Status // of its run; empty: the runner died
		attempt      int
		deaths       int
		p            Policy
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
		"within window":  {through: "00:00:10", now: "00:00:22", p: Policy{StartingDeadline: 2 * time.Second}, claims: "00:00:20", asAttempt: 1},
		"outside window": {through: "00:00:10", now: "00:00:23", p: Policy{StartingDeadline: 2 * time.Second}, told: []string{"missed 00:00:20 past the starting deadline"}},
		"skip: on time":  {through: "00:00:10", now: "00:00:23", p: Policy{Missed: SkipMissed, Lease: 5 * time.Second}, claims: "00:00:20", asAttempt: 1},
		"skip: too late": {through: "00:00:10", now: "00:00:26", p: Policy{Missed: SkipMissed, Lease: 5 * time.Second}, told: []string{"missed 00:00:20 past the starting deadline"}},
		"all: first":     {through: "00:00:10", now: "00:00:51", p: Policy{Missed: RunAll}, claims: "00:00:20", asAttempt: 1},
		"all: window":    {through: "00:00:10", now: "00:00:51", p: Policy{Missed: RunAll, StartingDeadline: 21 * time.Second}, claims: "00:00:30", asAttempt: 1, told: []string{"missed 00:00:20 past the starting deadline"}},
		"all: too many":  {through: "00:00:10", now: "01:00:00", p: Policy{Missed: RunAll}, claims: "00:43:30", asAttempt: 1, told: []string{"missed 00:00:10-00:43:20(259) too many were due"}},
		"all: as many as are run": {through: "00:00:10", now: "01:00:00", p: Policy{Missed: RunAll, StartingDeadline: 995 * time.Second}, claims: "00:43:30", asAttempt: 1,
			told: []string{"missed 00:00:10-00:43:20(259) past the starting deadline"}},
		"died: abandoned": {through: "00:00:10", tick: "00:00:20", attempt: 1, now: "00:00:22", told: []string{"abandoned 00:00:20 its runner died"}},
		"died: and more": {through: "00:00:10", tick: "00:00:20", attempt: 1, now: "00:00:52", claims: "00:00:50", asAttempt: 1,
			told: []string{"missed 00:00:20-00:00:40(2) a newer one was due", "abandoned 00:00:20 its runner died"}},
		"died: rerun": {through: "00:00:10", tick: "00:00:20", attempt: 1, now: "00:00:52", p: Policy{Interrupted: Rerun}, claims: "00:00:20", asAttempt: 2},
		"died: rerun in time": {through: "00:00:10", tick: "00:00:20", attempt: 1, now: "00:01:00", p: Policy{Interrupted: Rerun, StartingDeadline: 40 * time.Second},
			claims: "00:00:20", asAttempt: 2},
		"died: too late": {through: "00:00:10", tick: "00:00:20", attempt: 1, now: "00:01:01", p: Policy{Interrupted: Rerun, StartingDeadline: 40 * time.Second}, claims: "00:01:00", asAttempt: 1,
			told: []string{"missed 00:00:20-00:00:50(3) a newer one was due", "abandoned 00:00:20 its runner died, and the starting deadline has passed"}},
		"died: the last attempt there is": {through: "00:00:10", tick: "00:00:20", attempt: store.MaxAttempt, now: "00:00:22",
			p: Policy{Interrupted: Rerun}, told: []string{"abandoned 00:00:20 its runner died"}},
		"died often: the next tick": {through: "00:00:20", tick: "00:00:20", attempt: 5, deaths: 4, now: "00:00:31",
			p: Policy{Interrupted: Rerun}, claims: "00:00:30", asAttempt: 1, told: []string{"abandoned 00:00:20 its runner died"}},
		"died: it is settled": {through: "00:00:20", tick: "00:00:20", attempt: 1, now: "00:00:31", p: Policy{Interrupted: Rerun},
			claims: "00:00:30", asAttempt: 1, told: []string{"abandoned 00:00:20 its runner died"}},
		"stopped: too late": {through: "00:00:10", tick: "00:00:20", status: store.Abandoned, attempt: 1, now: "00:01:01",
			p: Policy{Interrupted: Rerun, StartingDeadline: 40 * time.Second}, claims: "00:01:00", asAttempt: 1,
			told: []string{"missed 00:00:20-00:00:50(3) a newer one was due", "abandoned 00:00:20 not run again: the starting deadline has passed"}},
		"stalled: too late": {through: "00:00:10", tick: "00:00:20", status: store.Stalled, attempt: 1, now: "00:01:01",
			p: Policy{Interrupted: Rerun, StartingDeadline: 40 * time.Second}, claims: "00:01:00", asAttempt: 1,
			told: []string{"missed 00:00:20-00:00:50(3) a newer one was due", "stalled 00:00:20 not run again: the starting deadline has passed"}},
		"died: too often": {through: "00:00:10", tick: "00:00:20", attempt: 5, deaths: 4, now: "00:00:22", p: Policy{Interrupted: Rerun}, told: []string{"abandoned 00:00:20 its runner died"}},
		"stopped often":   {through: "00:00:10", tick: "00:00:20", attempt: 9, deaths: 3, now: "00:00:22", p: Policy{Interrupted: Rerun}, claims: "00:00:20", asAttempt: 10},
		"other deaths":    {through: "00:00:10", tick: "00:00:20", attempt: 2, deaths: 4, now: "00:00:22", p: Policy{Interrupted: Rerun}, claims: "00:00:20", asAttempt: 3},
		"paused":          {through: "00:00:10", now: "00:00:31", p: Policy{Paused: true}, told: []string{"skipped 00:00:10-00:00:30(2) paused"}},
		"Paused: died": {through: "00:00:10", tick: "00:00:20", attempt: 1, now: "00:00:22", p: Policy{Paused: true, Interrupted: Rerun},
			told: []string{"abandoned 00:00:20 its runner died"}},
	} {
		t.Run(name, func(t *testing.T) {
			tt.p.Ticks = every("10s")
			r := &store.Record{Watermark: clockTime(tt.through), Token: 5, Run: store.Run{Status: store.Succeeded}}
			if tt.tick != "" {
				r.Run.Tick, r.Run.Attempt, r.Run.Deaths, r.Run.Status = clockTime(tt.tick), tt.attempt, tt.deaths, cmp.Or(tt.status, store.Running)
			}
			next, todo := tt.p.Claim(View{Record: r, Now: clockTime(tt.now)})
			if todo == tt.nothing {
				t.Fatalf("something to do: %t", todo)
			}
			if len(r.History) != 0 || r.Token != 5 {
				t.Error("the plan changed what it was made from")
			}
			if got := told(&next.Record); !slices.Equal(got, tt.told) {
				t.Errorf("settles %q, want %q", got, tt.told)
			}
			if next.Run != (tt.claims != "") {
				t.Fatalf("runs: %t", next.Run)
			}
			if !next.Run {
				return
			}
			got := next.Record
			if !got.Run.Tick.Equal(clockTime(tt.claims)) || got.Run.Attempt != tt.asAttempt || got.Token != 6 || got.Run.Status != store.Running {
				t.Errorf("claims %s as attempt %d with token %d", got.Run.Tick, got.Run.Attempt, got.Token)
			}
			if !got.Watermark.Before(got.Run.Tick) {
				t.Errorf("the claimed tick %s is settled already", got.Run.Tick)
			}
			if want := map[bool]int{true: min(tt.deaths, tt.attempt-1) + 1}[tt.asAttempt > 1]; got.Run.Deaths != want {
				t.Errorf("%d deaths are counted, want %d: those of this tick", got.Run.Deaths, want)
			}
		})
	}
}

// A count that stopped says so, and one that came to the limit by itself is
// exact.
func TestTheCountOfALongRange(t *testing.T) {
	for n, want := range map[int]store.Outcome{maxCount - 1: {Count: maxCount - 1}, maxCount: {Count: maxCount}, maxCount + 1: {Count: maxCount, AtLeast: true}} {
		p := Policy{Ticks: every("10s")}
		r := &store.Record{Watermark: midnight, Run: store.Run{Status: store.Succeeded}}
		next, _ := p.Claim(View{Record: r, Now: midnight.Add(time.Duration(n+1) * 10 * time.Second)})
		if got := next.Record.History[0]; got.Count != want.Count || got.AtLeast != want.AtLeast {
			t.Errorf("%d ticks are told as %d, at least: %t", n, got.Count, got.AtLeast)
		}
	}
}

func TestTheYoungerDefinitionCounts(t *testing.T) {
	p := Policy{Ticks: every("10s"), Spec: "mine"}
	r := &store.Record{Watermark: clockTime("00:00:10"), Definition: store.Definition{Spec: "theirs"}, Run: store.Run{Status: store.Succeeded}}
	now := clockTime("00:05:03")
	for since, yields := range map[string]bool{"00:04:00": false, "00:06:00": true, "00:05:00": true} {
		r.Definition.Since = clockTime(since)
		v := View{Record: r, Now: now, Since: clockTime("00:05:00")}
		next, todo := p.Claim(v)
		if p.Outdated(v) != yields || todo == yields {
			t.Errorf("since %s: yields %t, has to do %t", since, p.Outdated(v), todo)
		}
		if !yields && (next.Run || !next.Record.Watermark.Equal(now) || next.Record.Definition.Spec != "mine") {
			t.Errorf("since %s: got %+v", since, next)
		}
	}
}

// An older replica of the definition in force claims without making it older:
// else a replica of another definition, started in between, would take the job.
func TestAClaimNeverMakesItsDefinitionOlder(t *testing.T) {
	mine, younger := clockTime("00:05:00"), clockTime("00:07:00")
	for name, tt := range map[string]struct {
		p       Policy
		r       store.Record
		request string
	}{
		"a tick is due":    {Policy{Ticks: every("10s")}, store.Record{Run: store.Run{Status: store.Succeeded}}, ""},
		"a run by hand":    {Policy{Ticks: every("10s")}, store.Record{Run: store.Run{Status: store.Succeeded}}, "by hand"},
		"a further run":    {Policy{Ticks: every("10s"), Interrupted: Rerun}, store.Record{Run: store.Run{Status: store.Running, Tick: clockTime("00:00:20"), Attempt: 1}}, ""},
		"a singleton":      {Policy{}, store.Record{Run: store.Run{Status: store.Succeeded}}, ""},
		"a dead singleton": {Policy{}, store.Record{Run: store.Run{Status: store.Running, Attempt: 1}}, ""},
	} {
		for written, want := range map[time.Time]time.Time{younger: younger, mine: mine, midnight: mine} {
			tt.p.Spec = "spec"
			tt.r.Definition.Spec, tt.r.Definition.Since, tt.r.Watermark, tt.r.Token = "spec", written, clockTime("00:00:10"), 5
			next, _ := tt.p.Claim(View{Record: &tt.r, Now: clockTime("00:00:31"), Since: mine, Request: tt.request})
			if got := next.Record.Definition.Since; !next.Run || !got.Equal(want) {
				t.Errorf("%s, since %s: claims %t, since %s, want %s", name, written.Format("15:04"), next.Run, got.Format("15:04"), want.Format("15:04"))
			}
		}
	}
}

// A resume leaves alone what is not over: that may be the failure that pauses the job.
func TestLastOver(t *testing.T) {
	for name, tt := range map[string]struct {
		p      Policy
		status store.Status
		paused bool // the job has paused itself before
		want   int64
	}{
		"has failed":            {Policy{}, store.Failed, false, 5},
		"has stalled":           {Policy{}, store.Stalled, false, 5},
		"runs":                  {Policy{}, store.Running, false, 4},
		"stopped, waits":        {Policy{Interrupted: Rerun}, store.Abandoned, false, 4},
		"stalled, waits":        {Policy{Interrupted: Rerun}, store.Stalled, false, 4},
		"waits, and has paused": {Policy{Interrupted: Rerun}, store.Stalled, true, 5},
	} {
		tt.p.Ticks, tt.p.PauseAfter, tt.p.StartingDeadline, tt.p.Spec = every("10m"), 1, time.Minute, "mine"
		r := running()
		if tt.status != store.Running {
			r = tt.p.Finish(&r, tt.status, Stopped, clockTime("00:00:20"), clockTime("00:00:20"), store.JobControl{})
		}
		if tt.paused {
			r.Orders.Paused = store.SelfPause{At: clockTime("00:00:15"), Token: 5}
		}
		if got := LastOver(&r); got != tt.want {
			t.Errorf("%s: the resume is about the runs up to %d, want %d", name, got, tt.want)
		}
		orders := store.JobControl{Resumed: store.Resume{At: clockTime("00:01:00"), Token: tt.want}}
		next, _ := tt.p.Claim(View{Record: &r, Now: clockTime("00:02:00"), Control: orders}) // what has waited has its outcome now
		if failed, paused := HasFailed(&next.Record), selfPaused(&next.Record, orders); paused != (failed && tt.want == 4) {
			t.Errorf("%s: after its outcome it has failed: %t, and is paused: %t", name, failed, paused)
		}
	}
}

// While a job is paused, a run that is ordered takes the place of the attempt that a tick waits for: the record has room for
// one of them. The outcome still says what became of the attempt before.
func TestOrderedRunInPauseReplacesAttempt(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*store.Record)
		told   string
	}{
		"died": {func(*store.Record) {}, "abandoned 00:00:10 its runner died, and a run was ordered in the pause"},
		"stopped": {func(r *store.Record) { r.Run.Status = store.Abandoned },
			"abandoned 00:00:10 not run again: a run was ordered in the pause"},
		"unlocked": {func(r *store.Record) { r.Run.Unlocked = store.Unlocked{By: "ann", At: midnight} },
			"abandoned 00:00:10 unlocked by ann, and a run was ordered in the pause"},
	} {
		p := Policy{Ticks: every("1h"), Spec: "mine", Interrupted: Rerun}
		pause := store.Pause{At: clockTime("00:00:15")}
		byHand, ordered := store.JobControl{Pause: pause}, store.JobControl{Pause: pause}
		ordered.Requests = []store.Request{{Seq: 1, Name: "x", At: clockTime("00:00:30"), Until: clockTime("01:00:00")}}
		for how, v := range map[string]View{"ordered": {Control: ordered}, "by hand": {Request: "x", Control: byHand}} {
			r := running()
			tt.change(&r)
			v.Record, v.State, v.Now = &r, store.Expired, clockTime("00:00:40")
			next, _ := p.Claim(v)
			if got := told(&next.Record); !next.Run || next.Record.Run.Request != "x" || !slices.Equal(got, []string{tt.told}) {
				t.Errorf("%s, %s: claims %+v and settles %q, want %q", name, how, next.Record.Run, got, tt.told)
			}
		}
	}
}

// A run by hand notes that the job was resumed: the next resume counts that run, and would move the end of the pause.
func TestRunByHandNotesResume(t *testing.T) {
	p := Policy{Ticks: every("1h"), Spec: "mine", PauseAfter: 1}
	r := ended()
	r.Run.Status, r.Failures, r.Orders.Paused = store.Failed, 1, store.SelfPause{At: clockTime("00:00:11"), Token: 5}
	resumed := store.JobControl{Resumed: store.Resume{At: clockTime("00:00:15"), Token: 5}}
	next, _ := p.Claim(View{Record: &r, Now: clockTime("00:00:25"), Request: "x", Control: resumed})
	got, want := next.Record.Orders, store.Span{From: clockTime("00:00:11"), To: clockTime("00:00:15")}
	if !next.Run || !got.Paused.At.IsZero() || !slices.Equal(got.Pauses, []store.Span{want}) {
		t.Errorf("got %+v", next.Record)
	}
}

// A write that claims nothing closes a stalled run whose end is not known: nobody holds off for it any more. Else each process
// that is woken up with a short starting deadline would, until its tick is too late.
func TestStalledRunIsClosedByNextWrite(t *testing.T) {
	p := Policy{Ticks: every("10s"), Spec: "mine", Lease: 15 * time.Second, StartingDeadline: 2 * time.Second}
	r := running()
	r = p.Stall(&r, "quiet", clockTime("00:00:12"), store.JobControl{})
	next, todo := p.Claim(View{Record: &r, State: store.Expired, Now: clockTime("00:00:25")})
	if !todo || next.Run || next.Record.Run.Finished.IsZero() || next.Record.Run.Status != store.Stalled || next.Record.MayRun() {
		t.Errorf("runs %t: %+v", next.Run, next.Record.Run)
	}
}
