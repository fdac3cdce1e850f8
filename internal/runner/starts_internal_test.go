package runner

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// Outcomes wait for what is about to start, and not for ever.
func TestOutcomesWaitForStarts(t *testing.T) {
	for _, c := range []struct {
		name string
		play func(s *starts) // what is about to start, and when it does
		want time.Duration   // that an outcome waits
	}{
		{"nothing starts", func(*starts) {}, 0},
		{"one starts", func(s *starts) { time.AfterFunc(10*time.Millisecond, s.add()) }, 10 * time.Millisecond},
		{"two start", func(s *starts) {
			a, b := s.add(), s.add()
			time.AfterFunc(10*time.Millisecond, a)
			time.AfterFunc(18*time.Millisecond, b)
		}, 26 * time.Millisecond},
		{"two start at once", func(s *starts) {
			a, b := s.add(), s.add()
			time.AfterFunc(10*time.Millisecond, a)
			time.AfterFunc(10*time.Millisecond, b)
		}, 10*time.Millisecond + startsShortest},
		{"two start far apart", func(s *starts) {
			a, b := s.add(), s.add()
			time.AfterFunc(5*time.Millisecond, a)
			time.AfterFunc(45*time.Millisecond, b)
		}, 45*time.Millisecond + startsLongest},
		{"one more comes", func(s *starts) {
			s.add()()
			s.add()
			a, b := s.add(), s.add()
			a()
			b()
		}, startsCheck * 2},
		{"one hangs", func(s *starts) { s.add() }, startsCheck},
		{"one hangs after others", func(s *starts) {
			s.add()
			time.AfterFunc(20*time.Millisecond, s.add())
		}, 2 * startsCheck},
		{"they keep coming", func(s *starts) {
			for range 990 {
				time.Sleep(time.Millisecond)
				done := s.add()
				time.AfterFunc(5*time.Millisecond, done)
			}
			s.add()
		}, time.Millisecond + startsMost - 990*time.Millisecond},
		{"they come one after the other", func(s *starts) {
			a, b := s.add(), s.add()
			a()
			b()
			for range 55 {
				done := s.add()
				time.Sleep(11 * time.Millisecond)
				done()
				time.Sleep(7 * time.Millisecond)
			}
			s.add()()
		}, startsMost - 990*time.Millisecond},
		{"the next ones while one hangs", func(s *starts) {
			s.add()
			time.Sleep(time.Second)
			time.AfterFunc(20*time.Millisecond, s.add())
		}, 20 * time.Millisecond},
		{"the next ones after one that hung", func(s *starts) {
			hung := s.add()
			time.Sleep(time.Second)
			hung()
			time.AfterFunc(20*time.Millisecond, s.add())
		}, 20 * time.Millisecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &starts{}
				c.play(s)
				begin := time.Now()
				s.wait(t.Context(), t.Context())
				if got := time.Since(begin); got != c.want {
					t.Errorf("an outcome waits %s, want %s", got, c.want)
				}
			})
		})
	}
}

// A replica that stops waits for nothing, nor does one that has lost its lease.
func TestStopEndsWaitForStarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &starts{}
		defer s.add()()
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		begin := time.Now()
		s.wait(ctx, t.Context())
		s.wait(t.Context(), ctx)
		if got := time.Since(begin); got != time.Millisecond {
			t.Errorf("it waits %s, want a millisecond", got)
		}
	})
}
