package schedule_test

import (
	"strconv"
	"strings"
	"time"
)

// The oracle is written from docs/schedules.md alone: it looks at every instant of a stretch of time, one after the other,
// asks package time what the wall clock shows, and knows nothing of offsets, calendars or bit sets.

// rule is a text as the oracle reads it: numbers, *, ranges, steps and lists, and the items for ends of months and weekdays.
type rule struct {
	hit            [6]map[int]bool // second minute hour day-of-month month day-of-week
	special        [6][]func(date time.Time) bool
	anyDom, anyDow bool
	and, fixed     bool
	every          int64 // seconds of an @every; 0: none
}

// newRules returns one rule for each text of a union.
func newRules(text string) (all []rule) {
	text, and := strings.CutPrefix(text, "ncrontab ")
	for one := range strings.SplitSeq(text, ";") {
		all = append(all, newRule(strings.TrimSpace(one), and))
	}
	return all
}

func newRule(text string, and bool) rule {
	r := rule{and: and}
	if every, ok := strings.CutPrefix(text, "@every "); ok {
		d, _ := time.ParseDuration(every)
		r.every = int64(d / time.Second)
		return r
	}
	words := strings.Fields(text)
	if len(words) == 5 {
		words = append([]string{"0"}, words...)
	}
	r.fixed = !strings.ContainsAny(strings.Join(words[:3], " "), "*/")
	r.anyDom, r.anyDow = words[3] == "*", words[5] == "*"
	ends := [6][2]int{{0, 59}, {0, 59}, {0, 23}, {1, 31}, {1, 12}, {0, 6}}
	for i, word := range words {
		r.hit[i] = map[int]bool{}
		for part := range strings.SplitSeq(word, ",") {
			switch {
			case i == 3 && strings.ContainsAny(part, "LW"):
				r.special[i] = append(r.special[i], monthDay(part))
			case i == 5 && strings.ContainsAny(part, "L#"):
				r.special[i] = append(r.special[i], weekDay(part))
			default:
				addPart(r.hit[i], part, ends[i][0], ends[i][1])
			}
		}
	}
	if r.hit[5][7] {
		r.hit[5][0] = true
	}
	return r
}

// monthDay reads L, L-3, 15W, LW and L-3W. It looks for the day that is meant in the month of the date.
func monthDay(part string) func(time.Time) bool {
	plain, weekday := strings.CutSuffix(part, "W")
	number, fromEnd := strings.CutPrefix(plain, "L")
	n, _ := strconv.Atoi(strings.TrimPrefix(number, "-"))
	return func(date time.Time) bool {
		var meant time.Time
		for at := firstOf(date); at.Month() == date.Month(); at = at.AddDate(0, 0, 1) {
			if !fromEnd && at.Day() == n || fromEnd && at.AddDate(0, 0, n+1).Equal(firstOf(date).AddDate(0, 1, 0)) {
				meant = at
			}
		}
		if weekday && !meant.IsZero() {
			meant = nearestWeekday(meant)
		}
		return meant.Equal(date)
	}
}

// nearestWeekday goes away from a day in both directions, within its month.
func nearestWeekday(meant time.Time) time.Time {
	for n := 0; ; n++ {
		for _, at := range []time.Time{meant.AddDate(0, 0, -n), meant.AddDate(0, 0, n)} {
			if at.Month() == meant.Month() && at.Weekday() != time.Saturday && at.Weekday() != time.Sunday {
				return at
			}
		}
	}
}

// weekDay reads 5L and 5#3, also with names. It counts such days of the week up to the date, and after it.
func weekDay(part string) func(time.Time) bool {
	name, nth, counted := strings.Cut(strings.TrimSuffix(part, "L"), "#")
	n, _ := strconv.Atoi(nth)
	return func(date time.Time) bool {
		day := date.Weekday()
		if name != strconv.Itoa(int(day)) && name != strings.ToLower(day.String()[:3]) && (name != "7" || day != time.Sunday) {
			return false
		}
		before, after := 0, 0
		for at := firstOf(date); at.Month() == date.Month(); at = at.AddDate(0, 0, 1) {
			if at.Weekday() == day && at.Before(date) {
				before++
			} else if at.Weekday() == day && at.After(date) {
				after++
			}
		}
		return counted && before+1 == n || !counted && after == 0
	}
}

