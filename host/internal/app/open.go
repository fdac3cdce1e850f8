package app

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host/internal/format"
	"github.com/soloist-go/soloist/host/internal/telemetry"
	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/internal/lease"
	"github.com/soloist-go/soloist/store"
)

// Open reads everything that can be wrong and reports all of it at once. What
// the scheduler says of its jobs is for [soloist.Scheduler.Validate].
func Open(c Config) (*App, error) {
	a := &App{Console: c.Console, Now: c.Now, Serves: c.Serves, Scheduler: &soloist.Scheduler{Now: c.Now, Groups: c.Groups}}
	errs := sort(c.Work, a.Scheduler)
	errs = append(errs, a.Settings.read(c.Console.Name)...)
	pings, mistakes := override(a.Scheduler.Jobs)
	a.Pings, errs = pings, append(errs, mistakes...)
	a.catalog, a.work = catalogOf(a.Scheduler), sync.OnceValue(a.define)
	errs = append(errs, a.open(c.Store, c.OpenStore))
	errs = append(errs, a.setLease(), checkAlerts(a.Scheduler.Store, a.Settings.AlertWebhook))
	a.unknown = unknown(a.Jobs())
	a.Strange = slices.Concat(a.unknown, a.Settings.idle(), idleZone(a.Scheduler.Jobs))
	a.SetLog(newLog(c, &a.Settings, a.Settings.Secrets(a.Pings)))
	errs = append(errs, a.openAlarm(c))
	if a.Alarm != nil {
		a.Listen(a.ends.hear)
	}
	a.Scheduler.App, a.Scheduler.Replica, a.Scheduler.Grace = a.Settings.App, c.Replica, a.Settings.Grace
	a.Scheduler.Alone = a.alone
	if c.Serves || c.Runs {
		a.measure(c.Export)
	}
	return a, errors.Join(errs...)
}

// sort gives the jobs and the singletons to a scheduler. It accepts pointers too: they are Work, and
// there is only one thing that they can mean.
func sort(work []soloist.Work, s *soloist.Scheduler) (errs []error) {
	for i, w := range work {
		if v := reflect.ValueOf(w); v.Kind() == reflect.Pointer && v.IsNil() {
			errs = append(errs, fmt.Errorf("work %d of %d is a nil %T", i+1, len(work), w))
			continue
		}
		switch w := w.(type) {
		case soloist.Job:
			s.Jobs = append(s.Jobs, w)
		case *soloist.Job:
			s.Jobs = append(s.Jobs, *w)
		case soloist.Singleton:
			s.Singletons = append(s.Singletons, w)
		case *soloist.Singleton:
			s.Singletons = append(s.Singletons, *w)
		default:
			errs = append(errs, fmt.Errorf("work %d of %d is %T: want a soloist.Job or a soloist.Singleton", i+1, len(work), w))
		}
	}
	return errs
}

// open opens the store, unless one is given. Where that fails, one in memory
// stands in, so that the rest can be checked.
func (a *App) open(given store.Store, others func(url string) (store.Store, error)) error {
	s := storage{Store: given}
	if given != nil {
		s.name = describe(given)
	} else {
		var err error
		if s, err = a.Settings.storage(others); err != nil {
			a.Store = &local.Memory{}
			a.Scheduler.Store = a.Store
			return err
		}
		a.opened = true
	}
	a.Logs, _ = s.Store.(store.Appender)
	a.Store, a.Scheduler.Store, a.Place = s.Store, s.Store, format.Line(s.name)
	if s.note != "" {
		a.Notes = append(a.Notes, s.note)
	}
	return nil
}

// closeTime is how long a command waits for a store to close.
const closeTime = time.Second

// CloseStore closes the store that was opened here, if it can be closed. A call that still waits for a server does not keep the
// program from its end.
func (a *App) CloseStore() {
	s, ok := a.Store.(interface{ Close() })
	if !ok || !a.opened {
		return
	}
	closed := make(chan struct{})
	go func() { s.Close(); close(closed) }()
	select {
	case <-closed:
	case <-time.After(closeTime):
	}
}

func describe(s store.Store) string {
	if s, ok := s.(fmt.Stringer); ok {
		return s.String()
	}
	return fmt.Sprintf("%T", s)
}

// measure makes metrics and traces of what the scheduler does, and passes its events on to the listeners.
func (a *App) measure(export telemetry.Exporter) {
	a.Telemetry = telemetry.Open(a.Scheduler, Version(), a.Log, export)
	a.Logs = a.Telemetry.Logs(a.Logs)
	a.Listen(a.Scheduler.Events) // which are the telemetry's by now
	a.Scheduler.Events = a.listeners.tell
}

// checkAlerts refuses alerts over a store in which the replicas cannot agree on them.
func checkAlerts(s store.Store, webhook string) error {
	if _, ok := s.(store.Documenter); !ok && webhook != "" {
		return errors.New("SOLOIST_ALERT_WEBHOOK is set, and the store of this program keeps no documents, by which the replicas agree on who sends a message: unset it, or implement store.Documenter")
	}
	return nil
}

// setLease applies SOLOIST_LEASE to whatever names no lease of its own.
func (a *App) setLease() error {
	length := a.Settings.Lease
	shortest := lease.Shortest(a.Scheduler.Store)
	if _, longest := a.Scheduler.Store.Limits(); length < shortest || length > longest || length%time.Second != 0 {
		return mistake("SOLOIST_LEASE", fmt.Sprintf("whole seconds from %s to %s, which this store takes", shortest, longest))
	}
	for i := range a.Scheduler.Jobs {
		if a.Scheduler.Jobs[i].Lease == 0 && !a.Scheduler.Jobs[i].EveryReplica {
			a.Scheduler.Jobs[i].Lease = length
		}
	}
	for i := range a.Scheduler.Singletons {
		if a.Scheduler.Singletons[i].Lease == 0 {
			a.Scheduler.Singletons[i].Lease = length
		}
	}
	return nil
}
