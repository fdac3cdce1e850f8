package schedule_test

import (
	"strconv"
	"strings"
	"time"
)

// The oracle is written from the rules alone: it looks at every instant of a stretch of time, one after the other, asks
// package time what the wall clock shows, and knows nothing of offsets, calendars or bit sets.

// rule is a text as the oracle reads it: numbers, *, ranges, steps and lists only.
type rule struct {
	hit            [6]map[int]bool // second minute hour day-of-month month day-of-week
	anyDom, anyDow bool
	and, fixed     bool
}

func newRule(text string) rule {
	var r rule
	text, r.and = strings.CutPrefix(text, "ncrontab ")
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
			addPart(r.hit[i], part, ends[i][0], ends[i][1])
		}
	}
	if r.hit[5][7] {
		r.hit[5][0] = true
	}
	return r
}

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

// ticks returns the instants of the stretch at which a rule is due.
func (s *stretch) ticks(r rule) []int64 {
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
	var list []int64
	for i, t := range s.at {
		due := false
		if r.fixed {
			for _, x := range s.fresh[i] {
				due = due || match(x)
			}
		} else {
			due = match(s.shown[i])
		}
		if due && t >= s.begin {
			list = append(list, t*s.unit)
		}
	}
	return list
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
