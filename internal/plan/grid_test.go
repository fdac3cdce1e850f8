package plan

import "time"

// grid is a schedule: each multiple of a period since the day before.
type grid time.Duration

func every(period string) grid {
	d, _ := time.ParseDuration(period)
	return grid(d)
}

func (g grid) Last(at time.Time) time.Time {
	first := midnight.AddDate(0, 0, -1)
	return first.Add(at.Sub(first).Truncate(time.Duration(g)))
}
func (g grid) Next(after time.Time) time.Time { return g.Last(after).Add(time.Duration(g)) }
func (g grid) Count(after, to time.Time, limit int) int {
	return min(limit, max(0, int(g.Last(to).Sub(g.Last(after))/time.Duration(g))))
}
