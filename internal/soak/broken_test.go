package soak_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/internal/record"
)

// TestLedgerNotices writes records with one mistake each, around the night in which the clocks go back.
func TestLedgerNotices(t *testing.T) {
	zone := load(t, "Europe/Berlin")
	from := time.Date(2028, 10, 27, 0, 0, 0, 0, zone)
	c := nightly.write(from.AddDate(0, 0, -2), from.AddDate(0, 0, 7), zone)
	tick := func(day int) time.Time {
		if day == 2 { // the first of the two times
			return time.Date(2028, 10, 29, 0, 30, 0, 0, time.UTC)
		}
		return time.Date(2028, 10, 27+day, 2, 30, 0, 0, zone)
	}
	ran := func(day int) event.Outcome { return event.Outcome{Tick: tick(day), Status: event.Succeeded} }
	missed := func(after, last, n int) event.Outcome {
		return event.Outcome{From: tick(after), Tick: tick(last), Count: n, Status: event.Missed}
	}
	for _, one := range []struct {
		name     string
		want     string // of the complaint; empty: there is none
		outcomes []event.Outcome
		mark     int   // the day of the last watermark; 0: that of the last outcome
		extra    int64 // successes that the record counts and has not had
	}{
		{"all is well", "", []event.Outcome{ran(0), missed(0, 3, 3), ran(4)}, 0, 0},
		{"a tick has no outcome", "has no outcome", []event.Outcome{ran(0), ran(1), ran(3), ran(4)}, 0, 0},
		{"the night of the change has none", "2 ticks are missed", []event.Outcome{ran(0), ran(1), missed(1, 4, 2)}, 0, 0},
		{"a tick has two", "is succeeded and failed", []event.Outcome{ran(0), ran(1), ran(2), {Tick: tick(2), Status: event.Failed, Token: 7}, ran(3), ran(4)}, 0, 0},
		{"a tick has the same twice", "is succeeded and succeeded", []event.Outcome{ran(0), ran(1), ran(2), ran(2), ran(3), ran(4)}, 0, 0},
		{"the second of two times", "is no tick", []event.Outcome{ran(0), ran(1), ran(2), {Tick: tick(2).Add(time.Hour), Status: event.Succeeded}, ran(3), ran(4)}, 0, 0},
		{"a range has one too many", "4 ticks are missed", []event.Outcome{ran(0), missed(0, 3, 4), ran(4)}, 0, 0},
		{"the watermark moves back", "moves back", []event.Outcome{ran(0), ran(1), ran(2), ran(3), ran(4)}, 2, 0},
		{"the record counts another", "counts 6 ticks succeeded, and has had 5", []event.Outcome{ran(0), ran(1), ran(2), ran(3), ran(4)}, 0, 1},
	} {
		t.Run(one.name, func(t *testing.T) {
			var all []string
			a := &account{job: "report", bad: func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }}
			r := record.Record{Watermark: from, Counts: map[event.Status]int64{}}
			a.write(&r, c)
			for i, f := range one.outcomes {
				r.Counts[f.Status] += max(1, int64(f.Count))
				r.Watermark, r.History = f.Tick, append([]event.Outcome{f}, r.History...)
				if one.mark > 0 && i == len(one.outcomes)-1 {
					r.Watermark = tick(one.mark)
				}
				a.write(&r, c)
			}
			r.Counts[event.Succeeded] += one.extra
			sum := a.sum(from.AddDate(0, 0, 5))
			if got := strings.Join(all, "\n"); one.want != "" && !strings.Contains(got, one.want) || one.want == "" && got != "" {
				t.Errorf("the ledger says %q, want %q", got, one.want)
			}
			if one.want == "" && (sum["succeeded"] != 2 || sum["missed"] != 3) {
				t.Errorf("the sum is %v", sum)
			}
		})
	}
}
