package ticks_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/soloist-go/soloist/calendar"
	"github.com/soloist-go/soloist/internal/schedule"
	"github.com/soloist-go/soloist/internal/ticks"
)

var full = flag.Bool("full", false, "compare all zones with the oracle, for some minutes")

// awkward zones: midnight gaps and folds, one of them at 00:01, one at 02:00 back to 23:00, 30 minutes, 2 hours, a lost date.
var awkward = []string{"America/New_York", "America/Santiago", "America/Havana", "Africa/Cairo", "Australia/Lord_Howe", "Pacific/Apia",
	"Antarctica/Troll", "Africa/Casablanca", "America/St_Johns", "America/Sao_Paulo", "Asia/Gaza", "America/Nuuk", "Antarctica/Casey", "UTC"}

var texts = []string{"0 0 * * *", "30 2 * * *", "59 23 * * *", "15 0,23 * * *", "0 */6 * * *", "30 * * * *", "*/20 0-3,22-23 * * *", "0 12 * * sat,sun", "0 1 1,15 * *",
	"30 0 13 * 5", "0 0 */2 * *", "5 30 2 * * *", "@every 7h", "@every 90m", "@every 25h", "0 3 31 * *",
	"*/10 */23 * * *", "0 0 */3 * * ; @every 31h", "0 0 */2 * * ; */20 23 2-30/2 * *"}

// some is a calendar of days that are drawn.
type some struct {
	name string
	has  func(day calendar.Day) bool
}

func (s *some) Name() string                   { return s.name }
func (s *some) Contains(day calendar.Day) bool { return s.has(day) }

func number(day calendar.Day) uint64 {
	return uint64(time.Date(day.Year, day.Month, day.Day, 0, 0, 0, 0, time.UTC).Unix() / 86400)
}

// drawn returns calendars of all kinds: single days, weekends, runs of any length, nearly all days.
func drawn() (all []calendar.Calendar) {
	all = append(all, calendar.Weekends())
	for i, share := range []uint64{3, 20, 50, 80, 97} {
		all = append(all, &some{fmt.Sprint("days ", share), func(day calendar.Day) bool { return rand.New(rand.NewPCG(number(day), uint64(i))).Uint64N(100) < share }})
	}
	for _, length := range []uint64{3, 9, 30, 31, 32, 33, 70} {
		all = append(all, &some{fmt.Sprint("runs ", length), func(day calendar.Day) bool { return number(day)%(length+5) < length }})
	}
	return all
}

type tally struct{ stretches, cases, ticks, probes atomic.Int64 }

func (c *tally) String() string {
	return fmt.Sprintf("%d stretches, %d cases in them, %d ticks, %d probes between", c.stretches.Load(), c.cases.Load(), c.ticks.Load(), c.probes.Load())
}

// draw returns limits of a case in a stretch.
func draw(r *rand.Rand, calendars []calendar.Calendar, begin, end time.Time) (l ticks.Limits) {
	pick := func() calendar.Calendar { return calendars[r.IntN(len(calendars))] }
	if r.IntN(10) > 0 {
		l.Except = append(l.Except, pick())
	}
	if r.IntN(4) == 0 {
		l.Except = append(l.Except, pick())
	}
	if r.IntN(4) == 0 {
		l.Only = append(l.Only, pick())
	}
	if len(l.Except)+len(l.Only) > 0 {
		l.Shift = []ticks.Shift{ticks.NoShift, ticks.ShiftNext, ticks.ShiftPrevious}[r.IntN(3)]
	}
	at := func() time.Time {
		return begin.Add(time.Duration(r.Int64N(int64(end.Sub(begin))))).Truncate(time.Hour / 4)
	}
	if r.IntN(4) == 0 {
		l.From = at()
	}
	if r.IntN(4) == 0 {
		if l.Until = at(); !l.Until.After(l.From) {
			l.Until = l.From.Add(time.Hour)
		}
	}
	return l
}

// compare checks one schedule with limits against the oracle, from begin to end.
func (c *tally) compare(t *testing.T, s *stretch, base *schedule.Schedule, l ticks.Limits, begin, end time.Time) {
	got, err := ticks.New(base, l)
	if err != nil {
		if !strings.Contains(err.Error(), "leave no tick") {
			t.Errorf("%s %+v: %v", base, l, err)
		}
		return
	}
	var all []time.Time
	for at := base.Next(begin.AddDate(0, 0, -34)); at.Before(end.AddDate(0, 0, 34)); at = base.Next(at) {
		all = append(all, at)
	}
	want := s.ticks(all, l)
	want = slices.DeleteFunc(want, func(t int64) bool { return t < begin.Unix() || t > end.Unix() })
	c.cases.Add(1)
	c.ticks.Add(int64(len(want)))
	var have []int64
	for at := got.Next(begin.Add(-1)); !at.IsZero() && !at.After(end); at = got.Next(at) {
		have = append(have, at.Unix())
	}
	if !slices.Equal(have, want) {
		for i := range max(len(have), len(want)) {
			if i >= len(have) || i >= len(want) || have[i] != want[i] {
				t.Errorf("%s: tick %d of %d: got %v, want %v", got, i, len(want), at(have, i), at(want, i))
				return
			}
		}
	}
	c.probe(t, got, want, begin, end)
}

