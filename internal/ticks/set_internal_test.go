package ticks

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist/calendar"
)

// The searches for a free day are compared with a walk, also across both ends of the years that calendars have.
func TestFreeDays(t *testing.T) {
	for _, outside := range []bool{false, true} {
		s := &set{outside: outside}
		for d := firstDay; d <= lastDay; d++ {
			if n := d - firstDay; n < 200 || n%97 < 90 || d > lastDay-70 {
				s.add(d)
			}
		}
		s.add(firstDay - 5)
		s.add(lastDay + 5)
		for _, d := range []int64{firstDay - 200, firstDay - 1, firstDay, firstDay + 1, firstDay + 64, firstDay + 300, firstDay + 5000, lastDay - 100, lastDay - 64, lastDay, lastDay + 1, lastDay + 2, lastDay + 100} {
			got, ok := s.freeFrom(d)
			if want, has := walk(s, d, 1); ok != has || ok && got != want {
				t.Errorf("outside %t, from %d: got %d, %t, want %d, %t", outside, d-firstDay, got-firstDay, ok, want-firstDay, has)
			}
			got, ok = s.freeUpTo(d)
			if want, has := walk(s, d, -1); ok != has || ok && got != want {
				t.Errorf("outside %t, up to %d: got %d, %t, want %d, %t", outside, d-firstDay, got-firstDay, ok, want-firstDay, has)
			}
		}
	}
}

func walk(s *set, d, step int64) (int64, bool) {
	for range 40_000 {
		if !s.has(d) {
			return d, true
		}
		d += step
	}
	return d, false
}

// slow is a calendar that waits before it answers.
type slow struct{ wait chan struct{} }

func (s *slow) Name() string               { return "slow" }
func (s *slow) Contains(calendar.Day) bool { <-s.wait; return true }

// A calendar that does not answer costs a program so much time and no more.
func TestSlowCalendar(t *testing.T) {
	c := &slow{make(chan struct{})}
	defer close(c.wait)
	_, err := askAll(c, time.Millisecond)
	if err == nil || !strings.Contains(err.Error(), "has not answered for each day from 2000 to 2099 within 1ms") {
		t.Errorf("got %v", err)
	}
}

// A calendar is asked once, however many jobs have it, and one that cannot be a key of a map is asked too.
func TestEachCalendarIsAskedOnce(t *testing.T) {
	c := &counting{}
	for range 3 {
		if _, err := ask(c); err != nil {
			t.Fatal(err)
		}
	}
	if want := int(lastDay-firstDay) + 1; c.asked != want {
		t.Errorf("it was asked %d times, want %d", c.asked, want)
	}
	s, err := ask(listed{{Year: 2026, Month: 5, Day: 1}})
	if d := time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC).Unix() / daySeconds; err != nil || !s.has(d) || s.has(d+1) {
		t.Errorf("a list: %v", err)
	}
}

type counting struct{ asked int }

func (c *counting) Name() string               { return fmt.Sprint("counting ", c.asked) }
func (c *counting) Contains(calendar.Day) bool { c.asked++; return false }

type listed []calendar.Day

func (l listed) Name() string                   { return "listed" }
func (l listed) Contains(day calendar.Day) bool { return slices.Contains(l, day) }
