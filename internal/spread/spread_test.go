package spread

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestChangeIsLookedAtSoon(t *testing.T) {
	before := look{members: []card{{entry: "0-member-a"}}, held: map[holding]int{{"k", "a"}: 2}}
	for name, tt := range map[string]struct {
		now    look
		shards int
		want   time.Duration
	}{
		"nothing new":  {look{members: []card{{entry: "0-member-a", etag: "2"}}, held: map[holding]int{{"k", "a"}: 2}}, 4, length},
		"one joined":   {look{members: []card{{entry: "0-member-a"}, {entry: "0-member-b"}}, held: map[holding]int{{"k", "a"}: 2}}, 4, length / 3},
		"another one":  {look{members: []card{{entry: "0-member-b"}}, held: map[holding]int{{"k", "a"}: 2}}, 4, length / 3},
		"holds more":   {look{members: []card{{entry: "0-member-a"}}, held: map[holding]int{{"k", "a"}: 3}}, 4, length / 3},
		"many shards":  {before, listedFrom, length / 3},
		"and one less": {before, listedFrom - 1, length},
	} {
		s := New(Config{})
		s.Group("feed", make([]string, tt.shards), length)
		s.calm = tt.now.same(&before)
		if got := s.period(); got != tt.want {
			t.Errorf("%s: the next look is %s later, want %s", name, got, tt.want)
		}
	}
}

// The shortest lease of a group is that of the member: all have to know in time that it is gone.
func TestMemberHasShortestLease(t *testing.T) {
	s := New(Config{})
	for _, d := range []time.Duration{2 * length, length, 3 * length} {
		s.Group("feed", make([]string, 2), d)
	}
	if s.length != length {
		t.Errorf("got %s, want %s", s.length, length)
	}
}

// A timed holder notes when it is asked to step down.
type timed struct {
	holder
	at time.Time
}

func (h *timed) StepDown(context.Context) (bool, error) {
	h.at = time.Now()
	return true, nil
}

// Shards are handed over one after the other, and all within a third of a lease.
func TestHandOversBeginOneAfterTheOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, holders := New(Config{}), make([]timed, 5)
		g := s.Group("feed", make([]string, 5), length)
		g.aim(5)
		for i := range holders {
			g.Add(i, &holders[i])
			SeatOf(g, i).Take("")
		}
		begin := time.Now()
		s.settle(t.Context(), g, g.aim(2))
		s.moving.Wait()
		for i, want := range []time.Duration{2 * length / 9, length / 9, 0} {
			if got := holders[2+i].at.Sub(begin); got != want {
				t.Errorf("shard %d is handed over after %s, want %s", 2+i, got, want)
			}
		}
	})
}