func at(list []int64, i int) any {
	if i < len(list) {
		return time.Unix(list[i], 0).UTC()
	}
	return "none"
}

// probe asks around instants that are no ticks, and at ticks.
func (c *tally) probe(t *testing.T, got *ticks.Ticks, want []int64, begin, end time.Time) {
	check := func(x int64) bool {
		c.probes.Add(1)
		i, _ := slices.BinarySearch(want, x+1)
		next, last := got.Next(time.Unix(x, 999)), got.Last(time.Unix(x, 999))
		if i < len(want) && next.Unix() != want[i] || i == len(want) && !next.IsZero() && !next.After(end) ||
			i > 0 && last.Unix() != want[i-1] || i == 0 && !last.IsZero() && !last.Before(begin) {
			t.Errorf("%s around %v: got %v and %v, want %v and %v", got, time.Unix(x, 0).UTC(), last, next, at(want, max(i-1, 0)), at(want, i))
			return false
		}
		return true
	}
	for x := begin.Unix(); x <= end.Unix(); x += 5*3600 + 7*60 + 1 {
		if !check(x) {
			return
		}
	}
	for _, x := range want[:min(len(want), 200)] {
		if !check(x) || !check(x-1) {
			return
		}
	}
	if n := got.Count(begin.Add(-1), end, 1e6); n != len(want) {
		t.Errorf("%s: counted %d, want %d", got, n, len(want))
	}
}

// changes returns the instants at which the offset of a zone changes, with a key each: what has the same key shows the same.
func changes(loc *time.Location, from, to time.Time) (at []time.Time, keys []string) {
	for t := from; t.Before(to); {
		_, next := t.In(loc).ZoneBounds()
		if next.IsZero() || !next.Before(to) {
			break
		}
		if !next.After(t) { // the last day of a leap year: see schedule.newSpans
			t = t.Add(24 * time.Hour)
			continue
		}
		_, before := next.Add(-1).In(loc).Zone()
		if _, after := next.In(loc).Zone(); before != after {
			at, keys = append(at, next), append(keys, fmt.Sprint(next.Unix(), before, after))
		}
		t = next
	}
	return at, keys
}

func TestBruteForce(t *testing.T) {
	zones, cases, from, to := awkward, 8, year(2009), year(2013)
	if *full {
		text, err := os.ReadFile("../schedule/zones.txt")
		if err != nil {
			t.Fatal(err)
		}
		zones, cases, from, to = strings.Fields(string(text)), 30, year(2000), year(2038)
	}
	var c tally
	var seen sync.Map
	calendars := drawn()
	for _, zone := range zones {
		t.Run(strings.ReplaceAll(zone, "/", "-"), func(t *testing.T) {
			t.Parallel()
			c.zone(t, zone, calendars, cases, from, to, &seen)
		})
	}
	t.Cleanup(func() {
		if t.Log(&c); c.ticks.Load() < 1000 {
			t.Error("too little was compared")
		}
	})
}

// zone compares around each change of a zone, and once where there is none.
func (c *tally) zone(t *testing.T, zone string, calendars []calendar.Calendar, cases int, from, to time.Time, seen *sync.Map) {
	loc, err := time.LoadLocation(zone)
	if err != nil {
		t.Fatal(err)
	}
	at, keys := changes(loc, from, to)
	if len(at) == 0 {
		at, keys = []time.Time{from}, []string{zone}
	}
	r := rand.New(rand.NewPCG(uint64(len(zone)), uint64(zone[0])<<8|uint64(zone[len(zone)-1])))
	for i, change := range at {
		if _, old := seen.LoadOrStore(keys[i], zone); old {
			continue
		}
		if overMidnight(change.In(loc)) && change.Add(-1).In(loc).Day() != change.In(loc).Day() && (*full || change.Year() == 2010) {
			c.twice(t, loc, change)
		}
		begin, end := change.AddDate(0, 0, -10), change.AddDate(0, 0, 10)
		s := newStretch(loc, begin.AddDate(0, 0, -70), end.AddDate(0, 0, 70))
		c.stretches.Add(1)
		for range cases {
			base, err := schedule.Parse(texts[r.IntN(len(texts))], zone, "job")
			if err != nil {
				t.Error(err)
				continue
			}
			c.compare(t, s, base, draw(r, calendars, begin, end), begin, end)
		}
	}
}

// overMidnight reports whether a change of the clock shows midnight again, or what is before it.
func overMidnight(change time.Time) bool {
	_, before := change.Add(-1).Zone()
	_, after := change.Zone()
	day := func(offset int) int64 { return (change.Unix() + int64(offset)) / 86400 }
	return after < before && day(before) > day(after-1)
}

func year(n int) time.Time { return time.Date(n, 1, 1, 0, 0, 0, 0, time.UTC) }
