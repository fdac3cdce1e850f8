package plan

import (
	"time"

	"github.com/soloist-go/soloist/store"
)

// WakeSpan is how far from the store's time the tick of a wake-up may be.
const WakeSpan = time.Minute

// FirstWatermark is that of a new job, which was made at date: it owes nothing but
// the tick of the wake-up that it is made in.
func (p *Policy) FirstWatermark(date, wake time.Time) time.Time {
	if d := date.Sub(wake); d < 0 || d > WakeSpan || !p.Ticks.Last(wake).Equal(wake) {
		return date
	}
	return wake.Add(-time.Nanosecond).UTC()
}

// Early is how long it takes until the tick of a wake-up is due, zero if it is, or
// is over, or runs. State is empty where the lease is not known.
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

// moment is by how much the timer of a tick may be early to count as being on time.
const moment = 5 * time.Second

// AlmostDue is how long it takes until a wake-up is on time that comes a moment early
// for a tick, else zero. An older tick that is due waits for that one too: it would be
// under way when that one comes due, which would then be skipped.
func (p *Policy) AlmostDue(v View, wake time.Time) time.Duration {
	if early := wake.Sub(v.Now); early > 0 && early <= moment && p.Ticks.Last(wake).After(v.Now) {
		return early
	}
	return 0
}

// New returns the record of a new job, which owes nothing. Its token is the
// service's time, which the first claim replaces by a later one.
func (p *Policy) New(app, job string, date, since, wake time.Time) store.Record {
	r := store.Record{App: app, Job: job, Created: date, Watermark: p.FirstWatermark(date, wake), Token: date.UnixMicro(),
		Spec: p.Spec, Since: since, Status: store.Idle, Lease: store.Seconds(p.Lease)}
	r.Due = p.due(&r)
	return r
}
