package spread

import (
	"testing"
	"time"

	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/internal/lease"
)

// Two processes of one name, whose clocks show the same, draw the same ids. Each is a member all the
// same.
func TestTwinsAreTwoMembers(t *testing.T) {
	backend := new(local.Memory)
	var entries []string
	for range 3 {
		clock := &lease.Clock{Wall: time.Now, Elapsed: func() time.Duration { return time.Second }}
		s := New(Config{App: "app", Replica: "twin", Store: backend, Clock: clock, Jitter: lease.NewJitter("twin"), IDs: lease.NewJitter("twin"), Degraded: func() error { return nil }})
		s.Group("feed", []string{"feed-0", "feed-1"}, length)
		if err := s.join(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		defer s.leave()
		entries = append(entries, s.membership.entry)
	}
	if entries[0] == entries[1] || entries[1] == entries[2] || entries[0] == entries[2] {
		t.Errorf("the entries are %q, want three", entries)
	}
}
