package soak_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist/store"
)

// A ledger that nothing can be wrong with would be worth nothing: each of these
// has one mistake of its record, around the night in which the clocks go back.
func TestLedgerNotices(t *testing.T) {
	zone := berlin(t)
	from := time.Date(2028, 10, 27, 0, 0, 0, 0, zone)
	over := stretch{from, from.AddDate(0, 0, 5)}
	c := nightly.write(stretch{from.AddDate(0, 0, -2), from.AddDate(0, 0, 7)}, zone)
	tick := func(day int) time.Time {
		if day <= 2 {
			return time.Date(2028, 10, 27+day, 0, 30, 0, 0, time.UTC)
		}
		return time.Date(2028, 10, 27+day, 1, 30, 0, 0, time.UTC)
	}
	ran := func(day int) store.Outcome { return store.Outcome{Tick: tick(day), Status: store.Succeeded} }
	for _, one := range []struct {
		name     string
		want     string // of the complaint; empty: there is none
		outcomes []store.Outcome
		through  time.Time // of the last record; zero: the tick of the last outcome
		counted  int64     // ticks that succeeded, as the record has it, more than there were
	}{
		{"all is well", "", []store.Outcome{ran(0), {From: tick(0), Tick: tick(3), Count: 3, Status: store.Missed}, ran(4)}, time.Time{}, 0},
		{"a tick has no fate", "has no fate", []store.Outcome{ran(0), ran(1), ran(3), ran(4)}, time.Time{}, 0},
		{"the night of the change has none", "has no fate", []store.Outcome{ran(0), ran(1), {From: tick(2), Tick: tick(4), Count: 2, Status: store.Missed}}, time.Time{}, 0},
		{"a tick has two", "{succeeded  false} and {failed  false}", []store.Outcome{ran(0), ran(1), ran(2),
			{Tick: tick(2), Status: store.Failed, Token: 7}, ran(3), ran(4)}, time.Time{}, 0},
		{"a tick has the same twice", "and {succeeded  false}", []store.Outcome{ran(0), ran(1), ran(2), ran(2), ran(3), ran(4)}, time.Time{}, 0},
		{"the second time of the fold", "is no tick", []store.Outcome{ran(0), ran(1), ran(2), {Tick: tick(2).Add(time.Hour), Status: store.Succeeded}, ran(3), ran(4)}, time.Time{}, 0},
		{"a range has one too many", "4 ticks are missed", []store.Outcome{ran(0), {From: tick(0), Tick: tick(3), Count: 4, Status: store.Missed}, ran(4)}, time.Time{}, 0},
		{"the watermark moves back", "moves back", []store.Outcome{ran(0), ran(1), ran(2), ran(3), ran(4)}, tick(2), 0},
		{"the record counts another", "the record counts 6 ticks succeeded, and told of 5", []store.Outcome{ran(0), ran(1), ran(2), ran(3), ran(4)}, time.Time{}, 1},
	} {
		t.Run(one.name, func(t *testing.T) {
			var told []string
			l := &ledger{over: over, accounts: map[string]*account{}, bad: func(format string, args ...any) {
				told = append(told, fmt.Sprintf(format, args...))
			}}
			r := store.Record{Job: "report", Watermark: from, Counts: map[store.Status]int64{}}
			l.write(&r, c)
			for i, f := range one.outcomes {
				n := int64(1)
				if !f.From.IsZero() {
					n = int64(f.Count)
				}
				r.Counts[f.Status] += n
				r.Watermark, r.History = f.Tick, append([]store.Outcome{f}, r.History...)
				if last := i == len(one.outcomes)-1; last && !one.through.IsZero() {
					r.Watermark = one.through
				}
				l.write(&r, c)
			}
			r.Counts[store.Succeeded] += one.counted
			s := l.accounts["report"].sum()
			if one.want == "" && len(told) == 0 && s.ticks == 5 && s.of(store.Succeeded, "") == 2 && s.of(store.Missed, "") == 3 {
				return
			}
			if all := strings.Join(told, "\n"); one.want == "" || !strings.Contains(all, one.want) {
				t.Errorf("the ledger says %q, want %q; %+v", all, one.want, s)
			}
		})
	}
}

// A changed schedule makes a new chapter: ticks of the old one up to the change,
// and of the new one after it.
func TestChapters(t *testing.T) {
	from := time.Date(2028, 5, 1, 0, 0, 0, 0, berlin(t))
	over := stretch{from, from.Add(6 * time.Hour)}
	room := stretch{from.Add(-time.Hour), over.to.Add(time.Hour)}
	old, now := onTheHour.write(room, berlin(t)), atHalfPast.write(room, berlin(t))
	var told []string
	l := &ledger{over: over, accounts: map[string]*account{}, bad: func(format string, args ...any) {
		told = append(told, fmt.Sprintf(format, args...))
	}}
	at := func(hour, minute int) time.Time { return from.Add(time.Duration(hour*60+minute) * time.Minute) }
	r := store.Record{Job: "sync", Definition: store.Definition{Spec: "old"}, Watermark: at(0, -10), Counts: map[store.Status]int64{}}
	l.write(&r, old)
	enter := func(spec string, c calendar, outcomes ...store.Outcome) {
		for _, f := range outcomes {
			r.History = append([]store.Outcome{f}, r.History...)
			r.Definition.Spec, r.Watermark = spec, f.Tick
			if f.Reason != changed {
				r.Counts[f.Status]++
			}
		}
		l.write(&r, c)
	}
	enter("old", old, store.Outcome{Tick: at(0, 0), Status: store.Succeeded})
	enter("old", old, store.Outcome{Tick: at(1, 0), Status: store.Succeeded})
	enter("new", now, store.Outcome{From: at(1, 0), Tick: at(3, 10).Add(7), Status: store.Missed, Reason: changed})
	for hour := 3; hour < 6; hour++ {
		enter("new", now, store.Outcome{Tick: at(hour, 30), Status: store.Failed})
	}
	s := l.accounts["sync"].sum()
	if s.ticks != 7 || s.of(store.Missed, changed) != 2 || s.of(store.Succeeded, "") != 2 || s.of(store.Failed, "") != 3 || len(told) > 0 {
		t.Errorf("%+v %q", s, told)
	}
}
