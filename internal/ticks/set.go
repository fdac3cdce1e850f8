package ticks

import (
	"errors"
	"fmt"
	"math/bits"
	"reflect"
	"sync"
	"time"

	"github.com/soloist-go/soloist/calendar"
)

const daySeconds = 24 * 60 * 60

// Days are numbered from 1970-01-01 on, as schedule.Wall numbers them. Calendars are asked for these two and the days
// between:
var (
	firstDay = time.Date(calendar.FirstYear, 1, 1, 0, 0, 0, 0, time.UTC).Unix() / daySeconds
	lastDay  = time.Date(calendar.LastYear, 12, 31, 0, 0, 0, 0, time.UTC).Unix() / daySeconds
)

// dayOf returns the date of a day by its number.
func dayOf(d int64) calendar.Day { return calendar.DayOf(time.Unix(d*daySeconds, 0).UTC()) }

// A set has some of the days from firstDay to lastDay, as bits. All other days are in it if outside is true.
type set struct {
	bits    [(100*366 + 63) / 64]uint64
	outside bool
}

func (s *set) add(d int64) {
	if n := d - firstDay; n >= 0 && d <= lastDay {
		s.bits[n/64] |= 1 << (n % 64)
	}
}

func (s *set) has(d int64) bool {
	if d < firstDay || d > lastDay {
		return s.outside
	}
	n := d - firstDay
	return s.bits[n/64]>>(n%64)&1 == 1
}

// addAll adds the days of another set.
func (s *set) addAll(o *set) {
	for i, days := range o.bits {
		s.bits[i] |= days
	}
}

// addOthers adds the days from firstDay to lastDay that another set does not have.
func (s *set) addOthers(o *set) {
	for i, days := range o.bits {
		s.bits[i] |= ^days
	}
}

// freeFrom returns the first day from d on that is not in the set.
func (s *set) freeFrom(d int64) (int64, bool) {
	if d < firstDay {
		if !s.outside {
			return d, true
		}
		d = firstDay
	}
	for d <= lastDay {
		n := d - firstDay
		if free := ^s.bits[n/64] >> (n % 64); free != 0 {
			d += int64(bits.TrailingZeros64(free))
			break
		}
		d = min(d+64-n%64, lastDay+1)
	}
	return d, d <= lastDay || !s.outside
}

// freeUpTo returns the last day up to d that is not in the set.
func (s *set) freeUpTo(d int64) (int64, bool) {
	if d > lastDay {
		if !s.outside {
			return d, true
		}
		d = lastDay
	}
	for d >= firstDay {
		n := d - firstDay
		if free := ^s.bits[n/64] << (63 - n%64); free != 0 {
			return d - int64(bits.LeadingZeros64(free)), true
		}
		d -= n%64 + 1
	}
	return d, !s.outside
}

// patience is how long a calendar may take for all of its days.
const patience = 10 * time.Second

// known has what calendars have answered, by the calendar: many jobs may name the same one, and the pages of a program
// ask for its ticks time and again.
var known sync.Map // of *set

// ask returns the days of a calendar.
func ask(c calendar.Calendar) (*set, error) {
	comparable := reflect.ValueOf(c).Comparable()
	if comparable {
		if s, ok := known.Load(c); ok {
			return s.(*set), nil
		}
	}
	s, err := askAll(c, patience)
	if err == nil && comparable {
		known.Store(c, s)
	}
	return s, err
}

// askAll asks a calendar for its error and for each day. A calendar that hangs keeps its goroutine, which cannot be ended.
func askAll(c calendar.Calendar, patience time.Duration) (*set, error) {
	type answer struct {
		set *set
		err error
	}
	end, late := make(chan answer, 1), time.After(patience)
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		s := &set{}
		err := fill(s, c, stop)
		end <- answer{s, err}
	}()
	select {
	case a := <-end:
		return a.set, a.err
	case <-late:
		return nil, fmt.Errorf("has not answered for each day from %d to %d within %s", calendar.FirstYear, calendar.LastYear, patience)
	}
}

var errStopped = errors.New("stopped")

// fill adds to a set the days of a calendar.
func fill(s *set, c calendar.Calendar, stop <-chan struct{}) (err error) {
	d := firstDay - 1 // its error
	defer func() {
		switch p := recover(); {
		case p == nil:
		case d < firstDay:
			err = fmt.Errorf("panicked when it was asked for its error: %.200v", p)
		default:
			err = fmt.Errorf("panicked when it was asked for %s: %.200v", dayOf(d), p)
		}
	}()
	if wrong, ok := c.(interface{ Err() error }); ok {
		if err := wrong.Err(); err != nil {
			return err
		}
	}
	for d = firstDay; d <= lastDay; d++ {
		select {
		case <-stop:
			return errStopped
		default:
		}
		if c.Contains(dayOf(d)) {
			s.add(d)
		}
	}
	return nil
}
