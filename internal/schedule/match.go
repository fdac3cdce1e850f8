package schedule

import "time"

const day = 24 * 60 * 60

// clock is the time of day: which seconds, minutes and hours match.
type clock struct{ sec, min, hour uint64 }

// first returns the first second of the day that matches.
func (c *clock) first() int { return low(c.hour)*3600 + low(c.min)*60 + low(c.sec) }

// next returns the first match at or after a second of the day.
func (c *clock) next(sod int) (int, bool) {
	h, m, s := sod/3600, sod/60%60, sod%60
	if c.hour>>h&1 == 1 {
		if c.min>>m&1 == 1 {
			if rest := c.sec >> s; rest != 0 {
				return sod + low(rest), true
			}
		}
		if rest := c.min >> (m + 1); rest != 0 {
			return h*3600 + (m+1+low(rest))*60 + low(c.sec), true
		}
	}
	if rest := c.hour >> (h + 1); rest != 0 {
		return (h+1+low(rest))*3600 + low(c.min)*60 + low(c.sec), true
	}
	return 0, false
}

// dates is the day: bit n of month stands for the number n, and days[i][w] has the matching days of a month of 28+i days
// that begins on weekday w.
type dates struct {
	month uint64
	days  [4][7]uint64
	dom   monthDays
	dow   weekDays
	and   bool // both day fields must match
}

func newDates(dom monthDays, month uint64, dow weekDays, and bool) dates {
	d := dates{dom: dom, month: month, dow: dow, and: and}
	for i := range d.days {
		for w := range d.days[i] {
			a, b := dom.in(28+i, w), dow.in(28+i, w)
			if d.days[i][w] = a | b; and {
				d.days[i][w] = a & b
			}
		}
	}
	return d
}

// in returns the matching days of a month, which begins on a day, as bits.
func (d *dates) in(y int64, m int, first int64) uint64 {
	if d.month>>m&1 == 0 {
		return 0
	}
	return d.days[length(y, m)-28][weekday(first)]
}

// length returns the number of days of a month in the Gregorian calendar.
func length(y int64, m int) int {
	if m == 2 {
		if y%4 == 0 && (y%100 != 0 || y%400 == 0) {
			return 29
		}
		return 28
	}
	return 30 + (m+m>>3)&1
}

// civil returns the date of a day counted from 1970-01-01.
func civil(d int64) (y int64, m, dom int) {
	year, month, dom := time.Unix(d*day, 0).UTC().Date()
	return int64(year), int(month), dom
}

// weekday returns the weekday of a day counted from 1970-01-01, which was a Thursday; Sunday is 0.
func weekday(d int64) int { return int(d + 4 - 7*floor(d+4, 7)) }
