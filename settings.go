package soloist

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/soloist-go/soloist/internal/desk"
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
		return nil, fmt.Errorf("job %q: PauseAfter: %w, and nothing could resume the job", j.Name, desk.ErrNoOrders)
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
	if j.After != "" {
		words = j.words
	}
	task := newTask(log, p, j.Do, j.HeartbeatTimeout, j.HealthCheck, j.MaxCheckpoint)
	task.Timeout, task.MaxTries, task.Backoff = j.Timeout, j.Retry.MaxTries, orDefault(j.Retry.Backoff, defaultBackoff)
	return &runner.Job{Name: p.name, Task: task, EveryReplica: j.EveryReplica, Schedule: words, Shard: shardOf(p, j.Name, j.Shards),
		Policy: plan.Policy{Ticks: due, StartingDeadline: j.StartingDeadline, FinishBy: j.FinishBy,
			Missed: plan.Missed(j.Missed), Overlap: plan.Overlap(j.Overlap), Interrupted: plan.Interrupted(j.Interrupted), ClaimAhead: j.ClaimAhead, Paused: j.Paused, PauseAfter: int64(j.Retry.PauseAfter),
			Spec: j.spec(due, after), After: after, AfterAny: j.AfterAny}}
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
	if j.After == "" {
		return plan.SpecWith(specOf(j.Shards, "job", due.Text()), due.ZoneSum(), due.DaysSum())
	}
	text := specOf(j.Shards, "after", due.Text(), strings.Join(slices.Sorted(slices.Values(after)), ","), fmt.Sprint(j.AfterAny))
	return plan.SpecWith(text, due.ZoneSum(), due.DaysSum())
}

// spec returns a hash of a job's definition. Replicas with another hash have other ticks, so only
// replicas of one definition may decide about the job at a time.
func spec(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:6])
}

// specOf returns the hash of a definition. The number of shards is part of it: the shards of another
// number have other shares of the work.
func specOf(shards int, parts ...string) string {
	if shards > 0 {
		parts = append(parts, "shards", strconv.Itoa(shards))
	}
	return spec(parts...)
}
