package soloist

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/soloist-go/soloist/internal/desk"
	"github.com/soloist-go/soloist/internal/entry"
	"github.com/soloist-go/soloist/internal/mutex"
	"github.com/soloist-go/soloist/internal/plan"
	"github.com/soloist-go/soloist/internal/runner"
	"github.com/soloist-go/soloist/internal/supervise"
	"github.com/soloist-go/soloist/internal/ticks"
	"github.com/soloist-go/soloist/store"
)

// A logOf returns the logger of the runs of a name.
type logOf func(name string) *slog.Logger

// runnerJobs returns the job, or each of its shards, in the form that internal/runner takes, or what
// is wrong with it. It shares its schedule with jobs that have the same one.
func (j *Job) runnerJobs(backend store.Store, log logOf, of ancestry, schedules map[string]*ticks.Ticks) (jobs []*runner.Job, err error) {
	if err = j.check(backend, of.wrong); err != nil {
		return nil, fmt.Errorf("job %q: %w", j.Name, err)
	}
	due, text := of.ticks, of.ticks.String()
	if same := schedules[text]; same != nil {
		due = same
	}
	schedules[text] = due
	if _, ok := backend.(store.Documenter); j.Retry.PauseAfter > 0 && !ok {
		return nil, fmt.Errorf("job %q: Retry.PauseAfter: %w, and nothing could resume the job", j.Name, desk.ErrNoOrders)
	}
	for _, p := range partsOf(j.Name, j.Shards) {
		made := j.runnerJob(p, log(p.name), due, of.after)
		made.Policy.Lease, made.Policy.Beat = leaseOf(j.Lease, backend)
		jobs = append(jobs, made)
	}
	return jobs, nil
}

// runnerJob returns one part of the job, which follows the parts of others that are named in after.
func (j *Job) runnerJob(p part, log *slog.Logger, due *ticks.Ticks, after []string) *runner.Job {
	words := due.Words
	if len(j.After.Jobs) > 0 {
		text := j.words()
		words = func() string { return text }
	}
	task := newTask(log, p, j.Do, j.HeartbeatTimeout, j.HealthCheck, j.MaxCheckpoint)
	task.Timeout, task.MaxTries, task.Backoff = j.Timeout, j.Retry.MaxTries, orDefault(j.Retry.Backoff, defaultBackoff)
	return &runner.Job{Name: p.name, Task: task, EveryReplica: j.EveryReplica, Schedule: words, Shard: shardOf(p, j.Name, j.Shards),
		Policy: plan.Policy{Ticks: due, Late: j.Late.policy(),
			Overlap: plan.Overlap(j.Overlap), Interrupted: plan.Interrupted(j.Interrupted),
			ClaimAhead: j.ClaimAhead, Paused: j.Paused, PauseAfter: int64(j.Retry.PauseAfter),
			Spec: j.spec(due, after), After: after, AfterAny: j.After.Any}}
}

// leaseOf returns the lease that a store is asked for where a program asks for d. If the store takes none so short,
// that is its shortest one, and beat is d: the holder of a run beats. A store that is nil is a mistake that is reported elsewhere.
func leaseOf(d time.Duration, backend store.Store) (length, beat time.Duration) {
	if d = orDefault(d, defaultLease); backend == nil {
		return d, 0
	}
	if shortest, _ := backend.Limits(); d < shortest {
		return shortest, d
	}
	return d, 0
}

// shardOf returns which shard a part is, zero if it is the whole.
func shardOf(p part, whole string, shards int) runner.Shard {
	if shards == 0 {
		return runner.Shard{}
	}
	return runner.Shard{Of: whole, Index: p.shard, Count: p.shards}
}

// runnerJobs returns the singleton, or each of its shards, in the form that internal/runner takes, or
// what is wrong with it.
func (g *Singleton) runnerJobs(backend store.Store, log logOf) (jobs []*runner.Job, err error) {
	if err := g.check(backend); err != nil {
		return nil, fmt.Errorf("singleton %q: %w", g.Name, err)
	}
	length, beat := leaseOf(g.Lease, backend)
	for _, p := range partsOf(g.Name, g.Shards) {
		jobs = append(jobs, &runner.Job{Name: p.name, Rest: orDefault(g.Backoff, defaultRest), Shard: shardOf(p, g.Name, g.Shards),
			Task:   newTask(log(p.name), p, g.Do, g.HeartbeatTimeout, g.HealthCheck, g.MaxCheckpoint),
			Policy: plan.Policy{Lease: length, Beat: beat, Spec: specOf(g.Shards, "singleton")}})
	}
	return jobs, nil
}

