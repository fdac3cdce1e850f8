package soloist

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/soloist-go/soloist/internal/plan"
	"github.com/soloist-go/soloist/internal/runner"
	"github.com/soloist-go/soloist/internal/schedule"
	"github.com/soloist-go/soloist/internal/supervise"
	"github.com/soloist-go/soloist/store"
)

// errNoOrders is for a store of the user's own without the optional interface.
var errNoOrders = errors.New("the store keeps no orders of operators: it does not implement store.Documenter")

// runnerJob returns the job in the form that internal/runner takes, or what is wrong with it. Its
// runs log to log. It shares its schedule with jobs that have the same one.
func (j *Job) runnerJob(backend store.Store, log *slog.Logger, schedules map[string]*schedule.Schedule) (*runner.Job, error) {
	ticks, err := j.check(backend)
	if err != nil {
		return nil, fmt.Errorf("job %q: %w", j.Name, err)
	}
	text := ticks.String()
	if same := schedules[text]; same != nil {
		ticks = same
	}
	schedules[text] = ticks
	if _, ok := backend.(store.Documenter); j.Retry.PauseAfter > 0 && !ok {
		return nil, fmt.Errorf("job %q: PauseAfter: %w, and nothing could resume the job", j.Name, errNoOrders)
	}
	task := newTask(log, j.Name, j.Do, j.HeartbeatTimeout, j.HealthCheck, j.MaxCheckpoint)
	task.Timeout, task.MaxTries, task.Backoff = j.Timeout, j.Retry.MaxTries, orDefault(j.Retry.Backoff, defaultBackoff)
	return &runner.Job{Name: j.Name, Task: task, EveryReplica: j.EveryReplica, Schedule: ticks.Words,
		Policy: plan.Policy{Ticks: ticks, StartingDeadline: j.StartingDeadline, Lease: orDefault(j.Lease, defaultLease),
			Missed: plan.Missed(j.Missed), Interrupted: plan.Interrupted(j.Interrupted), ClaimAhead: j.ClaimAhead, Paused: j.Paused, PauseAfter: int64(j.Retry.PauseAfter),
			Spec: spec("job", text)}}, nil
}

// runnerJob returns the singleton in the form that internal/runner takes, or what is wrong with it.
// Its runs log to log.
func (g *Singleton) runnerJob(backend store.Store, log *slog.Logger) (*runner.Job, error) {
	if err := g.check(backend); err != nil {
		return nil, fmt.Errorf("singleton %q: %w", g.Name, err)
	}
	return &runner.Job{Name: g.Name, Rest: orDefault(g.Backoff, defaultRest),
		Task:   newTask(log, g.Name, g.Do, g.HeartbeatTimeout, g.HealthCheck, g.MaxCheckpoint),
		Policy: plan.Policy{Lease: orDefault(g.Lease, defaultLease), Spec: spec("singleton")}}, nil
}

// newTask returns the settings that jobs and singletons have in common, with their defaults.
func newTask(log *slog.Logger, name string, do func(context.Context, *Run) error, silence time.Duration, health HealthCheck, checkpoint int) supervise.Task {
	return supervise.Task{
		Do: func(ctx context.Context, h *supervise.Handle) error {
			run := newRun(log, name, h)
			run.replica, _ = ctx.Value(replicaKey{}).(*runner.Replica)
			return do(ctx, run)
		},
		HeartbeatTimeout: silence, HealthCheck: health.Check,
		HealthInterval: orDefault(health.Interval, defaultHealthy), FailureThreshold: orDefault(health.FailureThreshold, defaultFailures),
		MaxCheckpoint: orDefault(checkpoint, defaultCheckpoint)}
}

// spec returns a hash of a job's definition. Replicas with another hash have other ticks, so only
// those of one definition may decide about the job at a time.
func spec(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:6])
}