func firstOf(date time.Time) time.Time { return date.AddDate(0, 0, 1-date.Day()) }

func addPart(hit map[int]bool, part string, least, most int) {
	span, by, stepped := strings.Cut(part, "/")
	from, to, ranged := strings.Cut(span, "-")
	lo, hi, step := least, most, 1
	if span != "*" {
		lo, _ = strconv.Atoi(from)
		if hi = lo; ranged {
			hi, _ = strconv.Atoi(to)
		} else if stepped {
			hi = most
		}
	}
	if stepped {
		step, _ = strconv.Atoi(by)
	}
	for n := lo; n <= hi; n += step {
		hit[n] = true
	}
}

// day says whether a date matches.
func (r *rule) day(t time.Time) bool {
	if !r.hit[4][int(t.Month())] {
		return false
	}
	dom, dow := r.hit[3][t.Day()], r.hit[5][int(t.Weekday())]
	for _, is := range r.special[3] {
		dom = dom || is(t)
	}
	for _, is := range r.special[5] {
		dow = dow || is(t)
	}
	if r.and || r.anyDom || r.anyDow {
		return dom && dow
	}
	return dom || dow
}

// stretch is what the clock on the wall of one zone shows during some time, unit by unit (minutes or seconds). A reading is
// the number of units since 1970 of the time in UTC that would look the same.
type stretch struct {
	unit  int64
	begin int64     // of the comparison, in units
	at    []int64   // instants in units, from a day before begin
	shown []int64   // the reading at each
	fresh [][]int64 // readings seen or passed at each for the first time
}

func newStretch(loc *time.Location, begin, end time.Time, unit time.Duration) *stretch {
	s := &stretch{unit: int64(unit / time.Second)}
	s.begin = begin.Unix() / s.unit
	seen := map[int64]bool{}
	for t := s.begin - 86400/s.unit; t <= end.Unix()/s.unit; t++ {
		w := time.Unix(t*s.unit, 0).In(loc)
		r := time.Date(w.Year(), w.Month(), w.Day(), w.Hour(), w.Minute(), w.Second(), 0, time.UTC).Unix() / s.unit
		from := r
		if n := len(s.shown); n > 0 && s.shown[n-1] < r {
			from = s.shown[n-1] + 1 // what the clock jumped over is due now
		}
		var fresh []int64
		for x := from; x <= r; x++ {
			if !seen[x] {
				seen[x] = true
				fresh = append(fresh, x)
			}
		}
		s.at, s.shown, s.fresh = append(s.at, t), append(s.shown, r), append(s.fresh, fresh)
	}
	return s
}

// ticks returns the instants of the stretch at which one of the rules is due, each once.
func (s *stretch) ticks(all []rule) []int64 {
	due := make([]bool, len(s.at))
	for i := range all {
		s.mark(&all[i], due)
	}
	var list []int64
	for i, t := range s.at {
		if due[i] && t >= s.begin {
			list = append(list, t*s.unit)
		}
	}
	return list
}

// mark notes the instants at which a rule is due.
func (s *stretch) mark(r *rule, due []bool) {
	if r.every > 0 {
		for i, t := range s.at {
			due[i] = due[i] || t*s.unit%r.every == 0
		}
		return
	}
	days := map[int64]bool{}
	perDay := 86400 / s.unit
	last, lastDay := int64(-1), false
	tod := r.times(s.unit)
	match := func(x int64) bool {
		if !tod[x%perDay] {
			return false
		}
		d := x / perDay
		if d != last {
			hit, known := days[d]
			if !known {
				hit = r.day(time.Unix(d*86400, 0).UTC())
				days[d] = hit
			}
			last, lastDay = d, hit
		}
		return lastDay
	}
	for i := range s.at {
		if r.fixed {
			for _, x := range s.fresh[i] {
				due[i] = due[i] || match(x)
			}
		} else {
			due[i] = due[i] || match(s.shown[i])
		}
	}
}

// times says of each unit of a day whether it matches.
func (r *rule) times(unit int64) []bool {
	list := make([]bool, 86400/unit)
	for i := range list {
		sod := i * int(unit)
		list[i] = r.hit[0][sod%60] && r.hit[1][sod/60%60] && r.hit[2][sod/3600]
	}
	return list
}
