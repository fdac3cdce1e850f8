package soloist_test

import (
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host/local"
)

// The machine of a directory store had its clock ahead for two minutes. Within a minute of its correction Health says
// what the record has from the future.
func TestClockThatWasAheadIsTold(t *testing.T) {
	for _, ahead := range []time.Duration{2 * time.Hour, 24 * time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			time.Sleep(15 * time.Hour)
			begin := time.Now()
			var off atomic.Int64
			now := func() time.Time { return time.Now().Add(time.Duration(off.Load())) }
			s := &soloist.Scheduler{Store: local.Dir{Path: t.TempDir(), Now: now}, Replica: "a", Now: now, Logger: slog.New(slog.DiscardHandler),
				Elapsed: func() time.Duration { return time.Since(begin) },
				Jobs:    []soloist.Job{{Name: "sync", Schedule: "*/5 * * * *", Do: func(context.Context, *soloist.Run) error { return nil }}}}
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error)
			go func() { done <- s.Run(ctx) }()
			time.Sleep(2 * time.Hour)
			off.Store(int64(ahead))
			time.Sleep(2 * time.Minute)
			off.Store(0)
			time.Sleep(time.Minute)
			if err := s.Health().Broken["sync"]; err == nil || !strings.Contains(err.Error(), "is in the future") {
				t.Errorf("%s ahead: a minute later health says %v", ahead, err)
			}
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	}
}
