package lease

import (
	"testing"
	"time"
)

// A renewal moves the deadline forward only: by when it was sent, and only while
// the deadline has not passed.
func TestExtend(t *testing.T) {
	const length = 30 * time.Second
	trusting := trusted(length)
	for name, tt := range map[string]struct{ sent, answered, want time.Duration }{
		"in time":                          {10 * time.Second, 11 * time.Second, 10*time.Second + trusting},
		"answered after the deadline":      {10 * time.Second, trusting, trusting},
		"sent after the deadline":          {trusting + time.Second, trusting + 2*time.Second, trusting},
		"sent before what was counted yet": {-time.Second, 11 * time.Second, trusting},
	} {
		t.Run(name, func(t *testing.T) {
			clock := &Clock{Elapsed: func() time.Duration { return tt.answered }}
			h := &Session{client: &Client{Clock: clock}, Length: length, trust: trust{until: trusting}}
			h.extend(tt.sent)
			if got := h.Until(); got != tt.want {
				t.Errorf("trusted until %s, want %s", got, tt.want)
			}
		})
	}
}
