package plan

import (
	"strings"
	"time"

	"github.com/soloist-go/soloist/internal/instant"
)

// Ticks that come due while the job runs are skipped at the end of the run, unless the policy of
// the job says otherwise:
//
//   - Under QueueOne the newest of them stays unsettled at the end of the run. So it is due then,
//     as a tick is that came due a moment later, and whatever bounds such a tick bounds it:
//     the starting deadline, pauses, a full group, a changed definition.
//   - Under Replace too. Besides, the replica that runs the older tick ends that run as soon as the
//     newer one is due and can start there. It knows the ticks, so no replica has to notify it, and no other replica
//     can claim the newer tick before the run has ended: there is one claim at a time. If the
//     runner has died, the older tick gets no further attempt once a newer one is due.

// ReplacedBy returns the tick that is due and takes the place of the last run, whose outcome is not
// written yet. It is zero if there is none: a tick that would not be run itself ends no run. A run by
// hand is never replaced.
func (p *Policy) ReplacedBy(v View) time.Time {
	r := v.Record
	if p.Overlap != Replace || p.Ticks == nil || r.Run.Request != "" || p.PausedAt(v) {
		return time.Time{}
	}
	newest := p.Ticks.Last(v.Now)
	if !newest.After(instant.Later(r.Watermark, r.Run.Tick)) {
		return time.Time{}
	}
	tick, _ := p.choose(r.Watermark, newest, v.Now, p.pausesUntil(r, v.Control, v.Now))
	return tick
}

// Replaced begins the reason of a cancelled run whose place a newer tick has taken. The reason of a run which an
// operator has cancelled begins with "by".
const Replaced = "replaced"

// replaced reports whether a newer tick has taken the place of a cancelled run with the reason.
func replaced(reason string) bool { return strings.HasPrefix(reason, Replaced+" ") }

// outlived reports whether a tick came due after the tick of the last run and replaces it, even a tick that is too
// late to be run itself: then the older one is not repeated.
func (p *Policy) outlived(v View) bool {
	return p.Overlap == Replace && p.lastOutside(v.Now, p.pausesUntil(v.Record, v.Control, v.Now)).After(v.Record.Run.Tick)
}

// UntilReplaced returns for how long no tick takes the place of the last run.
func (p *Policy) UntilReplaced(v View) time.Duration {
	next := p.Ticks.Next(v.Now)
	if next.IsZero() {
		return maxSleep
	}
	return min(max(next.Sub(v.Now), minIdle), maxSleep)
}
