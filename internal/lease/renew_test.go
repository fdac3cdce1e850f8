package lease

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist/store"
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
			trust := trust{clock: &Clock{Elapsed: func() time.Duration { return tt.answered }}, until: trusting}
			trust.extend(tt.sent, length)
			if got := trust.end(); got != tt.want {
				t.Errorf("trusted until %s, want %s", got, tt.want)
			}
		})
	}
}

// A slowLease answers its first renewal after three seconds, and no other.
type slowLease struct {
	store.Lease
	asked bool
}

func (l *slowLease) Renew(ctx context.Context) (store.Revision, error) {
	if l.asked {
		<-ctx.Done()
		return store.Revision{}, ctx.Err()
	}
	l.asked = true
	time.Sleep(3 * time.Second)
	return store.Revision{ETag: "1"}, nil
}

// A renewal whose answer was slow counts from when it was sent, and so it does if another one was asked for after that.
func TestARenewalCountsFromItsSending(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := (&sheet{}).session()
		s.lease = &slowLease{}
		sent := s.client.Clock.Elapsed()
		s.trust.until = sent + 5*time.Second
		go func() {
			time.Sleep(time.Second)
			_ = s.Renew(t.Context())
		}()
		if err := s.Renew(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got, want := s.trust.end(), sent+trusted(s.Length); got != want {
			t.Errorf("trusted until %s, want %s", got-sent, want-sent)
		}
	})
}
