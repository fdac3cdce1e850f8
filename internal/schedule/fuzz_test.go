package schedule_test

import (
	"testing"
	"time"

	"github.com/soloist-go/soloist/internal/schedule"
)

func FuzzParse(f *testing.F) {
	for _, text := range append(append([]string{
		"TZ=UTC", "TZ=", "TZ=0", "", " ", "*/60 * * * *", "@every 5m", "@every -5s", "@daily", "0 0 30 2 *", "H H(1-4) * * H/2",
		"ncrontab 0 0 0 13 * Fri", "CRON_TZ=Asia/Tokyo 5-1 * ? * 7", "1,,2 * * * *", "0 0 * * \x00", "ncrontab TZ=UTC @every 1s",
		"0 0 L-31 * *", "0 0 l,L-3w,HW,W * LW", "0 0 * * fri#6,7#1,L", "@daily ;; ", ";", "@daily ; @daily", "@daily;TZ=UTC @hourly", "H H * * * ; @every 7m;0 0 1-L * *",
	}, texts...), fine...) {
		f.Add(text, "", "job")
		f.Add(text, "Africa/Cairo", "other")
	}
	f.Fuzz(func(t *testing.T, text, zone, name string) {
		s, err := schedule.Parse(text, zone, name)
		if err != nil {
			if s != nil || err.Error() == "" {
				t.Errorf("Parse(%q) = %v, %q", text, s, err)
			}
			return
		}
		now := year(2026)
		if s.Next(now).IsZero() != (s.String() == "@manual") || s.Words() == "" {
			t.Errorf("Parse(%q) accepts what never fires: %s", text, s.Words())
		}
		again, err := schedule.Parse(s.String(), "", "")
		if err != nil || again.String() != s.String() || !again.Next(now).Equal(s.Next(now)) {
			t.Errorf("Parse(%q) = %s, parsed again %v, %v", text, s, again, err)
		}
		s.Warnings(now)
	})
}

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

func FuzzNext(f *testing.F) {
	for i, text := range append(append([]string{"@every 7m", "@every 7m ; @every 11m", "H 2 * * 1 ; @hourly"}, texts...), fine...) {
		f.Add(text, uint8(i), int64(1772952000+i*1e6), int64(i))
	}
	f.Fuzz(func(t *testing.T, text string, zone uint8, sec, nano int64) {
		s, err := schedule.Parse(text, awkward[int(zone)%len(awkward)], "job")
		if err != nil {
			return
		}
		at := time.Unix(sec, nano&0x1fffffff)
		if at.Year() < 0 || at.Year() > 9000 {
			s.Next(at)
			s.Last(at)
			return
		}
		check(t, s, at)
		if got := s.Count(at, s.Next(at), 2); got != 1 {
			t.Errorf("%s: Count until the next tick after %v = %d", s, at, got)
		}
	})
}
