// Package app reads what a program is: its work and, from the environment, its
// settings, its storage, its log and the platform that it runs on.
package app

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/host/internal/before"
	"github.com/soloist-go/soloist/host/internal/presence"
	"github.com/soloist-go/soloist/host/internal/telemetry"
	"github.com/soloist-go/soloist/internal/alarm"
	"github.com/soloist-go/soloist/internal/desk"
	"github.com/soloist-go/soloist/internal/logqueue"
	"github.com/soloist-go/soloist/internal/record"
	"github.com/soloist-go/soloist/store"
)

// An App is a program whose settings are read and whose work is known.
type App struct {
	Console   Console
	Settings  Settings
	Scheduler *soloist.Scheduler
	Store     store.Store          // as it was opened: Scheduler's store counts calls, and hides this store's further methods
	Logs      store.Appender       // of that store; nil: it keeps none
	Telemetry *telemetry.Telemetry // nil: nothing runs here, so nothing is measured
	Alarm     *alarm.Clock         // wakes the app up when no replica is; nil: nothing does
	Before    *before.Before       // what is done before the first job starts; nil: nothing is
	Log       *slog.Logger
	Now       func() time.Time
	Place     string            // the store, for people
	Notes     []string          // what an operator should know, though it is no mistake
	Lost      string            // what [FindHost] has told already; empty: nothing
	Strange   []string          // variables that look like settings and are none, or have no effect
	unknown   []string          // those that are none
	Pings     map[string]string // the URLs to which jobs report their runs; secret
	Serves    bool              // it runs jobs by these settings until it is stopped
	opened    bool              // the store, by these settings

	catalog
	work  func() defined // what does not change while it runs
	lines logqueue.Queue // of Log, where it serves

	listeners listeners
	ends      ends
}

// defined is what does not change while the program runs.
type defined struct {
	work  presence.Work
	still presence.Self
}

// A Config is what a program says of itself. The environment says the rest.
type Config struct {
	Work   []soloist.Work
	Groups map[string]int // as of a Scheduler
	Store  store.Store    // nil: what SOLOIST_STORAGE says

	OpenStore func(url string) (store.Store, error) // of URLs that are no blob service's; nil: there are none

	Queue   alarm.Queue        // of alarms, if SOLOIST_ALARM asks for them; nil: a queue of the storage account
	Export  telemetry.Exporter // nil: what is measured goes to no collector
	Console Console
	Now     func() time.Time
	Replica string // what records name as the author of what is done
	Serves  bool   // it runs jobs until it is stopped, and its output is its log
	Runs    bool   // it runs jobs, whose logs are wanted
	Apart   bool   // it only writes files: the storage of those that run them may be none of this machine
}

// Warn says what was noticed on the way, and nothing twice.
func (a *App) Warn() {
	for _, text := range a.Strange {
		a.Log.Warn(text)
	}
	if a.Serves {
		for _, text := range ScheduleWarnings(a.Scheduler.Jobs, a.Now()) {
			a.Log.Warn(text)
		}
	}
	for _, text := range a.Notes {
		a.Log.Info(text)
	}
}

// RefuseUnknown returns an error for each variable that looks like a setting and is none: whoever asks for mistakes means what is said
// with it. Elsewhere it is a warning, as a program that runs must not stop for it.
func RefuseUnknown(a *App) error {
	var errs []error
	for _, text := range a.unknown {
		errs = append(errs, errors.New(text))
	}
	a.Strange = slices.DeleteFunc(a.Strange, func(text string) bool { return slices.Contains(a.unknown, text) })
	return errors.Join(errs...)
}

// Listen has f called with each event of the scheduler from now on, where the program runs
// jobs. It must return soon: events wait for it, and are dropped if too many do.
func (a *App) Listen(f func(event.Event)) { a.listeners.add(f) }

// Skew is how far this machine's clock is ahead of the store's, as far as that
// is proved.
func (a *App) Skew() time.Duration { return a.Scheduler.Health().Skew }

// Statuses are those of all jobs. That the settings are wrong is known by then, and other trouble is in the status of a job.
func (a *App) Statuses(ctx context.Context) []desk.Status {
	at, err := desk.Of(a.Scheduler)
	if err != nil {
		return nil
	}
	return at.Statuses(ctx)
}

// Status is that of one job, singleton or shard. Its record and no unrelated one is read.
func (a *App) Status(ctx context.Context, job string) (desk.Status, error) {
	at, err := desk.Of(a.Scheduler)
	if err != nil {
		return desk.Status{}, err
	}
	return at.Status(ctx, job)
}

// Control is what operators have ordered.
func (a *App) Control(ctx context.Context) (record.Control, error) {
	at, err := desk.Of(a.Scheduler)
	if err != nil {
		return record.Control{}, err
	}
	return at.Control(ctx)
}

// explainer is a store that knows what to do about its errors.
type explainer interface {
	Explain(err error) (text, advice string)
}

// Explain asks the store what its error is about.
func (a *App) Explain(err error) (text, advice string) {
	if s, ok := a.Store.(explainer); ok {
		return s.Explain(err)
	}
	return err.Error(), ""
}
