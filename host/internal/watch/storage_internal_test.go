package watch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist"
)

// A storageTrial is a watch over a health that a test sets.
type storageTrial struct {
	*Storage
	now soloist.Health
	log strings.Builder
	err error // that it ended with
}

func newStorageTrial(patience time.Duration) *storageTrial {
	s := &storageTrial{}
	s.Storage = &Storage{log: slog.New(slog.NewTextHandler(&s.log, nil)), patience: patience,
		health:  func() soloist.Health { return s.now },
		explain: func(err error) (text, advice string) { return err.Error(), "use the right key" },
		end:     func(err error) { s.err = err }}
	return s
}

// during watches for a while.
func (s *storageTrial) during(d time.Duration) (log string) {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	s.log.Reset()
	s.Run(ctx)
	return s.log.String()
}

var errRefused = fmt.Errorf("403: %w", fs.ErrPermission)

func TestRefusedCredentialsEndProgram(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStorageTrial(10 * time.Minute)
		s.now.Storage = errRefused
		first := s.during(1500 * time.Millisecond)
		if strings.Count(first, "\n") != 1 || !strings.Contains(first, "ends in 10m0s unless that changes: 403: permission denied: use the right key") {
			t.Errorf("at once: got %q", first)
		}
		if again := s.during(9 * time.Minute); strings.Count(again, "\n") != 9 || s.err != nil {
			t.Errorf("in 9 minutes: got %d lines and %v", strings.Count(again, "\n"), s.err)
		}
		s.during(2 * time.Minute)
		if want := "the store has refused this program since it started, for 10m0s: 403: permission denied: use the right key"; s.err == nil || s.err.Error() != want {
			t.Errorf("at the end: got %v, want %s", s.err, want)
		}
	})
}

func TestOtherStoreTroubleIsWaitedFor(t *testing.T) {
	for name, now := range map[string]soloist.Health{
		"it has worked before": {Storage: errRefused, Reached: true},
		"no answer":            {Storage: errors.New("no route to host")},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newStorageTrial(time.Minute)
			s.now = now
			log := s.during(61 * time.Minute)
			if s.err != nil || strings.Count(log, "the store is out of reach: ") != 61 || !strings.Contains(log, "use the right key") {
				t.Errorf("%s: got %v and %d lines", name, s.err, strings.Count(log, "\n"))
			}
			s.now.Storage = nil
			if log := s.during(time.Hour); log != "" {
				t.Errorf("%s: all is well: got %q", name, log)
			}
			s.now.Storage = now.Storage
			if log := s.during(1500 * time.Millisecond); strings.Count(log, "\n") != 1 {
				t.Errorf("%s: the next trouble: got %q", name, log)
			}
		})
	}
}

// The patience counts from the first of the refusals that follow each other: an
// outage between two of them is none.
func TestOutageBetweenRefusalsUsesNoPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStorageTrial(10 * time.Minute)
		s.now.Storage = errRefused
		s.during(3 * time.Second)
		s.now.Storage = errors.New("no route to host")
		s.during(11 * time.Minute)
		s.now.Storage = errRefused
		if s.during(9 * time.Minute); s.err != nil {
			t.Errorf("9 minutes after the outage: got %v, want more patience", s.err)
		}
	})
}
