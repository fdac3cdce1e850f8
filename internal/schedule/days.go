package schedule

import (
	"math/bits"
	"strconv"
)

// monthDays are the days that the day-of-month field names.
type monthDays struct {
	plain    uint64 // bit n: day n
	last     uint64 // bit n: n days before the last day
	near     uint64 // bit n: the weekday nearest to day n
	nearLast uint64 // bit n: the weekday nearest to n days before the last day
}

// in returns the days of a month of so many days that begins on a weekday, Sunday being 0.
func (d *monthDays) in(length, first int) uint64 {
	set := d.plain | fromEnd(d.last, length)
	for rest := (d.near | fromEnd(d.nearLast, length)) & (2<<length - 2); rest != 0; rest &= rest - 1 {
		set |= 1 << nearest(low(rest), length, first)
	}
	return set & (2<<length - 2)
}

// fromEnd turns distances from the last day into days of the month.
func fromEnd(set uint64, length int) (days uint64) {
	for n := range length {
		days |= set >> n & 1 << (length - n)
	}
	return days
}

// nearest returns the day from Monday to Friday that is nearest to a day, in the same month.
func nearest(n, length, first int) int {
	switch (first + n - 1) % 7 {
	case 6: // Saturday
		if n == 1 {
			return 3
		}
		return n - 1
	case 0:
		if n == length {
			return n - 2
		}
		return n + 1
	}
	return n
}

// special returns the items that are no numbers, as cron text.
func (d *monthDays) special() (texts []string) {
	for _, group := range []struct {
		set          uint64
		before, name string
	}{{d.near, "", "W"}, {d.last, "L-", ""}, {d.nearLast, "L-", "W"}} {
		for _, n := range members(group.set) {
			text := group.before + strconv.Itoa(n)
			if text == "L-0" {
				text = "L"
			}
			texts = append(texts, text+group.name)
		}
	}
	return texts
}

// weekDays are the days that the day-of-week field names. Sunday is 0.
type weekDays struct {
	plain uint64 // bit n: each weekday n
	last  uint64 // bit n: the last weekday n of the month
	nth   uint64 // bit 7*i+n: weekday n number i+1 of the month
}

// in returns the days of a month of so many days that begins on a weekday.
func (d *weekDays) in(length, first int) (set uint64) {
	for i := range length {
		n := (first + i) % 7
		match := d.plain>>n | d.nth>>(i/7*7+n)
		if i+7 >= length {
			match |= d.last >> n
		}
		set |= match & 1 << (i + 1)
	}
	return set
}

// special returns the items that are no numbers, as cron text.
func (d *weekDays) special() (texts []string) {
	for _, n := range members(d.nth) {
		texts = append(texts, strconv.Itoa(n%7)+"#"+strconv.Itoa(n/7+1))
	}
	for _, n := range members(d.last) {
		texts = append(texts, strconv.Itoa(n)+"L")
	}
	return texts
}

// low and high are the positions of the lowest and the highest bit.
func low(b uint64) int  { return bits.TrailingZeros64(b) }
func high(b uint64) int { return bits.Len64(b) - 1 }
