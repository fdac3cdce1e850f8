package lease

import (
	"testing"
	"time"
)

// A renewal moves the deadline forward only: by when it was sent, and only while
// the deadline has not passed.
func TestExtend(t *testing.T) {
	const length = 30 * time.Second
	trust := (&Session{Length: length}).trust()
	for name, tt := range map[string]struct{ sent, answered, want time.Duration }{
		"in time":                          {10 * time.Second, 11 * time.Second, 10*time.Second + trust},
		"answered after the deadline":      {10 * time.Second, trust, trust},
		"sent after the deadline":          {trust + time.Second, trust + 2*time.Second, trust},
		"sent before what was counted yet": {-time.Second, 11 * time.Second, trust},
	} {
		t.Run(name, func(t *testing.T) {
			clock := &Clock{Elapsed: func() time.Duration { return tt.answered }}
			h := &Session{client: &Client{Clock: clock}, Length: length, until: trust}
			h.extend(tt.sent)
			if got := h.Until(); got != tt.want {
				t.Errorf("trusted until %s, want %s", got, tt.want)
			}
		})
	}
}
