package soloist_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/store"
)

// clockedStores are stores with the clock of their machine, each with what deletes an entry.
func clockedStores(t *testing.T, now func() time.Time) map[string]clockedStore {
	dir, memory := t.TempDir(), &local.Memory{Now: now}
	return map[string]clockedStore{
		"directory": {local.Dir{Path: dir, Now: now}, func(name string) error { return os.RemoveAll(filepath.Join(dir, name+".d")) }},
		"memory":    {memory, func(name string) error { return memory.Delete(t.Context(), name) }},
	}
}

type clockedStore struct {
	store  store.Store
	delete func(name string) error
}

// The machine of a store had its clock ahead for two minutes. Within a minute of its correction Health says what the
// record has from the future, and when that is over. Then the job runs again, and before that if its entry is deleted.
func TestClockThatWasAheadIsTold(t *testing.T) {
	for _, kind := range []string{"directory", "memory"} {
		for ahead, deleted := range map[time.Duration]bool{2 * time.Hour: false, 24 * time.Hour: true} {
			synctest.Test(t, func(t *testing.T) { testClockAhead(t, kind, ahead, deleted) })
		}
	}
}

func testClockAhead(t *testing.T, kind string, ahead time.Duration, deleted bool) {
	time.Sleep(15 * time.Hour)
	begin := time.Now()
	var off, runs atomic.Int64
	now := func() time.Time { return time.Now().Add(time.Duration(off.Load())) }
	on := clockedStores(t, now)[kind]
	s := &soloist.Scheduler{Store: on.store, Replica: "a", Now: now, Logger: slog.New(slog.DiscardHandler),
		Elapsed: func() time.Duration { return time.Since(begin) },
		Jobs:    []soloist.Job{{Name: "sync", Schedule: "*/5 * * * *", Do: func(context.Context, *soloist.Run) error { runs.Add(1); return nil }}}}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- s.Run(ctx) }()
	time.Sleep(2 * time.Hour)
	off.Store(int64(ahead))
	time.Sleep(2 * time.Minute)
	off.Store(0)
	time.Sleep(time.Minute)
	text := func() string {
		if err := s.Health().Broken["sync"]; err != nil {
			return err.Error()
		}
		return "ok"
	}
	_, rest, _ := strings.Cut(text(), "right again from ")
	over, err := time.Parse(time.RFC3339, strings.Split(rest, " on;")[0])
	if err != nil || !strings.Contains(text(), "is in the future") || !strings.Contains(text(), "delete its entry soloist/sync ") {
		t.Errorf("%s, %s ahead: a minute later health says %s", kind, ahead, text())
	}
	if deleted {
		if err := on.delete("soloist/sync"); err != nil {
			t.Error(err)
		}
	} else {
		time.Sleep(time.Until(over) - time.Minute)
		if text() == "ok" {
			t.Errorf("%s, %s ahead: right before its time", kind, ahead)
		}
		time.Sleep(2 * time.Minute)
	}
	before := runs.Load()
	time.Sleep(time.Hour)
	if got := runs.Load() - before; got < 11 || got > 13 || text() != "ok" {
		t.Errorf("%s, %s ahead, deleted %t: %d of 12 ticks ran in an hour, health says %s", kind, ahead, deleted, got, text())
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
