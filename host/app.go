package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/internal/logqueue"
	"github.com/soloist-go/soloist/store"
)

// An app is a program whose settings are read and whose work is known.
type app struct {
	*Program
	settings
	sched   *soloist.Scheduler
	life    context.Context // of serve
	log     *slog.Logger
	lines   logqueue.Queue   // of log, where it serves
	refused *refusals        // of HTTP
	store   string           // what it is, for people
	notes   []string         // what an operator should know, though it is no mistake
	strange []string         // variables that look like settings and are none
	serves  bool             // it runs jobs by these settings until it is stopped
	drifted []string         // in Functions: what is deployed and is not what the jobs need
	limits  invocationLimits // in Functions, where it serves
}

// open reads everything that can be wrong and tells all of it at once.
func (p *Program) open(c *command) (*app, error) {
	a := &app{Program: p, serves: c.serves, sched: &soloist.Scheduler{Now: p.Now}}
	var errs []error
	errs = append(errs, a.sort()...)
	errs = append(errs, a.settings.read(p.Name)...)
	errs = append(errs, override(a.sched.Jobs)...)
	errs = append(errs, a.place())
	errs = append(errs, a.setLease())
	if inFunctions() {
		tellBegins(a.sched.Jobs)
	}
	a.strange = unknown(a.names())
	a.setLog(a.logger(c))
	a.sched.App, a.sched.Replica, a.sched.Grace = a.App, c.replica(), a.Grace
	if a.serves && inFunctions() {
		a.limits = a.invocationLimits()
		a.sched.Grace = a.limits.grace
	}
	if a.exit != nil {
		a.sched.Overrun = a.overrun
	}
	return a, errors.Join(errors.Join(errs...), a.sched.Validate())
}

// sort tells jobs from singletons. Pointers are taken too: they are Work, and
// there is only one thing that they can mean.
func (a *app) sort() (errs []error) {
	for i, w := range a.Work {
		switch w := w.(type) {
		case soloist.Job:
			a.sched.Jobs = append(a.sched.Jobs, w)
		case soloist.Singleton:
			a.sched.Singletons = append(a.sched.Singletons, w)
		case *soloist.Job:
			if w != nil {
				a.sched.Jobs = append(a.sched.Jobs, *w)
				continue
			}
			errs = append(errs, fmt.Errorf("work %d of %d is a nil *soloist.Job", i+1, len(a.Work)))
		case *soloist.Singleton:
			if w != nil {
				a.sched.Singletons = append(a.sched.Singletons, *w)
				continue
			}
			errs = append(errs, fmt.Errorf("work %d of %d is a nil *soloist.Singleton", i+1, len(a.Work)))
		default:
			errs = append(errs, fmt.Errorf("work %d of %d is %T: want a soloist.Job or a soloist.Singleton", i+1, len(a.Work), w))
		}
	}
	return errs
}

// place opens the store. Where that fails, one in memory stands in, so that
// the rest can be checked.
func (a *app) place() error {
	if a.sched.Store = a.Store; a.sched.Store != nil {
		a.store = line(describe(a.sched.Store))
		return nil
	}
	s, err := a.settings.storage()
	if err != nil {
		a.sched.Store = &local.Memory{}
		return err
	}
	a.sched.Store, a.store = s.Store, line(s.name)
	if s.note != "" {
		a.notes = append(a.notes, s.note)
	}
	return nil
}

func describe(s store.Store) string {
	if s, ok := s.(fmt.Stringer); ok {
		return s.String()
	}
	return fmt.Sprintf("%T", s)
}

// setLease applies SOLOIST_LEASE to whatever names no lease of its own.
func (a *app) setLease() error {
	if shortest, longest := a.sched.Store.Limits(); a.Lease < shortest || a.Lease > longest || a.Lease%time.Second != 0 {
		return mistake("SOLOIST_LEASE", fmt.Sprintf("whole seconds from %s to %s, which this store takes", shortest, longest))
	}
	for i := range a.sched.Jobs {
		if a.sched.Jobs[i].Lease == 0 && !a.sched.Jobs[i].EveryReplica {
			a.sched.Jobs[i].Lease = a.Lease
		}
	}
	for i := range a.sched.Singletons {
		if a.sched.Singletons[i].Lease == 0 {
			a.sched.Singletons[i].Lease = a.Lease
		}
	}
	return nil
}

// names are the names of the jobs, those that have settings of their own.
func (a *app) names() (names []string) {
	for _, j := range a.sched.Jobs {
		names = append(names, j.Name)
	}
	return names
}

// all are the names of jobs and singletons.
func (a *app) all() []string {
	names := a.names()
	for _, g := range a.sched.Singletons {
		names = append(names, g.Name)
	}
	return names
}

func (a *app) paused(name string) bool {
	return slices.ContainsFunc(a.sched.Jobs, func(j soloist.Job) bool { return j.Name == name && j.Paused })
}

func (a *app) everywhere(name string) bool {
	return slices.ContainsFunc(a.sched.Jobs, func(j soloist.Job) bool { return j.Name == name && j.EveryReplica })
}

// onEach is why nothing can be done about the lease of a job.
func onEach(job string) string { return job + " runs on each replica: it has no lease" }

// leaseOf is the lease that this program gives a job or singleton.
func (a *app) leaseOf(name string) time.Duration {
	for _, j := range a.sched.Jobs {
		if j.Name == name {
			return j.Lease
		}
	}
	for _, g := range a.sched.Singletons {
		if g.Name == name {
			return g.Lease
		}
	}
	return 0
}

// warn says what was noticed on the way, and nothing twice.
func (a *app) warn() {
	for _, text := range a.strange {
		a.log.Warn(text)
	}
	for _, text := range a.notes {
		a.log.Info(text)
	}
}
