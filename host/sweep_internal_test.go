package host

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host/internal/app"
	"github.com/soloist-go/soloist/host/local"
)

// A program that serves sweeps by itself, once a day, if it is told to.
func TestSweepDaily(t *testing.T) {
	for unused, want := range map[time.Duration]bool{10 * 24 * time.Hour: true, 0: false} {
		synctest.Test(t, func(t *testing.T) {
			var lines strings.Builder
			a := &app.App{Store: &local.Memory{}, Log: slog.New(slog.NewTextHandler(&lines, nil))}
			a.Settings.App, a.Settings.Sweep = "demo", unused
			l := &soloist.Lock{Name: "tenant-1", Store: a.Store, App: "demo", Logger: slog.New(slog.DiscardHandler)}
			if err := l.Do(t.Context(), func(context.Context, *soloist.Run) error { return nil }); err != nil {
				t.Fatal(err)
			}
			for _, days := range []int{9, 12} {
				ctx, cancel := context.WithTimeout(t.Context(), time.Until(time.Date(2000, 1, 1+days, 0, 0, 0, 0, time.UTC)))
				sweepDaily(ctx, a)
				<-ctx.Done()
				cancel()
				_, err := a.Store.Read(t.Context(), "demo/0-lock-tenant-1")
				if got := errors.Is(err, fs.ErrNotExist); got != (want && days == 12) {
					t.Errorf("unused for %s: on day %d: %v", unused, days, err)
				}
			}
			if strings.Contains(lines.String(), "were removed") != want {
				t.Errorf("the log says\n%s", &lines)
			}
		})
	}
}
