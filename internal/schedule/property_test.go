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
		counted(t, s, time.Unix(rnd.Int64N(2<<31), 5))
	}
}

// counted follows 300 ticks and counts them in pieces.
func counted(t *testing.T, s *schedule.Schedule, from time.Time) {
	t.Helper()
	at, n := from, 0
	for ; n < 300; n++ {
		next := s.Next(at)
		if !next.After(at) {
			t.Fatalf("%s: %v does not follow %v", s, next, at)
		}
		at = next
	}
	mid := from.Add(at.Sub(from) / 3)
	for _, got := range []int{
		s.Count(from, at, 1000),
		s.Count(from, at, 300),
		s.Count(from, mid, 1000) + s.Count(mid, at, 1000),
		s.Count(from, at.Add(-1), 1000) + 1,
		s.Count(at.Add(-1), at, 1000) + 299,
		s.Count(from, at, 7) + 293,
		s.Count(at, from, 7) + s.Count(at, at, 7) + s.Count(from, at, 0) + s.Count(from, at, -1) + 300,
	} {
		if got != 300 {
			t.Errorf("%s: Count gives %d of 300 ticks after %v", s, got, from)
		}
	}
}

// TestUnion holds a union against its texts, each read alone.
func TestUnion(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	list := append(randomTexts(200, rnd), "@every 7m ; @every 1h ; 0 * * * *", "0 0 L * * ; 0 0 LW * * ; 0 0 28-31 * *")
	unions := 0
	for i, text := range list {
		union, err := schedule.Parse(text, awkward[i%len(awkward)], "job")
		if err != nil || !strings.Contains(text, ";") {
			continue
		}
		unions++
		dialect, rest := "", text
		if after, ok := strings.CutPrefix(text, "ncrontab "); ok {
			dialect, rest = "ncrontab ", after
		}
		var all []*schedule.Schedule
		for one := range strings.SplitSeq(rest, ";") {
			all = append(all, parse(t, dialect+one, awkward[i%len(awkward)]))
		}
		for range 100 {
			at := time.Unix(rnd.Int64N(2<<31), 0)
			var next, last time.Time
			for _, s := range all {
				if n := s.Next(at); next.IsZero() || n.Before(next) {
					next = n
				}
				if n := s.Last(at); n.After(last) {
					last = n
				}
			}
			if got := union.Next(at); !got.Equal(next) {
				t.Errorf("%s after %v: got %v, want %v", union, at, got, next)
			}
			if got := union.Last(at); !got.Equal(last) {
				t.Errorf("%s at %v: got %v, want %v", union, at, got, last)
			}
		}
	}
	if unions < 20 {
		t.Errorf("%d unions, want 20 at least", unions)
	}
}

// TestSame has the same text read twice, far apart and in any order: nothing is remembered.
func TestSame(t *testing.T) {
	a, b := parse(t, "H/7 H(0-3) * * *", "Africa/Cairo"), parse(t, "H/7 H(0-3) * * *", "Africa/Cairo")
	at := year(2026)
	for range 500 {
		b.Last(at.Add(-1000 * time.Hour))
		next := a.Next(at)
		if got := b.Next(next.Add(-time.Second)); !got.Equal(next) {
			t.Fatalf("got %v, want %v", got, next)
		}
		at = next
	}
}
