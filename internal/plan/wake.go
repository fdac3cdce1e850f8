package plan

import (
	"time"

	"github.com/soloist-go/soloist/internal/instant"
	"github.com/soloist-go/soloist/store"
)

// WakeSpan is how far the tick that a wake-up names may be from the store's time. A timer that
// names a tick in the far future is not believed.
const WakeSpan = time.Minute

// FirstWatermark returns the watermark of a new job, which is created now. The job has no
// older tick due, except the tick of the wake-up in which it is created: the platform has started
// the program for that one.
func (p *Policy) FirstWatermark(v View, wake time.Time) time.Time {
	from := v.Now.Add(p.claimedAhead())
	if v.Now.Sub(wake).Abs() <= WakeSpan && p.Ticks.Last(wake).Equal(wake) {
		from = instant.Earlier(from, wake.Add(-time.Nanosecond).UTC())
	}
	return notBefore(from, v.Before)
}

// claimedAhead returns for how long after the creation of an entry a tick may have been
// claimed ahead in an entry of that name which was deleted: its holder may run it. A date of the
// service may leave out up to a second.
func (p *Policy) claimedAhead() time.Duration {
	if !p.ClaimAhead || p.Ticks == nil {
		return 0
	}
	return p.Lead() + time.Second
}

// Early returns how long it takes until the tick of a wake-up is due. It returns zero, or less,
// if that tick or an older one is due, is over, or is running. v.State is empty if the lease is
// not known.
func (p *Policy) Early(v View, wake time.Time) time.Duration {
	if v.Record.MayRun() && (v.State == "" || v.State.Live()) {
		return 0
	}
	next := p.NextTick(v.Record)
	if next.IsZero() || next.After(wake) || wake.Sub(v.Now) > WakeSpan {
		return 0
	}
	return next.Sub(v.Now)
}

// moment is by how much the timer of a tick may be early and still count as on time.
const moment = 5 * time.Second

// AlmostDue returns how long a wake-up that came a moment early for its tick has to wait, else
// zero. If an older tick is due as well, it waits too: its run would still be under way when the
// tick of the wake-up comes due, which would then be skipped.
func (p *Policy) AlmostDue(v View, wake time.Time) time.Duration {
	if early := wake.Sub(v.Now); early > 0 && early <= moment && p.Ticks.Last(wake).After(v.Now) {
		return early
	}
	return 0
}

// New returns the record of a new job, which has nothing due. Its token is the service's time, so
// that it is larger than the tokens of an entry of that name which was deleted before. Runs by
// hand that were ordered before count as served, as that entry may have had them.
func (p *Policy) New(app, job string, v View, wake time.Time) store.Record {
	r := store.Record{App: app, Job: job, Created: v.Now, Watermark: p.FirstWatermark(v, wake),
		Token: v.Now.UnixMicro(), Orders: store.Orders{Served: v.Now.UnixMicro()},
		Definition: store.Definition{Spec: p.Spec, Since: v.Since}, Run: store.Run{Status: store.Idle, Lease: store.Seconds(p.Lease)}}
	r.Due = p.due(&r)
	return r
}