// newTask returns the settings that jobs and singletons have in common, with their defaults.
func newTask(log *slog.Logger, p part, do func(context.Context, *Run) error, silence time.Duration, health HealthCheck, checkpoint int) supervise.Task {
	return supervise.Task{
		Do: func(ctx context.Context, h *supervise.Handle) error {
			run := newRun(log, p, h)
			run.replica, _ = ctx.Value(replicaKey{}).(*runner.Replica)
			return do(ctx, run)
		},
		HeartbeatTimeout: silence, HealthCheck: health.Check,
		HealthInterval: orDefault(health.Interval, defaultHealthy), FailureThreshold: orDefault(health.FailureThreshold, defaultFailures),
		MaxCheckpoint: orDefault(checkpoint, defaultCheckpoint)}
}

// spec returns the hash of the job's definition, with these ticks.
func (j *Job) spec(due *ticks.Ticks, after []string) string {
	if len(j.After.Jobs) == 0 {
		return plan.SpecWith(specOf(j.Shards, "job", due.Text()), due.ZoneSum(), due.DaysSum())
	}
	text := specOf(j.Shards, "after", due.Text(), strings.Join(slices.Sorted(slices.Values(after)), ","), fmt.Sprint(j.After.Any))
	return plan.SpecWith(text, due.ZoneSum(), due.DaysSum())
}

// specOf returns the hash of a definition. Replicas with another hash have other ticks, so only replicas of one definition may
// decide about the job at a time. The number of shards is part of it: the shards of another number have other shares of the work.
func specOf(shards int, parts ...string) string {
	if shards > 0 {
		parts = append(parts, "shards", strconv.Itoa(shards))
	}
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:6])
}

// A lineage finds the ticks of jobs that follow others.
type lineage struct {
	jobs       map[string]*Job
	singletons map[string]bool
	found      map[string]*ticks.Ticks // ticks of jobs; nil: there are none, and an error says why
}

// newLineage returns the lineage of a scheduler's jobs.
func newLineage(jobs []Job, singletons []Singleton) *lineage {
	l := &lineage{jobs: map[string]*Job{}, singletons: map[string]bool{}, found: map[string]*ticks.Ticks{}}
	for i := range jobs {
		l.jobs[jobs[i].Name] = &jobs[i]
	}
	for _, g := range singletons {
		l.singletons[g.Name] = true
	}
	return l
}

// named returns the ticks of a job: the ticks of its schedule or, for a follower, of the jobs
// that it follows. The path has the followers of this job from which it was reached.
func (l *lineage) named(j *Job, path ...string) (*ticks.Ticks, error) {
	if len(j.After.Jobs) == 0 {
		return j.checkTicks()
	}
	var errs []error
	var first string
	var common *ticks.Ticks
	path = append(path, j.Name)
	for i, name := range j.After.Jobs {
		if slices.Contains(j.After.Jobs[:i], name) {
			errs = append(errs, mistaken("names %s twice", quote(name)))
			continue
		}
		t, err := l.ticksOf(name, path)
		switch {
		case err != nil:
			errs = append(errs, err)
		case common == nil:
			first, common = name, t
		case common.String() != t.String():
			errs = append(errs, mistaken("names %s, %s, and %s, %s: allowed are jobs with the ticks of one schedule", quote(first), common.Words(), quote(name), t.Words()))
		}
	}
	return common, errors.Join(errs...)
}

// An ancestry is what a job has of those that it follows.
type ancestry struct {
	ticks *ticks.Ticks
	wrong error    // why there are no ticks
	after []string // the names of all shards of the jobs that it follows
}

// of returns the ancestry of a job.
func (l *lineage) of(j *Job) (a ancestry) {
	if a.ticks, a.wrong = l.named(j); a.wrong == nil {
		a.after = l.parts(j)
	}
	return a
}

// parts returns the names of all shards of the jobs that a job follows.
func (l *lineage) parts(j *Job) (names []string) {
	for _, name := range j.After.Jobs {
		names = append(names, ShardNames(name, l.jobs[name].Shards)...)
	}
	return names
}

// ticksOf returns the ticks of a job that the last one of a path follows.
func (l *lineage) ticksOf(name string, path []string) (*ticks.Ticks, error) {
	j := l.jobs[name]
	switch {
	case name == "":
		return nil, mistaken("has an empty name: allowed are names of jobs")
	case name == path[len(path)-1]:
		return nil, mistaken("names %s, which is this job itself", quote(name))
	case slices.Contains(path, name):
		return nil, &circleError{append(slices.Clone(path[slices.Index(path, name):]), name)}
	case l.singletons[name]:
		return nil, mistaken("names %s, which is a singleton: it has no ticks", quote(name))
	case j == nil:
		return nil, mistaken("names %s, and there is no such job", quote(name))
	case j.EveryReplica:
		return nil, mistaken("names %s, which is a job of EveryReplica: its ticks have no outcome", quote(name))
	}
	found, known := l.found[name]
	if !known {
		t, err := l.named(j, path...)
		if err == nil {
			found = t
		}
		l.found[name] = found
		if circle, ok := errors.AsType[*circleError](err); ok {
			return nil, circle
		}
	}
	if found == nil {
		return nil, mistaken("names %s, whose own ticks are not known", quote(name))
	}
	return found, nil
}

