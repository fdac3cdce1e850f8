package plan

import (
	"slices"
	"time"

	"github.com/soloist-go/soloist/internal/instant"
	"github.com/soloist-go/soloist/store"
)

// isBackfill reports whether the last run is one of a backfill.
func isBackfill(r *store.Record) bool { return store.BackfillOf(r.Run.Request) != 0 }

// Several reports whether the last run is a claim of several ticks of a backfill. It may have a single tick left.
func Several(r *store.Record) bool {
	return isBackfill(r) && r.Backfill.Several && r.Backfill.Seq == r.Run.Order
}

// UnderWay returns the ticks of a claim of several that have no outcome. After the end of the claim there are none.
func UnderWay(r *store.Record) (all []store.OpenTick) {
	for _, o := range r.Backfill.Open {
		if underWay(r, &o) {
			all = append(all, o)
		}
	}
	return all
}

func underWay(r *store.Record, o *store.OpenTick) bool {
	return r.Run.Status == store.Running && Several(r) && o.Token == r.Token
}

// lastOpen returns the last tick of the last claim, if that is one of several ticks; else the tick that is given.
func lastOpen(r *store.Record, tick time.Time) time.Time {
	for _, o := range r.Backfill.Open {
		if o.Token == r.Token {
			tick = instant.Later(tick, o.Tick)
		}
	}
	return tick
}

// leftBeside reports whether the last run is a claim of several ticks one of which has stalled, and others have no outcome. If
// their lease is over, their runner died before it could report them.
func leftBeside(r *store.Record) bool {
	return r.Run.Status == store.Stalled && r.MayRun() && Several(r) &&
		slices.ContainsFunc(r.Backfill.Open, func(o store.OpenTick) bool { return o.Token == r.Token })
}

// takeBackSeveral has the ticks of a claim that was given up wait again. They keep its token, by which they can be
// cancelled.
func takeBackSeveral(r *store.Record, claim *store.Run) {
	r.Orders.Returned = store.Returned{Tick: claim.Tick, Order: claim.Order}
	r.Backfill.Open = slices.Clone(r.Backfill.Open)
	for i := range r.Backfill.Open {
		if o := &r.Backfill.Open[i]; o.Token == r.Token {
			o.Attempt--
		}
	}
}
