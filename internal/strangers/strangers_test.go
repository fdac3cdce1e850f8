package strangers_test

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host/local"
)

// A program is the jobs of a scheduler, from and until when it is up.
type program struct {
	jobs        string
	from, until time.Duration
}

// Two programs with one App are told, each once. A deployment, a job that no longer runs and a lock are not.
func TestStrangersAreTold(t *testing.T) {
	const day, late = 24 * time.Hour, 7 * time.Hour
	for name, test := range map[string]struct {
		all  []program
		want int
	}{
		"two programs":             {[]program{{"clean ship", 0, late}, {"clean invoice", 0, late}}, 2},
		"one comes later":          {[]program{{"clean ship", 0, late}, {"clean invoice", 5 * time.Hour, late}}, 1},
		"one program":              {[]program{{"clean ship", 0, late}, {"clean ship", 0, late}}, 0},
		"a deployment":             {[]program{{"clean ship", 0, 5*time.Hour + 14*time.Minute}, {"clean", 5 * time.Hour, late}}, 0},
		"a job of an old program":  {[]program{{"clean ship", 0, time.Hour}, {"clean", 2 * time.Hour, late}}, 0},
		"it ends before it knows":  {[]program{{"clean ship", 0, late}, {"clean invoice", 5 * time.Hour, 5*time.Hour + 15*time.Minute}}, 0},
		"each night":               {[]program{{"night-clean", 0, 3 * day}, {"night-report", 0, 3 * day}}, 2},
		"a singleton":              {[]program{{"clean", 0, late}, {"clean one-feed", 0, late}}, 1},
		"a lock of the same store": {[]program{{"clean", 0, late}, {"clean lock-door", 0, late}}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var store local.Memory
				var log strings.Builder
				logger := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn})) // its handler has a lock
				var all sync.WaitGroup
				for i, p := range test.all {
					all.Go(func() {
						time.Sleep(p.from)
						ctx, end := context.WithTimeout(t.Context(), p.until-p.from)
						defer end()
						s := &soloist.Scheduler{App: "demo", Replica: string(rune('a' + i)), Store: &store, Logger: logger}
						for job := range strings.FieldsSeq(p.jobs) {
							p.add(s, job, &all, ctx)
						}
						if err := s.Run(ctx); err != nil {
							t.Error(err)
						}
					})
				}
				all.Wait()
				if got := strings.Count(log.String(), "that this program does not have"); got != test.want {
					t.Errorf("told %d times, want %d:\n%s", got, test.want, log.String())
				}
			})
		})
	}
}

// add adds work to s, or has all take a lock.
func (program) add(s *soloist.Scheduler, work string, all *sync.WaitGroup, ctx context.Context) {
	wait := func(ctx context.Context, _ *soloist.Run) error { <-ctx.Done(); return nil }
	do := func(context.Context, *soloist.Run) error { return nil }
	switch kind, name, _ := strings.Cut(work, "-"); kind {
	case "lock":
		all.Go(func() { _ = (&soloist.Lock{Name: name, App: "demo", Store: s.Store}).Do(ctx, wait) })
	case "one":
		s.Singletons = append(s.Singletons, soloist.Singleton{Name: name, Do: wait})
	case "night":
		s.Jobs = append(s.Jobs, soloist.Job{Name: name, Schedule: "0 2 * * *", Do: do})
	default:
		s.Jobs = append(s.Jobs, soloist.Job{Name: kind, Schedule: "@every 5m", Do: do})
	}
}
