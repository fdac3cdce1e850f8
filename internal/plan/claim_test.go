package plan

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/internal/record"
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
func told(r *record.Record) (out []string) {
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

// What a replica writes that has the lease, after the tick 00:00:10 was settled.
func TestClaim(t *testing.T) {
	var o outcomes
	paused := []record.Span{{From: clockTime("00:00:25"), To: clockTime("00:00:45")}}
	for name, tt := range map[string]struct {
		through, now string       // empty: 00:00:10, and 00:01:00
		tick         string       // a tick that was claimed
		status       event.Status // of its run; empty: the runner died
		attempt      int          // zero: the first
		deaths       int
		p            Policy
		before       []Predecessor
		pauses       []record.Span
		every        string // empty: 10s
		old          bool   // another definition is in force
		since        string // from then on; empty: from before the start of this replica
		due          string // its next tick; empty: none
		claims       string // empty: none
		asAttempt    int    // zero: the first
		told         []string
	}{
		"nothing due":    {now: "00:00:19"},
		"due":            {now: "00:00:20", claims: "00:00:20"},
		"late":           {now: "00:00:29", claims: "00:00:20"},
		"missed one":     {now: "00:00:31", claims: "00:00:30", told: []string{"missed 00:00:20 a newer one was due"}},
		"missed some":    {now: "00:01:00", claims: "00:01:00", told: []string{"missed 00:00:10-00:00:50(4) a newer one was due"}},
		"within window":  {now: "00:00:22", p: Policy{Late: Late{Start: 2 * time.Second}}, claims: "00:00:20"},
		"outside window": {now: "00:00:23", p: Policy{Late: Late{Start: 2 * time.Second}}, told: []string{"missed 00:00:20 past the starting deadline"}},
		"skip: on time":  {now: "00:00:23", p: Policy{Late: Late{Missed: SkipMissed}, Lease: 5 * time.Second}, claims: "00:00:20"},
		"skip: too late": {now: "00:00:26", p: Policy{Late: Late{Missed: SkipMissed}, Lease: 5 * time.Second}, told: []string{"missed 00:00:20 past the starting deadline"}},
		"all: first":     {now: "00:00:51", p: Policy{Late: Late{Missed: RunAll}}, claims: "00:00:20"},
		"all: window":    {now: "00:00:51", p: Policy{Late: Late{Missed: RunAll, Start: 21 * time.Second}}, claims: "00:00:30", told: []string{"missed 00:00:20 past the starting deadline"}},
		"all: too many":  {now: "01:00:00", p: Policy{Late: Late{Missed: RunAll}}, claims: "00:43:30", told: []string{"missed 00:00:10-00:43:20(259) too many were due"}},
		"all: as many as are run": {now: "01:00:00", p: Policy{Late: Late{Missed: RunAll, Start: 995 * time.Second}}, claims: "00:43:30",
			told: []string{"missed 00:00:10-00:43:20(259) past the starting deadline"}},
		"died: abandoned": {tick: "00:00:20", now: "00:00:22", told: []string{"abandoned 00:00:20 its runner died"}},
		"died: and more": {tick: "00:00:20", now: "00:00:52", claims: "00:00:50",
			told: []string{"missed 00:00:20-00:00:40(2) a newer one was due", "abandoned 00:00:20 its runner died"}},
		"died: rerun": {tick: "00:00:20", now: "00:00:52", p: Policy{Interrupted: Rerun}, claims: "00:00:20", asAttempt: 2},
		"died: rerun in time": {tick: "00:00:20", now: "00:01:00", p: Policy{Interrupted: Rerun, Late: Late{Start: 40 * time.Second}},
			claims: "00:00:20", asAttempt: 2},
		"died: too late": {tick: "00:00:20", now: "00:01:01", p: Policy{Interrupted: Rerun, Late: Late{Start: 40 * time.Second}}, claims: "00:01:00",
			told: []string{"missed 00:00:20-00:00:50(3) a newer one was due", "abandoned 00:00:20 its runner died, and the starting deadline has passed"}},
		"died: the last attempt there is": {tick: "00:00:20", attempt: record.MaxAttempt, now: "00:00:22",
			p: Policy{Interrupted: Rerun}, told: []string{"abandoned 00:00:20 its runner died"}},
		"died often: the next tick": {through: "00:00:20", tick: "00:00:20", attempt: 5, deaths: 4, now: "00:00:31", p: Policy{Interrupted: Rerun},
			claims: "00:00:30", told: []string{"abandoned 00:00:20 its runner died"}},
		"died: it is settled": {through: "00:00:20", tick: "00:00:20", now: "00:00:31", p: Policy{Interrupted: Rerun},
			claims: "00:00:30", told: []string{"abandoned 00:00:20 its runner died"}},
		"stopped: too late": {tick: "00:00:20", status: event.Abandoned, now: "00:01:01",
			p: Policy{Interrupted: Rerun, Late: Late{Start: 40 * time.Second}}, claims: "00:01:00",
			told: []string{"missed 00:00:20-00:00:50(3) a newer one was due", "abandoned 00:00:20 not run again: the starting deadline has passed"}},
		"stalled: too late": {tick: "00:00:20", status: event.Stalled, now: "00:01:01",
			p: Policy{Interrupted: Rerun, Late: Late{Start: 40 * time.Second}}, claims: "00:01:00",
			told: []string{"missed 00:00:20-00:00:50(3) a newer one was due", "stalled 00:00:20 not run again: the starting deadline has passed"}},
		"stalled, and its end is not known": {through: "00:00:20", tick: "00:00:20", status: event.Stalled, now: "00:00:35", p: Policy{Late: Late{Start: 2 * time.Second}},
			told: []string{"missed 00:00:30 past the starting deadline"}},
		"died: too often": {tick: "00:00:20", attempt: 5, deaths: 4, now: "00:00:22", p: Policy{Interrupted: Rerun}, told: []string{"abandoned 00:00:20 its runner died"}},
		"stopped often":   {tick: "00:00:20", attempt: 9, deaths: 3, now: "00:00:22", p: Policy{Interrupted: Rerun}, claims: "00:00:20", asAttempt: 10},
		"other deaths":    {tick: "00:00:20", attempt: 2, deaths: 4, now: "00:00:22", p: Policy{Interrupted: Rerun}, claims: "00:00:20", asAttempt: 3},
		"paused":          {now: "00:00:31", p: Policy{Paused: true}, told: []string{"skipped 00:00:10-00:00:30(2) paused"}},
		"Paused: died": {tick: "00:00:20", now: "00:00:22", p: Policy{Paused: true, Interrupted: Rerun},
			told: []string{"abandoned 00:00:20 its runner died"}},
		"replace, died": {tick: "00:00:20", now: "00:00:31", p: Policy{Overlap: Replace, Interrupted: Rerun}, claims: "00:00:30",
			told: []string{"abandoned 00:00:20 its runner died, and a newer tick was due"}},
		"replace, stopped": {tick: "00:00:20", status: event.Abandoned, now: "00:00:31", p: Policy{Overlap: Replace, Interrupted: Rerun}, claims: "00:00:30",
			told: []string{"abandoned 00:00:20 not run again: a newer tick was due"}},
		"replace, stalled": {tick: "00:00:20", status: event.Stalled, now: "00:00:31", p: Policy{Overlap: Replace, Interrupted: Rerun}, claims: "00:00:30",
			told: []string{"stalled 00:00:20 not run again: a newer tick was due"}},
		"replace, no newer one yet":  {tick: "00:00:20", now: "00:00:29", p: Policy{Overlap: Replace, Interrupted: Rerun}, claims: "00:00:20", asAttempt: 2},
		"replace, it is the newest":  {tick: "00:00:20", status: event.Abandoned, now: "00:00:22", p: Policy{Overlap: Replace, Interrupted: Rerun}, claims: "00:00:20", asAttempt: 2},
		"one: the old tick is first": {tick: "00:00:20", now: "00:00:31", p: Policy{Overlap: QueueOne, Interrupted: Rerun}, claims: "00:00:20", asAttempt: 2},
		"after: nothing known":       {p: Policy{After: []string{"a"}}},
		"after: running":             {before: []Predecessor{predecessor("a", o.one("00:00:10", won))}},
		"after: succeeded":           {before: []Predecessor{predecessor("a", o.one("00:00:20", won))}, claims: "00:00:20"},
		"after: failed":              {before: []Predecessor{predecessor("a", o.one("00:00:20", lost))}, told: []string{"skipped 00:00:20 a failed"}},
		"after: failed, any":         {p: Policy{AfterAny: true}, before: []Predecessor{predecessor("a", o.one("00:00:20", lost))}, claims: "00:00:20"},
		"after: ahead of its clock":  {now: "00:00:29", before: []Predecessor{predecessor("a", o.one("00:00:20", lost).one("00:00:30", won))}, told: []string{"skipped 00:00:20 a failed"}},
		"after: each status": {before: []Predecessor{predecessor("a", o.one("00:00:20", event.Stalled).one("00:00:30", event.Abandoned).one("00:00:40", event.Cancelled).one("00:00:50", event.Skipped))},
			told: []string{"skipped 00:00:50 a skipped", "skipped 00:00:40 a cancelled", "skipped 00:00:30 a abandoned", "skipped 00:00:20 a stalled"}},
		"after: failed in a row": {before: []Predecessor{predecessor("a", o.one("00:00:20", lost).one("00:00:30", lost).one("00:00:40", won))}, claims: "00:00:40",
			told: []string{"skipped 00:00:10-00:00:30(2) a failed"}},
		"after: a range": {before: []Predecessor{predecessor("a", o.until("00:00:10", "00:00:40", event.Missed).one("00:00:50", won))}, claims: "00:00:50",
			told: []string{"skipped 00:00:10-00:00:40(3) a missed"}},
		"after: a range, any": {p: Policy{AfterAny: true}, before: []Predecessor{predecessor("a", o.until("00:00:00", "00:00:40", event.Missed))}, claims: "00:00:40",
			told: []string{"missed 00:00:10-00:00:30(2) a newer one was due"}},
		"after: newest success": {before: []Predecessor{predecessor("a", o.one("00:00:20", won).one("00:00:30", lost).one("00:00:40", won).one("00:00:50", lost))}, claims: "00:00:40",
			told: []string{"skipped 00:00:30 a failed", "missed 00:00:20 a newer one was due"}},
		"after: all: oldest success": {p: Policy{Late: Late{Missed: RunAll}}, before: []Predecessor{predecessor("a", o.one("00:00:20", lost).one("00:00:30", won).one("00:00:40", won))}, claims: "00:00:30",
			told: []string{"skipped 00:00:20 a failed"}},
		"after: all: too many": {now: "01:00:00", p: Policy{Late: Late{Missed: RunAll}, AfterAny: true}, before: []Predecessor{predecessor("a", o.until("00:00:10", "01:00:00", event.Skipped))}, claims: "00:43:30",
			told: []string{"missed 00:00:10-00:43:20(259) too many were due"}},
		"after: by hand is no tick":      {before: []Predecessor{predecessor("a", o.one("00:00:10", won).byHand("00:00:20").byHand("00:00:31"))}},
		"after: by hand after a failure": {before: []Predecessor{predecessor("a", o.one("00:00:20", lost).byHand("00:00:31"))}, told: []string{"skipped 00:00:20 a failed"}},
		"after: forgotten": {before: []Predecessor{predecessor("a", o.one("00:00:40", won))}, claims: "00:00:40",
			told: []string{"missed 00:00:10-00:00:30(2) the outcome of a is not known"}},
		"after: forgotten, any": {p: Policy{AfterAny: true}, before: []Predecessor{{Job: "a", Watermark: clockTime("00:00:30")}},
			told: []string{"missed 00:00:10-00:00:30(2) the outcome of a is not known"}},
		"after: a gap": {before: []Predecessor{predecessor("a", o.one("00:00:20", won).one("00:00:40", lost))}, claims: "00:00:20"},
		"after: within deadline of the end": {p: Policy{Late: Late{Start: 35 * time.Second}}, before: []Predecessor{predecessor("a", o.one("00:00:20", won))},
			claims: "00:00:20"},
		"after: past deadline of the end": {p: Policy{Late: Late{Start: 34 * time.Second}}, before: []Predecessor{predecessor("a", o.one("00:00:20", won))},
			told: []string{"missed 00:00:20 past the starting deadline"}},
		"after: deadline from sight": {now: "00:01:30", p: Policy{Late: Late{Start: 30 * time.Second}, AfterAny: true}, before: []Predecessor{predecessor("a", o.until("00:00:10", "00:00:30", event.Missed))},
			claims: "00:00:30", told: []string{"missed 00:00:20 a newer one was due"}},
		"after: deadline from each sight": {now: "00:01:30", p: Policy{Late: Late{Start: 30 * time.Second, Missed: RunAll}, AfterAny: true},
			before: []Predecessor{{Job: "a", Watermark: clockTime("00:00:50"), History: outcomes{}.until("00:00:10", "00:00:50", event.Skipped),
				Seen: []Seen{{clockTime("00:00:30"), clockTime("00:00:59")}, {clockTime("00:00:40"), clockTime("00:01:00")}, {clockTime("00:00:50"), clockTime("00:01:10")}}}},
			claims: "00:00:40", told: []string{"missed 00:00:10-00:00:30(2) past the starting deadline"}},
		"after: skip: one lease": {p: Policy{Late: Late{Missed: SkipMissed}, Lease: 30 * time.Second}, before: []Predecessor{predecessor("a", o.one("00:00:20", won))},
			told: []string{"missed 00:00:20 past the starting deadline"}},
		"after: both succeeded": {before: []Predecessor{predecessor("a", o.one("00:00:20", won).one("00:00:30", won)), predecessor("b", o.one("00:00:20", won))}, claims: "00:00:20"},
		"after: one is running": {before: []Predecessor{predecessor("a", o.one("00:00:20", won)), predecessor("b", o.one("00:00:10", won))}},
		"after: one has failed": {before: []Predecessor{predecessor("a", o.one("00:00:20", won)), predecessor("b", o.one("00:00:20", lost))}, told: []string{"skipped 00:00:20 b failed"}},
		"after: forgotten before a range": {before: []Predecessor{predecessor("a", outcomes{}.until("00:00:20", "00:00:40", lost))},
			told: []string{"skipped 00:00:20-00:00:40(2) a failed", "missed 00:00:20 the outcome of a is not known"}},
		"after: one is forgotten": {before: []Predecessor{predecessor("a", o.one("00:00:20", won)), predecessor("b", o.until("00:00:20", "00:00:40", lost))},
			told: []string{"missed 00:00:20 the outcome of b is not known"}},
		"after: the last of both counts": {p: Policy{Late: Late{Start: 30 * time.Second}}, before: []Predecessor{predecessor("a", o.one("00:00:20", won)),
			{Job: "b", Watermark: clockTime("00:00:20"), History: []event.Outcome{{Tick: clockTime("00:00:20"), Status: won, End: clockTime("00:00:50")}}}}, claims: "00:00:20"},
		"after: paused by its settings": {p: Policy{Paused: true}, before: []Predecessor{predecessor("a", o.one("00:00:20", won).one("00:00:30", lost))},
			told: []string{"skipped 00:00:10-00:00:30(2) paused"}},
		"after: in a pause": {pauses: []record.Span{{From: clockTime("00:00:15"), To: clockTime("00:00:35")}}, before: []Predecessor{predecessor("a", o.one("00:00:20", won).one("00:00:30", lost).one("00:00:40", won))},
			claims: "00:00:40", told: []string{"skipped 00:00:10-00:00:30(2) paused"}},
		"after: forgotten in a pause": {pauses: paused, before: []Predecessor{predecessor("a", o.one("00:00:40", won).one("00:00:50", won))},
			claims: "00:00:50", told: []string{"skipped 00:00:20-00:00:40(2) paused", "missed 00:00:20 the outcome of a is not known"}},
		"after: in a pause of both": {p: Policy{Late: Late{Start: 30 * time.Second}}, pauses: paused,
			before: []Predecessor{predecessor("a", o.one("00:00:20", won).until("00:00:20", "00:00:50", event.Skipped))},
			told:   []string{"skipped 00:00:50 a skipped", "skipped 00:00:20-00:00:40(2) paused", "missed 00:00:20 past the starting deadline"}},
		"after: before a failure in a pause": {pauses: paused, before: []Predecessor{predecessor("a", o.one("00:00:20", won).one("00:00:30", lost))},
			claims: "00:00:20"},
		"after: before a success in a pause": {pauses: paused, before: []Predecessor{predecessor("a", o.one("00:00:20", won).one("00:00:30", won))},
			told: []string{"skipped 00:00:30 paused", "missed 00:00:20 a newer one was due"}},
		"after: died: rerun in time": {tick: "00:00:20", p: Policy{Interrupted: Rerun, Late: Late{Start: 35 * time.Second}}, before: []Predecessor{predecessor("a", o.one("00:00:20", won))}, claims: "00:00:20", asAttempt: 2},
		"after: died: too late": {tick: "00:00:20", p: Policy{Interrupted: Rerun, Late: Late{Start: 34 * time.Second}}, before: []Predecessor{predecessor("a", o.one("00:00:20", won))},
			told: []string{"abandoned 00:00:20 its runner died, and the starting deadline has passed"}},
		"after: died: abandoned": {tick: "00:00:20", before: []Predecessor{predecessor("a", o.one("00:00:20", won))}, told: []string{"abandoned 00:00:20 its runner died"}},
		// The first tick of an old schedule came due at 00:00:20, and the new one counts from now.
		"changed":                                    {old: true, due: "00:00:20", now: "00:01:05", told: []string{"missed 00:00:10-00:01:05 the schedule changed"}},
		"changed, and the other started later":       {old: true, since: "00:00:01", due: "00:00:20", now: "00:01:05"},
		"changed, and the other started at once too": {old: true, since: "00:00:00", due: "00:00:20", now: "00:01:05"}, // the hashes decide
		"changed: paused by its settings": {old: true, due: "00:00:20", now: "00:01:05", p: Policy{Paused: true},
			told: []string{"skipped 00:00:10-00:01:05 paused"}},
		"changed: a pause": {old: true, due: "00:00:20", now: "00:01:05", pauses: []record.Span{{From: clockTime("00:00:15"), To: clockTime("00:00:35")}},
			told: []string{"missed 00:00:35-00:01:05 the schedule changed", "skipped 00:00:10-00:00:35 paused"}},
		"changed: two pauses without a gap": {old: true, due: "00:00:20", now: "00:01:05",
			pauses: []record.Span{{From: clockTime("00:00:15"), To: clockTime("00:00:35")}, {From: clockTime("00:00:35"), To: clockTime("00:00:45")}},
			told:   []string{"missed 00:00:45-00:01:05 the schedule changed", "skipped 00:00:10-00:00:45 paused"}},
		"changed: a pause that goes on": {old: true, due: "00:00:20", now: "00:01:05", pauses: []record.Span{{From: clockTime("00:00:15"), To: clockTime("00:01:05")}},
			told: []string{"skipped 00:00:10-00:01:05 paused"}},
		"changed: a pause after the first": {old: true, due: "00:00:20", now: "00:01:05", pauses: paused, told: []string{"missed 00:00:10-00:01:05 the schedule changed"}},
		// The tick of 01:00:00 came due while a schedule was edited. If it is also the newest of the new schedule, it is owed as after
		// a restart; else the new schedule counts from the moment of the change, and RunAll runs no tick from before it.
		"changed: both name it": {through: "00:50:00", old: true, due: "01:00:00", every: "20m", now: "01:00:05", claims: "01:00:00",
			told: []string{"missed 00:50:00-00:59:59 the schedule changed"}},
		"changed: a new job":   {through: "00:40:05", old: true, due: "00:50:00", every: "5m", now: "00:50:05", claims: "00:50:00", told: []string{"missed 00:40:05-00:49:59 the schedule changed"}},
		"changed: a singleton": {through: "00:40:05", old: true, every: "20m", now: "01:00:05", told: []string{"missed 00:40:05-01:00:05 the schedule changed"}},
		"changed: another tick": {through: "00:50:00", old: true, due: "01:00:00", every: "11m", now: "01:00:05",
			told: []string{"missed 00:50:00-01:00:05 the schedule changed"}},
		"changed: not due yet": {through: "00:50:00", old: true, due: "01:00:00", every: "20m", now: "00:53:00", told: []string{"missed 00:50:00-00:53:00 the schedule changed"}},
		"changed: several due": {through: "00:50:00", old: true, due: "01:00:00", every: "20m", now: "01:20:50", told: []string{"missed 00:50:00-01:20:50 the schedule changed"}},
		"changed: all": {through: "00:50:00", old: true, due: "01:00:00", every: "1m", p: Policy{Late: Late{Missed: RunAll}}, now: "03:00:05",
			told: []string{"missed 00:50:00-03:00:05 the schedule changed"}},
		"changed: past its deadline": {through: "00:50:00", old: true, due: "01:00:00", every: "20m", p: Policy{Late: Late{Start: 5 * time.Minute}}, now: "01:08:00",
			told: []string{"missed 01:00:00 past the starting deadline", "missed 00:50:00-00:59:59 the schedule changed"}},
		"changed: after a death": {through: "00:40:05", tick: "00:50:00", old: true, due: "01:00:00", every: "20m", now: "01:00:05", claims: "01:00:00",
			told: []string{"missed 00:50:00-00:59:59 the schedule changed", "abandoned 00:50:00 its runner died"}},
		"changed: after a stop": {through: "00:40:05", tick: "00:50:00", status: event.Abandoned, old: true, due: "01:00:00", every: "20m", p: Policy{Interrupted: Rerun}, now: "01:00:05",
			claims: "01:00:00", told: []string{"missed 00:50:00-00:59:59 the schedule changed", "abandoned 00:50:00 not run again"}},
	} {
		t.Run(name, func(t *testing.T) {
			tt.p.Ticks, tt.p.Spec = every(cmp.Or(tt.every, "10s")), "new"
			for _, b := range tt.before {
				tt.p.After = append(tt.p.After, b.Job)
			}
			r := &record.Record{Watermark: clockTime(cmp.Or(tt.through, "00:00:10")), Token: 5, Run: record.Run{Status: event.Succeeded}}
			if r.Definition.Spec = "new"; tt.old {
				r.Definition.Spec = "old"
			}
			if tt.since != "" {
				r.Definition.Since = clockTime(tt.since)
			}
			if tt.due != "" {
				r.Due = clockTime(tt.due)
			}
			if tt.tick != "" {
				r.Run = record.Run{Tick: clockTime(tt.tick), Attempt: max(1, tt.attempt), Deaths: tt.deaths, Status: cmp.Or(tt.status, event.Running), Claimed: clockTime(tt.tick).Add(5 * time.Second)}
			}
			v := View{Record: r, Now: clockTime(cmp.Or(tt.now, "00:01:00")), Since: midnight, Before: tt.before, Control: record.JobControl{Pauses: tt.pauses}}
			next, todo := tt.p.Claim(v)
			if todo != (tt.claims != "" || tt.told != nil) {
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
				if todo && next.Record.MayRun() { // each process would hold off again, until its tick is too late
					t.Error("a run whose end is not known is left open")
				}
				return
			}
			got := next.Record
			if !got.Run.Tick.Equal(clockTime(tt.claims)) || got.Run.Attempt != max(1, tt.asAttempt) || got.Token != 6 || got.Run.Status != event.Running {
				t.Errorf("claims %s as attempt %d with token %d", got.Run.Tick, got.Run.Attempt, got.Token)
			}
			if !got.Watermark.Before(got.Run.Tick) {
				t.Errorf("the claimed tick %s is settled already", got.Run.Tick)
			}
			if want := map[bool]int{true: deaths(r)}[got.Run.Attempt > 1]; got.Run.Deaths != want {
				t.Errorf("%d deaths are counted, want %d: those of this tick", got.Run.Deaths, want)
			}
		})
	}
}

// A count that stopped says so, and one that came to the limit by itself is
// exact.
func TestTheCountOfALongRange(t *testing.T) {
	for n, want := range map[int]event.Outcome{maxCount - 1: {Count: maxCount - 1}, maxCount: {Count: maxCount}, maxCount + 1: {Count: maxCount, AtLeast: true}} {
		p := Policy{Ticks: every("10s")}
		r := &record.Record{Watermark: midnight, Run: record.Run{Status: event.Succeeded}}
		next, _ := p.Claim(View{Record: r, Now: midnight.Add(time.Duration(n+1) * 10 * time.Second)})
		if got := next.Record.History[0]; got.Count != want.Count || got.AtLeast != want.AtLeast {
			t.Errorf("%d ticks are told as %d, at least: %t", n, got.Count, got.AtLeast)
		}
	}
}

// An older replica of the definition in force claims without making it older: else a replica of another definition, started in
// between, would take the job. The claim answers the mark of one.
func TestAClaimNeverMakesItsDefinitionOlder(t *testing.T) {
	mine, younger := clockTime("00:05:00"), clockTime("00:07:00")
	for name, tt := range map[string]struct {
		p       Policy
		r       record.Record
		request string
	}{
		"a tick is due":    {Policy{Ticks: every("10s")}, record.Record{Run: record.Run{Status: event.Succeeded}}, ""},
		"a run by hand":    {Policy{Ticks: every("10s")}, record.Record{Run: record.Run{Status: event.Succeeded}}, "by hand"},
		"a further run":    {Policy{Ticks: every("10s"), Interrupted: Rerun}, record.Record{Run: record.Run{Status: event.Running, Tick: clockTime("00:00:20"), Attempt: 1}}, ""},
		"a singleton":      {Policy{}, record.Record{Run: record.Run{Status: event.Succeeded}}, ""},
		"a dead singleton": {Policy{}, record.Record{Run: record.Run{Status: event.Running, Attempt: 1}}, ""},
	} {
		for written, want := range map[time.Time]time.Time{younger: younger, mine: mine, midnight: mine} {
			tt.p.Spec = "spec"
			tt.r.Definition = record.Definition{Spec: "spec", Since: written, Mark: record.Mark{Spec: "older", Since: midnight}}
			tt.r.Watermark, tt.r.Token = clockTime("00:00:10"), 5
			next, _ := tt.p.Claim(View{Record: &tt.r, Now: clockTime("00:00:31"), Since: mine, Request: tt.request})
			if got := next.Record.Definition; !next.Run || !got.Since.Equal(want) || got.Mark != (record.Mark{}) {
				t.Errorf("%s, since %s: claims %t, %+v, want since %s", name, written.Format("15:04"), next.Run, got, want.Format("15:04"))
			}
		}
	}
}

// A resume leaves alone what is not over: that may be the failure that pauses the job.
func TestLastOver(t *testing.T) {
	for name, tt := range map[string]struct {
		p      Policy
		status event.Status
		paused bool // the job has paused itself before
		want   int64
	}{
		"has failed":            {Policy{}, event.Failed, false, 5},
		"has stalled":           {Policy{}, event.Stalled, false, 5},
		"runs":                  {Policy{}, event.Running, false, 4},
		"stopped, waits":        {Policy{Interrupted: Rerun}, event.Abandoned, false, 4},
		"stalled, waits":        {Policy{Interrupted: Rerun}, event.Stalled, false, 4},
		"waits, and has paused": {Policy{Interrupted: Rerun}, event.Stalled, true, 5},
	} {
		tt.p.Ticks, tt.p.PauseAfter, tt.p.Late.Start, tt.p.Spec = every("10m"), 1, time.Minute, "mine"
		r := running()
		if tt.status != event.Running {
			r = Finish(&tt.p, &r, tt.status, Stopped, clockTime("00:00:20"), clockTime("00:00:20"), record.JobControl{})
		}
		if tt.paused {
			r.Orders.Paused = record.SelfPause{At: clockTime("00:00:15"), Token: 5}
		}
		if got := LastOver(&r); got != tt.want {
			t.Errorf("%s: the resume is about the runs up to %d, want %d", name, got, tt.want)
		}
		orders := record.JobControl{Resumed: record.Resume{At: clockTime("00:01:00"), Token: tt.want}}
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
		change func(*record.Record)
		told   string
	}{
		"died": {func(*record.Record) {}, "abandoned 00:00:10 its runner died, and a run was ordered in the pause"},
		"stopped": {func(r *record.Record) { r.Run.Status = event.Abandoned },
			"abandoned 00:00:10 not run again: a run was ordered in the pause"},
		"unlocked": {func(r *record.Record) { r.Run.Unlocked = record.Unlocked{By: "ann", At: midnight} },
			"abandoned 00:00:10 unlocked by ann, and a run was ordered in the pause"},
	} {
		p := Policy{Ticks: every("1h"), Spec: "mine", Interrupted: Rerun}
		pause := record.Pause{At: clockTime("00:00:15")}
		byHand, ordered := record.JobControl{Pause: pause}, record.JobControl{Pause: pause}
		ordered.Requests = []record.Request{{Seq: 1, Name: "x", At: clockTime("00:00:30"), Until: clockTime("01:00:00")}}
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
	r.Run.Status, r.Failures, r.Orders.Paused = event.Failed, 1, record.SelfPause{At: clockTime("00:00:11"), Token: 5}
	resumed := record.JobControl{Resumed: record.Resume{At: clockTime("00:00:15"), Token: 5}}
	next, _ := p.Claim(View{Record: &r, Now: clockTime("00:00:25"), Request: "x", Control: resumed})
	got, want := next.Record.Orders, record.Span{From: clockTime("00:00:11"), To: clockTime("00:00:15")}
	if !next.Run || !got.Paused.At.IsZero() || !slices.Equal(got.Pauses, []record.Span{want}) {
		t.Errorf("got %+v", next.Record)
	}
}

// grid is a schedule: each multiple of a period since the day before.
type grid time.Duration

func every(period string) grid {
	d, _ := time.ParseDuration(period)
	return grid(d)
}

func (g grid) Last(at time.Time) time.Time {
	first := midnight.AddDate(0, 0, -1)
	return first.Add(at.Sub(first).Truncate(time.Duration(g)))
}
func (g grid) Next(after time.Time) time.Time { return g.Last(after).Add(time.Duration(g)) }
func (g grid) Count(after, to time.Time, limit int) int {
	return min(limit, max(0, int(g.Last(to).Sub(g.Last(after))/time.Duration(g))))
}
