package sim

import (
	"cmp"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/internal/sim/trace"
	"github.com/soloist-go/soloist/internal/sim/world"
)

// addTo gives a scheduler the jobs and singletons of some definitions, each whole once.
func (c *Cluster) addTo(s *soloist.Scheduler, m *world.Machine, defs []trace.Definition) {
	wholes := map[string]bool{}
	for i := range defs {
		d := &defs[i]
		if d.Shards > 0 && wholes[d.Whole] {
			continue
		}
		if wholes[d.Whole] = true; d.Schedule == "" {
			s.Singletons = append(s.Singletons, c.singleton(m, d))
		} else {
			s.Jobs = append(s.Jobs, c.job(m, d))
		}
	}
}

func (c *Cluster) job(m *world.Machine, d *trace.Definition) soloist.Job {
	text := d.Schedule
	if d.Follows != "" {
		text = ""
	}
	j := soloist.Job{Name: cmp.Or(d.Whole, d.Name), Shards: d.Shards, Schedule: text, After: d.Follows, AfterAny: d.FollowsAny, TimeZone: d.Zone, Lease: c.leaseOf(d), Timeout: d.Timeout, HeartbeatTimeout: d.HeartbeatTimeout,
		Retry: soloist.Retry{MaxTries: d.MaxTries, Backoff: d.Backoff, PauseAfter: d.PauseAfter}, StartingDeadline: d.StartingDeadline, FinishBy: d.FinishBy, Missed: d.Missed, Overlap: d.Overlap, Interrupted: d.Interrupted, Paused: d.Paused, EveryReplica: d.EveryReplica,
		HealthCheck: soloist.HealthCheck{Check: c.healthy(m, d), Interval: d.HealthInterval, FailureThreshold: d.FailureThreshold}, MaxCheckpoint: d.MaxCheckpoint, ClaimAhead: d.ClaimAhead, Group: d.Group, Except: closed(d), Do: c.do(m, d)}
	limits(&j, d)
	return j
}

func (c *Cluster) singleton(m *world.Machine, d *trace.Definition) soloist.Singleton {
	return soloist.Singleton{Name: cmp.Or(d.Whole, d.Name), Shards: d.Shards, Lease: c.leaseOf(d), HeartbeatTimeout: d.HeartbeatTimeout, Backoff: d.Backoff,
		HealthCheck: soloist.HealthCheck{Check: c.healthy(m, d), Interval: d.HealthInterval, FailureThreshold: d.FailureThreshold}, MaxCheckpoint: d.MaxCheckpoint, Do: c.do(m, d)}
}
