package check

import (
	"fmt"
	"slices"
	"strings"
)

// apart: two definitions have one hash only if they are one. Those of a job with other days under the same texts have other
// ones, and replicas with the same program have the same.
func apart(l *Log, bad report) {
	for _, job := range l.index.jobs {
		hashes := map[string]map[string]string{} // by the texts, then by the days
		for _, c := range l.claimed(job) {
			d := l.definition(c.Replica, job)
			if d == nil || c.Record == nil || c.Record.Run.Request != "" || job == Foreign {
				continue
			}
			texts, hash := fmt.Sprint(d.Schedule, d.Every, d.Zone, d.Limits, d.Shards, d.Follows, d.FollowsAny), c.Record.Definition.Spec
			if hashes[texts] == nil {
				hashes[texts] = map[string]string{}
			}
			for days, other := range hashes[texts] {
				same := days == d.Closed
				if same && other != hash || !same && other == hash && !l.limited(c.Replica, d) {
					bad(c.Time, "%s claims %s with the days %q under the hash %s, and days %q have %s", c.Replica, job, d.Closed, hash, days, other)
					return
				}
			}
			hashes[texts][d.Closed] = hash
		}
	}
}

// limited reports whether the ticks of a job have limits which may leave out days anyway. Those of a follower are those of
// the jobs before it.
func (l *Log) limited(replica string, d *Definition) bool {
	return d.Limits.Only != "" || !d.Limits.Until.IsZero() || slices.ContainsFunc(strings.Split(d.Follows, ", "), func(name string) bool {
		before := l.definition(replica, name)
		return before != nil && l.limited(replica, before)
	})
}

// sameTicks reports whether two definitions of a job have the same hash.
func (d *Definition) sameTicks(o *Definition) bool {
	return d.Schedule == o.Schedule && d.Every == o.Every && d.Closed == o.Closed && d.Limits == o.Limits
}
