package schedule_test

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist/internal/schedule"
)

// check holds what is true of every schedule at every instant.
func check(t *testing.T, s *schedule.Schedule, at time.Time) {
	t.Helper()
	next, last := s.Next(at), s.Last(at)
	switch {
	case !next.IsZero() && !next.After(at):
		t.Errorf("%s: Next(%v) = %v", s, at, next)
	case last.After(at):
		t.Errorf("%s: Last(%v) = %v", s, at, last)
	case next.Nanosecond() != 0 || next.Location() != time.UTC || last.Location() != time.UTC:
		t.Errorf("%s: Next(%v) = %v, Last = %v, want whole seconds in UTC", s, at, next, last)
	}
	if !next.IsZero() {
		if got := s.Last(next); !got.Equal(next) {
			t.Errorf("%s: Last(%v) = %v, though it is a tick", s, next, got)
		}
		if got := s.Last(next.Add(-1)); !got.Equal(last) {
			t.Errorf("%s: Last before %v = %v, want %v", s, next, got, last)
		}
	}
	if !last.IsZero() {
		if got := s.Next(last); !got.Equal(next) {
			t.Errorf("%s: Next(%v) = %v, want %v as after %v", s, last, got, next, at)
		}
		if got := s.Next(last.Add(-1)); !got.Equal(last) {
			t.Errorf("%s: Next before %v = %v", s, last, got)
		}
	}
}

func TestProperties(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	list := append(append(randomTexts(60, rnd), texts...), fine...)
	list = append(list, "@every 7m", "@every 36h", "@every 1s", "@every 7m ; 30 2 * * *", "@every 11m;@every 7m")
	for i, text := range list {
		s, err := schedule.Parse(text, awkward[i%len(awkward)], "job")
		if err != nil {
			if !strings.Contains(err.Error(), "never fires") {
				t.Error(err)
			}
			continue
		}
		for range 100 {
			check(t, s, time.Unix(rnd.Int64N(2<<31), rnd.Int64N(1e9)))
		}
	}
}
