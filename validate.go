package soloist

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/soloist-go/soloist/internal/schedule"
)

const (
	defaultLease = 30 * time.Second
	defaultRest  = 5 * time.Second
)

var (
	nameRule = regexp.MustCompile(`^[a-z][a-z0-9-]{0,62}$`)
	appRule  = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,62}$`)
)

// reserved are the paths that a program answers itself.
var reserved = []string{"tick", "warmup", "host", "api", "admin", "healthz", "readyz", "metrics"}

// checkSelf checks what is not one job's or singleton's own.
func (s *Scheduler) checkSelf() error {
	var errs []error
	if s.Store == nil {
		errs = append(errs, errors.New("Store is nil: leases and records need a place"))
	}
	if !appRule.MatchString(s.App) {
		errs = append(errs, fmt.Errorf("App is %.80q: up to 63 lower-case letters, digits and hyphens are allowed, no hyphen first", s.App))
	}
	if s.Grace < 0 {
		errs = append(errs, fmt.Errorf("Grace is %s: zero or more is allowed", s.Grace))
	}
	if len(s.Jobs)+len(s.Singletons) == 0 {
		errs = append(errs, errors.New("there is neither a job nor a singleton"))
	}
	return errors.Join(append(errs, s.checkDuplicates()...)...)
}

func (s *Scheduler) checkDuplicates() (errs []error) {
	times := map[string]int{}
	for _, name := range s.names() {
		if times[name]++; times[name] == 2 {
			errs = append(errs, fmt.Errorf("the name %.80q is used more than once", name))
		}
	}
	return errs
}

func (s *Scheduler) names() (names []string) {
	for _, j := range s.Jobs {
		names = append(names, j.Name)
	}
	for _, g := range s.Singletons {
		names = append(names, g.Name)
	}
	return names
}

// check returns all that is wrong with a job, and else its ticks.
func (j *Job) check(store Store) (*schedule.Schedule, error) {
	ticks, err := schedule.Parse(j.Schedule, j.TimeZone, j.Name)
	errs := []error{checkName(j.Name), checkLease(j.Lease, store)}
	if err != nil {
		errs = append(errs, fmt.Errorf("Schedule: %w", err))
	}
	if j.Do == nil {
		errs = append(errs, errors.New("Do is nil"))
	}
	if j.Timeout < 0 {
		errs = append(errs, fmt.Errorf("Timeout is %s: zero or more is allowed", j.Timeout))
	}
	if j.Window < 0 {
		errs = append(errs, fmt.Errorf("Window is %s: zero or more is allowed", j.Window))
	}
	if !slices.Contains([]MissedPolicy{RunLatest, RunAll, SkipMissed}, j.Missed) {
		errs = append(errs, fmt.Errorf("Missed is %.40q: RunLatest, RunAll and SkipMissed are allowed", j.Missed))
	}
	if !slices.Contains([]InterruptedPolicy{Abandon, Rerun}, j.Interrupted) {
		errs = append(errs, fmt.Errorf("Interrupted is %.40q: Abandon and Rerun are allowed", j.Interrupted))
	}
	return ticks, errors.Join(errs...)
}

func (g *Singleton) check(store Store) error {
	errs := []error{checkName(g.Name), checkLease(g.Lease, store)}
	if g.Do == nil {
		errs = append(errs, errors.New("Do is nil"))
	}
	if g.Backoff < 0 {
		errs = append(errs, fmt.Errorf("Backoff is %s: zero or more is allowed", g.Backoff))
	}
	return errors.Join(errs...)
}

func checkName(name string) error {
	if !nameRule.MatchString(name) {
		return fmt.Errorf("Name is %.80q: a lower-case letter, then up to 62 lower-case letters, digits and hyphens are allowed", name)
	}
	if slices.Contains(reserved, name) {
		return fmt.Errorf("Name is %q, which is reserved, as are %s", name, strings.Join(reserved, ", "))
	}
	return nil
}

func checkLease(d time.Duration, store Store) error {
	if store == nil {
		return nil // said once, of the scheduler
	}
	shortest, longest := store.Limits()
	if d = orDefault(d, defaultLease); d < shortest || d > longest || d%time.Second != 0 {
		return fmt.Errorf("Lease is %s: whole seconds from %s to %s are allowed by this store", d, shortest, longest)
	}
	return nil
}
