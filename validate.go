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

	defaultCheckpoint = 64 << 10 // bytes
)

// maxReplicaLen keeps a name from filling the record.
const maxReplicaLen = 128

var (
	nameRule = regexp.MustCompile(`^[a-z][a-z0-9-]{0,62}$`)
	appRule  = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,62}$`)
)

// reserved are names that a job's own path or function would take from the
// program or from the Functions host.
var reserved = []string{"tick", "warmup", "host", "api", "admin", "healthz", "readyz", "metrics"}

// checkSelf checks what is not one job's or singleton's own.
func (s *Scheduler) checkSelf() error {
	var errs []error
	if s.Store == nil {
		errs = append(errs, wrong("Store", "nil", "a place for leases and records"))
	}
	if !appRule.MatchString(s.App) {
		errs = append(errs, wrong("App", quote(s.App), "a lower-case letter or digit, then up to 62 of them or hyphens"))
	}
	if len(s.Replica) > maxReplicaLen {
		errs = append(errs, wrong("Replica", quote(s.Replica), fmt.Sprintf("up to %d bytes", maxReplicaLen)))
	}
	if s.Grace < 0 {
		errs = append(errs, wrong("Grace", s.Grace, "zero or more"))
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
	if _, inUTC := schedule.Parse(j.Schedule, "", j.Name); err != nil && inUTC != nil && inUTC.Error() != err.Error() {
		err = errors.Join(err, inUTC) // the zone is one mistake, the text another
	}
	errs := []error{checkName(j.Name), checkLease(j.Lease, store)}
	if err != nil {
		errs = append(errs, fmt.Errorf("%s is %s: %w", "Schedule", quote(j.Schedule), err))
	}
	if j.Do == nil {
		errs = append(errs, wrong("Do", "nil", "a function"))
	}
	if j.Timeout < 0 {
		errs = append(errs, wrong("Timeout", j.Timeout, "zero or more"))
	}
	if j.Tries < 0 {
		errs = append(errs, wrong("Tries", j.Tries, "zero or more"))
	}
	if j.Backoff < 0 {
		errs = append(errs, wrong("Backoff", j.Backoff, "zero or more"))
	}
	errs = append(errs, checkLimits(j.Silence, j.HealthyEvery, j.HealthyFailures, j.MaxCheckpoint))
	if j.Window < 0 {
		errs = append(errs, wrong("Window", j.Window, "zero or more"))
	}
	if !slices.Contains([]MissedPolicy{RunLatest, RunAll, SkipMissed}, j.Missed) {
		errs = append(errs, wrong("Missed", quote(string(j.Missed)), "RunLatest, RunAll or SkipMissed"))
	}
	if !slices.Contains([]InterruptedPolicy{Abandon, Rerun}, j.Interrupted) {
		errs = append(errs, wrong("Interrupted", quote(string(j.Interrupted)), "Abandon or Rerun"))
	}
	if j.Everywhere && (j.Lease != 0 || j.Window != 0 || j.Missed != "" || j.Interrupted != "") {
		errs = append(errs, wrong("Everywhere", true, "no Lease, Window, Missed or Interrupted beside it: such a job has no record"))
	}
	return ticks, errors.Join(errs...)
}

func (g *Singleton) check(store Store) error {
	errs := []error{checkName(g.Name), checkLease(g.Lease, store)}
	if g.Do == nil {
		errs = append(errs, wrong("Do", "nil", "a function"))
	}
	if g.Backoff < 0 {
		errs = append(errs, wrong("Backoff", g.Backoff, "zero or more"))
	}
	errs = append(errs, checkLimits(g.Silence, g.HealthyEvery, g.HealthyFailures, g.MaxCheckpoint))
	return errors.Join(errs...)
}

// checkLimits checks what jobs and singletons have in common of a run's life.
func checkLimits(silence, every time.Duration, failures, checkpoint int) error {
	var errs []error
	if silence != 0 && silence < time.Second {
		errs = append(errs, wrong("Silence", silence, "zero, or one second or more"))
	}
	if every != 0 && every < 100*time.Millisecond {
		errs = append(errs, wrong("HealthyEvery", every, "zero, or 100ms or more"))
	}
	if failures < 0 {
		errs = append(errs, wrong("HealthyFailures", failures, "zero or more"))
	}
	if checkpoint < 0 || checkpoint > MaxCheckpoint {
		errs = append(errs, wrong("MaxCheckpoint", checkpoint, fmt.Sprintf("0 to %d bytes", MaxCheckpoint)))
	}
	return errors.Join(errs...)
}

func checkName(name string) error {
	if !nameRule.MatchString(name) {
		return wrong("Name", quote(name), "a lower-case letter, then up to 62 lower-case letters, digits and hyphens")
	}
	if slices.Contains(reserved, name) {
		return wrong("Name", quote(name), "any but "+strings.Join(reserved, ", "))
	}
	return nil
}

func checkLease(d time.Duration, store Store) error {
	if store == nil {
		return nil // said once, of the scheduler
	}
	shortest, longest := store.Limits()
	if d = orDefault(d, defaultLease); d < shortest || d > longest || d%time.Second != 0 {
		return wrong("Lease", d, fmt.Sprintf("whole seconds from %s to %s", shortest, longest))
	}
	return nil
}

// wrong is a mistake in a field: what it is, and what may be.
func wrong(field string, value any, allowed string) error {
	return fmt.Errorf("%s is %v: allowed is %s", field, value, allowed)
}

func quote(s string) string { return fmt.Sprintf("%.80q", s) }
