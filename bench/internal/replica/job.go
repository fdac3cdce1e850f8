package replica

import (
	"fmt"
	"time"
)

// A Job is due at regular times.
type Job struct {
	Name  string
	Every time.Duration // a day, a minute, or whole seconds of which a minute has a whole number
	At    time.Duration // whole seconds, of a day whole minutes: the ticks are so long after the multiples of Every
	Work  time.Duration // how long a run takes
}

// early is by how much a timer may be ahead of the wall clock.
const early = 20 * time.Millisecond

// Cron is the schedule as cron text with seconds first, which all peers take.
func (j Job) Cron() string {
	switch j.Every {
	case 24 * time.Hour:
		return fmt.Sprintf("0 %d %d * * *", j.At/time.Minute%60, j.At/time.Hour)
	case time.Minute:
		return fmt.Sprintf("%d * * * * *", j.At/time.Second)
	}
	return fmt.Sprintf("%d-59/%d * * * * *", j.At/time.Second, j.Every/time.Second)
}

// Tick is the tick of a run that starts now, on a replica that does not know the tick of a run:
// the last one.
func (j Job) Tick(now time.Time) time.Time {
	return now.Add(early - j.At).Truncate(j.Every).Add(j.At)
}

// Next is the first tick after now.
func (j Job) Next(now time.Time) time.Time {
	return now.Add(-j.At).Truncate(j.Every).Add(j.At + j.Every)
}

// Jobs makes so many jobs that are due at the same time.
func Jobs(n int, every, at time.Duration, works ...time.Duration) (all []Job) {
	for i := range n {
		j := Job{Name: fmt.Sprintf("job-%d", i), Every: every, At: at}
		if len(works) > 0 {
			j.Work = works[i%len(works)]
		}
		all = append(all, j)
	}
	return all
}
