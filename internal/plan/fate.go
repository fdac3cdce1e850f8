package plan

import (
	"time"

	"github.com/soloist-go/soloist/internal/instant"
	"github.com/soloist-go/soloist/store"
)

// A fate is what the outcomes of the predecessors make of some ticks in a row.
type fate struct {
	from, to time.Time    // the ticks after one instant and up to the other
	status   store.Status // of ticks that are not to be run; empty: they may be
	reason   string
	since    time.Time  // they may be run from then on
	waited   store.Span // of ticks that are left: those that waited for a slot of their group
}

// fates returns what is decided of the ticks after an instant, in their order.
func (p *Policy) fates(v View, after time.Time) (all []fate) {
	by := instant.Earlier(v.Now, DecidedBy(v.Before))
	for tick := p.Ticks.Next(after); !tick.IsZero() && !tick.After(by); tick = p.Ticks.Next(after) {
		f := p.fateOf(v.Before, tick)
		f.from, f.to = after, p.Ticks.Last(instant.Earlier(f.to, by))
		all, after = append(all, f), f.to
	}
	return all
}

// fateOf returns what is decided of a tick, and in to until when it is the same. If several
// predecessors keep the tick from being run, the first of them is the reason.
func (p *Policy) fateOf(before []Predecessor, tick time.Time) (f fate) {
	f.to = before[0].Watermark
	for _, b := range before {
		f.to = instant.Earlier(f.to, b.Watermark)
		o, until := b.outcome(tick)
		f.to = instant.Earlier(f.to, until)
		switch {
		case f.status != "":
		case o == nil:
			f.status, f.reason = store.Missed, "the outcome of "+b.Job+" is not known"
		case o.Status != store.Succeeded && !p.AfterAny:
			f.status, f.reason = store.Skipped, b.Job+" "+string(o.Status)
		case o.End.IsZero():
			at, through := b.seen(tick)
			f.since, f.to = instant.Later(f.since, at), instant.Earlier(f.to, through)
		default:
			f.since = instant.Later(f.since, o.End)
		}
	}
	return f
}

// lateStart reports whether it is too late for a further attempt of the last run. For a follower
// the deadline counts from what its tick waited for; if that is not known, from the last claim.
func (p *Policy) lateStart(v View) bool {
	from := v.Record.Run.Tick
	if p.Follows() {
		from = v.Record.Run.Claimed
		if all := p.fates(v, v.Record.Run.Tick.Add(-1)); len(all) > 0 && all[0].status == "" {
			from = all[0].since
		}
	}
	return p.StartingDeadline > 0 && v.Now.Sub(from) > p.StartingDeadline
}
