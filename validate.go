package soloist

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/soloist-go/soloist/internal/fields"
	"github.com/soloist-go/soloist/internal/lease"
	"github.com/soloist-go/soloist/internal/record"
	"github.com/soloist-go/soloist/internal/schedule"
	"github.com/soloist-go/soloist/internal/ticks"
	"github.com/soloist-go/soloist/store"
)

const (
	defaultLease = 30 * time.Second
	defaultRest  = 5 * time.Second

	defaultBackoff    = 10 * time.Second
	defaultHealthy    = 10 * time.Second
	defaultFailures   = 3
	defaultCheckpoint = 64 << 10 // bytes
)

// maxReplicaLen limits a name that is part of each record and each outcome in it.
const maxReplicaLen = 128

var (
	nameRule = regexp.MustCompile(`^[a-z][a-z0-9-]{0,62}$`)
	appRule  = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,62}$`)
)

// reserved are names that a job must not have: its path over HTTP, or its function, would collide
// with one of the program's or of the Functions host's.
var reserved = []string{"tick", "warmup", "host", "api", "admin", "healthz", "readyz", "metrics"}

// A verdict is what is wrong with the fields of a job.
type verdict []error

// when notes that a field is wrong.
func (v *verdict) when(bad bool, field string, value any, allowed string) {
	if bad {
		*v = append(*v, wrong(field, value, allowed))
	}
}

// check returns everything that is wrong with a job, except with its ticks.
func (j *Job) check(backend store.Store, wrongTicks error) error {
	each := j.EveryReplica
	v := verdict{checkName(j.Name), checkShards(j.Name, j.Shards), checkLease(j.Lease, backend), wrongTicks, j.checkAfter()}
	v.when(j.Do == nil, "Do", "nil", "a function")
	v = append(v, checkNumbers(j))
	v.when(j.Retry.PauseAfter > 0 && each, "Retry.PauseAfter", j.Retry.PauseAfter, "zero for a job of EveryReplica")
	v.when(!slices.Contains([]MissedPolicy{RunLatest, RunAll, SkipMissed}, j.Late.Missed), "Late.Missed", quote(string(j.Late.Missed)), "RunLatest, RunAll or SkipMissed")
	v = append(v, j.checkOverlap())
	v.when(!slices.Contains([]InterruptedPolicy{Abandon, Rerun}, j.Interrupted), "Interrupted", quote(string(j.Interrupted)), "Abandon or Rerun")
	v.when(j.Group != "" && (each || j.ClaimAhead), "Group", quote(j.Group), "none for a job of EveryReplica or with ClaimAhead")
	v.when(each && j.ClaimAhead, "ClaimAhead", true, "false for a job of EveryReplica: it has no claim")
	v.when(each && j.Shards > 0, "Shards", j.Shards, "zero for a job of EveryReplica: each replica does all of its work")
	v.when(each && (j.Lease != 0 || j.Late != (Late{}) || j.Interrupted != ""), "EveryReplica", true,
		"no Lease, Late or Interrupted beside it: such a job has no record")
	return errors.Join(v...)
}

// checkOverlap returns what is wrong with Overlap. Where the starting deadline is zero, SkipMissed
// limits the wait to one lease, so few runs are short enough for a queue.
func (j *Job) checkOverlap() error {
	switch {
	case j.Overlap == SkipOverlap:
		return nil
	case j.Overlap != QueueOne && j.Overlap != Replace:
		return wrong("Overlap", quote(string(j.Overlap)),
			"SkipOverlap, QueueOne or Replace: two runs of one job never take place at once, but those of its Shards do")
	case j.Late.Missed == RunAll:
		return wrong("Overlap", quote(string(j.Overlap)), "SkipOverlap beside Late.Missed: RunAll, under which all ticks wait that come due under a run")
	case len(j.After.Jobs) > 0:
		return wrong("Overlap", quote(string(j.Overlap)), "SkipOverlap beside After: of the ticks that come due under a run of such a job, the newest waits in any case")
	case j.Overlap == QueueOne && j.Late.Missed == SkipMissed && j.Late.Start == 0:
		return wrong("Overlap", quote(string(j.Overlap)), "SkipOverlap or Replace beside Late.Missed: SkipMissed, unless Late.Start says how long a tick may wait")
	}
	return nil
}

// checkTicks returns the ticks of the schedule within its limits. A wrong zone, a wrong schedule and
// wrong limits are mistakes of their own, and all are reported.
func (j *Job) checkTicks() (*ticks.Ticks, error) {
	var wrongZone error
	zone := j.TimeZone
	if zone != "" {
		if _, err := schedule.LoadZone(zone); err != nil {
			wrongZone, zone = fmt.Errorf("TimeZone %s %w", quote(zone), err), ""
		}
	}
	s, err := schedule.Parse(j.Schedule, zone, j.Name)
	if err != nil {
		return nil, errors.Join(wrongZone, wrongFor("Schedule", j.Schedule, err), j.limits().Check())
	}
	all, err := ticks.New(s, j.limits())
	return all, errors.Join(wrongZone, err)
}

// limits returns what the job says of its ticks in addition to the schedule.
func (j *Job) limits() ticks.Limits {
	d := &j.Days
	return ticks.Limits{From: d.From, Until: d.Until, Except: d.Except, Only: d.Only, Shift: ticks.Shift(d.Shift)}
}

// checkAfter returns what is wrong with the fields next to After.
func (j *Job) checkAfter() error {
	if len(j.After.Jobs) == 0 && j.After.Any {
		return wrong("After.Any", true, "false for a job without After.Jobs")
	}
	if len(j.After.Jobs) == 0 {
		return nil
	}
	const ticks = "beside After: the ticks are those of the job that this one follows"
	var v verdict
	v.when(j.Schedule != "", "Schedule", quote(j.Schedule), "none "+ticks)
	v.when(j.TimeZone != "", "TimeZone", quote(j.TimeZone), "none "+ticks)
	d := &j.Days
	v.when(!d.From.IsZero() || !d.Until.IsZero() || len(d.Except)+len(d.Only) > 0 || d.Shift != "", "Days", "set", "none "+ticks)
	v.when(j.ClaimAhead, "ClaimAhead", true, "false beside After: it is not known when such a job is due")
	v.when(j.EveryReplica, "EveryReplica", true, "false beside After: such a job has no record of what it has run")
	return errors.Join(v...)
}

// check returns everything that is wrong with a singleton.
func (g *Singleton) check(backend store.Store) error {
	v := verdict{checkName(g.Name), checkShards(g.Name, g.Shards), checkLease(g.Lease, backend)}
	v.when(g.Do == nil, "Do", "nil", "a function")
	return errors.Join(append(v, checkNumbers(g))...)
}

// shortest says how long a duration has to be that is not zero. Others: a millisecond.
var shortest = map[string]time.Duration{
	"Late.Finish":          time.Second,
	"HeartbeatTimeout":     time.Second,
	"HealthCheck.Interval": 100 * time.Millisecond,
}

// checkNumbers checks each duration and each count of a job or singleton. Lease and Shards have a check of their own.
func checkNumbers(work Work) error {
	var v verdict
	for name, value := range fields.Of(work) {
		switch n := value.Interface().(type) {
		case time.Duration:
			if name != "Lease" {
				v = append(v, checkDuration(name, n, cmp.Or(shortest[name], time.Millisecond)))
			}
		case int:
			switch name {
			case "Shards":
			case "MaxCheckpoint":
				v.when(n < 0 || n > store.MaxCheckpoint, name, n, fmt.Sprintf("0 to %d bytes", store.MaxCheckpoint))
			default:
				v.when(n < 0, name, n, "zero or more")
			}
		}
	}
	return errors.Join(v...)
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

// checkPlace checks where entries are kept, and under which names.
func checkPlace(backend store.Store, app, replica string) (errs []error) {
	if backend == nil {
		errs = append(errs, wrong("Store", "nil", "a place for leases and records"))
	}
	if !appRule.MatchString(app) {
		errs = append(errs, wrong("App", quote(app), "a lower-case letter or digit, then up to 62 of them or hyphens"))
	}
	if len(replica) > maxReplicaLen {
		errs = append(errs, wrong("Replica", quote(replica), fmt.Sprintf("up to %d bytes", maxReplicaLen)))
	}
	return errs
}

// checkShards returns what is wrong with the number of shards, and with the names that they get.
func checkShards(name string, shards int) error {
	if shards < 0 || shards > maxShards {
		return wrong("Shards", shards, fmt.Sprintf("0 to %d", maxShards))
	}
	names := ShardNames(name, shards)
	if last := names[len(names)-1]; nameRule.MatchString(name) && !nameRule.MatchString(last) {
		return fmt.Errorf("the name of its last shard, %q, is %d characters long: allowed are 63, so shorten Name", last, len(last))
	}
	return nil
}

// checkLease checks a lease against the limits of the store. A shorter one than the shortest of the store is kept by
// beats, if the store lets replicas replace a holder that sends none.
func checkLease(d time.Duration, backend store.Store) error {
	if backend == nil {
		return nil // checkSelf reports it, once
	}
	if isBareNumber(d) {
		return bareNumber("Lease", d)
	}
	shortest, longest := backend.Limits()
	d, least := orDefault(d, defaultLease), lease.Shortest(backend)
	switch {
	case d >= least && d <= longest && d%time.Second == 0:
		return nil
	case d >= record.ShortestBeat && d < shortest && d%time.Second == 0:
		return wrong("Lease", d, fmt.Sprintf("whole seconds from %s to %s: a shorter lease needs a store that implements store.ConditionalBreaker", shortest, longest))
	}
	return wrong("Lease", d, fmt.Sprintf("whole seconds from %s to %s", least, longest))
}

// checkDuration checks a field that is zero, or least or more.
func checkDuration(field string, d, least time.Duration) error {
	switch {
	case isBareNumber(d):
		return bareNumber(field, d)
	case d < 0 || d > 0 && d < least:
		return wrong(field, d, fmt.Sprintf("zero, or %s or more", least))
	}
	return nil
}

// isBareNumber reports whether d looks like a number without a unit: Go takes Timeout: 30 for 30
// nanoseconds.
func isBareNumber(d time.Duration) bool { return d > 0 && d < time.Microsecond }

// bareNumber returns the error for a number without a unit.
func bareNumber(field string, d time.Duration) error {
	return fmt.Errorf("%s is %s: did you mean %d * time.Second?", field, d, d.Nanoseconds())
}

// wrong returns the error for a field: its name, its value and what is allowed.
func wrong(field string, value any, allowed string) error {
	return fmt.Errorf("%s is %v: allowed is %s", field, value, allowed)
}

// wrongFor returns the error for a field whose value is refused for a reason.
func wrongFor(field, value string, reason error) error {
	return fmt.Errorf("%s is %s: %w", field, quote(value), reason)
}

// quote quotes a value for an error, cut so that a wrong setting cannot fill the log.
func quote(s string) string { return fmt.Sprintf("%.80q", s) }

// setDefault gives a field its default if it is zero.
func setDefault[T comparable](field *T, def T) {
	var zero T
	if *field == zero {
		*field = def
	}
}

// orDefault returns v, or def if v is zero: the zero value of a field means its default.
func orDefault[T ~int | ~int64](v, def T) T {
	if v == 0 {
		return def
	}
	return v
}
