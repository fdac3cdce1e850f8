package app

import (
	"fmt"
	"time"

	"github.com/soloist-go/soloist/host/internal/format"
)

// price is what 10,000 operations of the class Other cost, as docs/costs.md has it.
const price = 0.0044

// Beats describes, for people, what each lease costs that is shorter than the store's shortest: it
// is kept by beats. Empty: there is no such lease.
func (a *App) Beats() (lines []string) {
	shortest, _ := a.Scheduler.Store.Limits()
	for _, g := range a.Scheduler.Singletons {
		if d := g.Lease; d > 0 && d < shortest {
			month := 30 * 24 * time.Hour
			lines = append(lines, fmt.Sprintf("%s: lease %s, shorter than the %s of the store, so its holder beats: about $%.2f a month for the replica that runs it and $%.2f for each other one%s", g.Name, d, shortest,
				dollars(d, shortest, month), dollars(d, 0, month), eachOf(g.Shards)))
		}
	}
	for _, j := range a.Scheduler.Jobs {
		if d := j.Lease; d > 0 && d < shortest && !j.EveryReplica {
			lines = append(lines, fmt.Sprintf("%s: lease %s, shorter than the %s of the store, so its holder beats: about $%.4f for each hour of its runs, and as much at most for each other replica%s", j.Name, d, shortest,
				dollars(d, shortest, time.Hour), eachOf(j.Shards)))
		}
	}
	return lines
}

// dollars is what the beats of a length cost for a time, with the renewals of a lease; zero:
// without any.
func dollars(beat, lease, d time.Duration) float64 {
	calls := 3 * float64(d) / float64(beat)
	if lease > 0 {
		calls += 3 * float64(d) / float64(lease)
	}
	return calls * price / 10_000
}

func eachOf(shards int) string {
	if shards == 0 {
		return ""
	}
	return ", for each of " + format.Plural(shards, "shard")
}
