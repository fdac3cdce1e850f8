package plan

import (
	"time"

	"github.com/soloist-go/soloist/internal/instant"
)

const (
	minAwait = 300 * time.Millisecond
	maxAwait = 10 * time.Second
)

// AwaitPace returns the pause between two reads of a predecessor, so long after its tick. The
// longer a run has taken, the less it matters that its end is seen a little later.
func AwaitPace(sinceTick time.Duration) time.Duration {
	return min(max(sinceTick/8, minAwait), maxAwait)
}

// Awaits returns the first tick that has come and whose predecessors have no outcome for it, as
// far as is known here: then their records are to be read. It returns false if there is none, or
// if nothing can be run now whatever those records say.
func (p *Policy) Awaits(v View) (tick time.Time, ok bool) {
	r := v.Record
	if !p.Follows() || p.Outdated(v) || p.PausedAt(v) || r.MayRun() && v.State.Live() {
		return time.Time{}, false
	}
	tick = p.Ticks.Next(instant.Later(instant.Later(r.Watermark, claimed(r)), DecidedBy(v.Before)))
	return tick, !tick.IsZero() && !tick.After(v.Now)
}