// mistaken returns the error for what After.Jobs names.
func mistaken(format string, args ...any) error { return fmt.Errorf("After.Jobs "+format, args...) }

// A circleError says that jobs wait for each other.
type circleError struct{ names []string }

func (e *circleError) Error() string {
	return "After.Jobs leads back to where it began: " + strings.Join(e.names, " after ")
}

// words returns when a follower is due, for people.
func (j *Job) words() string {
	names := j.After.Jobs
	text := names[len(names)-1]
	if rest := names[:len(names)-1]; len(rest) > 0 {
		text = strings.Join(rest, ", ") + " and " + text
	}
	if j.After.Any {
		return "after " + text + ", whatever the outcome"
	}
	return "after " + text
}

// A group lets runs of several jobs take its slots.
type group struct{ slots *mutex.Mutex }

// Do implements [runner.Group].
func (g *group) Do(ctx context.Context, patience time.Duration, f func(slot context.Context)) error {
	return g.slots.DoWithin(ctx, patience, func(ctx context.Context, _ int, _ *supervise.Handle) error {
		f(ctx)
		return nil
	})
}

// prepareGroups makes the groups that jobs use, by their names. Those that are wrong are left out, and
// checkGroups reports why.
func (s *Scheduler) prepareGroups() map[string]*group {
	all := map[string]*group{}
	for i := range s.Jobs {
		name := s.Jobs[i].Group
		if all[name] == nil && s.Groups[name] > 0 && s.checkGroup(name) == nil && checkPlace(s.Store, s.App, s.Replica) == nil {
			all[name] = s.newGroup(name)
		}
	}
	return all
}

func (s *Scheduler) newGroup(name string) *group {
	length := s.leaseOfGroup(name)
	r := bareReplica(s.App, s.Replica, s.Store, s.core.Replica)
	r.Overrun = s.Overrun
	hearTrouble(r, s.Logger.With("group", name, "replica", s.Replica))
	return &group{newSlots(r, entry.Group, name, s.Groups[name], length)}
}

// leaseOfGroup returns the longest lease of the jobs of a group: a slot then lasts as long as the lease
// of the run that has it.
func (s *Scheduler) leaseOfGroup(name string) (longest time.Duration) {
	for _, j := range s.Jobs {
		if j.Group == name {
			longest = max(longest, orDefault(j.Lease, defaultLease))
		}
	}
	return longest
}

// newSlots returns the slots of a lock or a group, with the lease d.
func newSlots(r *runner.Replica, kind entry.Kind, name string, n int, d time.Duration) *mutex.Mutex {
	length, beat := leaseOf(d, r.Store)
	slots := make([]*runner.Runner, n)
	for i := range slots {
		slots[i] = runner.New(r, &runner.Job{Name: entry.OfSlot(kind, i, name), Policy: plan.Policy{Lease: length, Beat: beat, Spec: string(kind)},
			Task: supervise.Task{MaxCheckpoint: defaultCheckpoint}})
	}
	return mutex.New(r, slots, length)
}

// checkGroups returns what is wrong with the groups.
func (s *Scheduler) checkGroups() (errs []error) {
	used := map[string]bool{}
	for _, j := range s.Jobs {
		if j.Group == "" {
			continue
		}
		used[quote(j.Group)] = true
		if _, known := s.Groups[j.Group]; !known {
			errs = append(errs, fmt.Errorf("job %q: Group is %s, which has no limit: set one in Groups", j.Name, quote(j.Group)))
		}
	}
	known := "no job has a group"
	if len(used) > 0 {
		known = "the groups of jobs are " + strings.Join(slices.Sorted(maps.Keys(used)), ", ")
	}
	for _, name := range slices.Sorted(maps.Keys(s.Groups)) {
		errs = append(errs, s.checkGroup(name))
		if !used[quote(name)] { // perhaps it is misspelled
			errs = append(errs, fmt.Errorf("Groups[%s] is %d, and no job has the Group %[1]s: %[3]s", quote(name), s.Groups[name], known)) //nolint:staticcheck // ST1005: it begins with the name of a field
		}
	}
	return errs
}

func (s *Scheduler) checkGroup(name string) error {
	if err := entry.Check(name); err != nil {
		return fmt.Errorf("Groups has the name %s: %w", quote(name), err) //nolint:staticcheck // ST1005: it begins with the name of a field
	}
	if n := s.Groups[name]; n < 1 || n > entry.MaxSlots {
		return wrong(fmt.Sprintf("Groups[%s]", quote(name)), n, fmt.Sprintf("1 to %d", entry.MaxSlots))
	}
	return nil
}
