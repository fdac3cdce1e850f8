// Package strangers finds jobs of an app that run, and that this program does not have. Two programs
// that share an app by mistake take each other's ticks of the jobs that both have, and nothing fails.
package strangers

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/soloist-go/soloist/internal/entry"
	"github.com/soloist-go/soloist/internal/lease"
	"github.com/soloist-go/soloist/internal/record"
	"github.com/soloist-go/soloist/store"
)

// looks are how long a replica waits before each look, and how far back it looks; the last one is repeated. In a
// deployment the replicas of two versions are up together, and their jobs may differ: for a quarter of an hour that is
// no finding.
var looks = []struct{ wait, back time.Duration }{{10 * time.Minute, 10 * time.Minute}, {15 * time.Minute, 10 * time.Minute}, {24 * time.Hour, 24 * time.Hour}}

// Find waits until two looks, one after the other, have found a job which is not this program's and was claimed of late,
// and returns such jobs and the replicas that claimed them; none if ctx ends before. A look is one listing: two soon
// after the start, then one a day. One that fails finds nothing.
func Find(ctx context.Context, c *lease.Client, app string, own func(job string) bool) (jobs, replicas []string) {
	var before map[string]string
	for n := 0; len(jobs) == 0; n++ {
		l := looks[min(n, len(looks)-1)]
		select {
		case <-ctx.Done():
			return nil, nil
		case <-time.After(l.wait):
		}
		now := look(ctx, c, app, own, l.back)
		for job, replica := range now {
			if before[job] != "" {
				jobs, replicas = append(jobs, job), append(replicas, replica)
			}
		}
		before = now
	}
	slices.Sort(jobs)
	slices.Sort(replicas)
	return jobs, slices.Compact(replicas)
}

// look returns, for each job that was claimed so far back or runs, the replica that claimed it last.
func look(ctx context.Context, c *lease.Client, app string, own func(job string) bool, back time.Duration) map[string]string {
	found := map[string]string{}
	if _, err := c.List(ctx, app, func(name string, e store.Entry) {
		job := strings.TrimPrefix(name, app+"/")
		if n, ok := entry.Parse(job); !ok || n.Kind != entry.Job || own(job) || e.Date.IsZero() {
			return
		}
		rec, err := record.Decode(e.Record, app, job)
		if err == nil && (e.Date.Sub(rec.Run.Claimed) < back || rec.MayRun() && e.State.Live()) {
			found[job] = rec.Run.Replica
		}
	}); err != nil {
		return nil
	}
	return found
}
