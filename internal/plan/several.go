package plan

import (
	"slices"
	"strings"
	"time"

	"github.com/soloist-go/soloist/internal/instant"
	"github.com/soloist-go/soloist/store"
)

// A backfill may run several ticks at a time. Then one claim has several ticks, which its holder runs in parallel,
// under its lease and with its token. So whatever holds for the one run of a claim holds for all of
// them: the trust in the lease bounds them, and no other run of the job begins before they are over.
//
//   - The claim moves the cursor over its ticks, and the same write makes them open: Backfilled.Open has them
//     from then on. A tick leaves it with the write that counts its outcome, and in no other way but one: a tick
//     that never began is dropped with its backfill. So each has one outcome, whatever becomes of the
//     replicas, and none is left out.
//   - Each tick has its outcome when its own run returns, and not only with the last of the claim. A write that
//     is repeated finds the tick open no more, and changes nothing.
//   - An open tick is under way if it has the token of a claim that has not ended. Otherwise it waits, and
//     comes before the ticks after the cursor.
//   - A claim of ticks that have waited has no new ones, so that who cancels a claim cancels all later claims
//     of its ticks, and nothing else.
//   - When all runs have returned the claim has ended. Only then does the next claim decide: what is due, or was
//     ordered manually, comes first.
//   - A tick whose runner died is run again alone, so that one which kills its runners costs the others
//     one attempt.

// MaxParallel is how many ticks of a backfill may run at a time.
const MaxParallel = 16

// An Ended is how the attempt of one of several ticks has ended.
type Ended struct {
	Tick   time.Time
	Status store.Status // empty: it did not begin
	Reason string
	End    time.Time
}

// claimSeveral has the claim in r, of the next tick of a backfill, claim as many ticks as may run at a time.
func (p *Policy) claimSeveral(r *store.Record, fill *store.Backfill) {
	b, most := &r.Backfill, min(fill.Parallel, MaxParallel)
	if p.Group != "" { // its slot is for one run
		most = 1
	}
	open := slices.Clone(b.Open) // the record that this one was cloned from shares it
	n := 0
	for n < min(most, len(open)) && (n == 0 || open[n].Deaths == 0) {
		open[n].Attempt, open[n].Token = open[n].Attempt+1, r.Token
		if n++; open[n-1].Deaths > 0 {
			break
		}
	}
	if n > 0 { // ticks that have waited are claimed without new ones
		most = n
	}
	for ; n < most; n++ {
		tick := p.backfilledAfter(r, fill, b.Through)
		if tick.IsZero() {
			break
		}
		open, b.Through = append(open, store.OpenTick{Tick: tick, Token: r.Token, Attempt: 1}), tick
		b.Open = open
	}
	b.Several, b.Open = true, open
	r.Run.Tick, r.Run.Attempt, r.Run.Deaths = open[0].Tick, open[0].Attempt, open[0].Deaths
}

// End notes how attempts of the ticks of a claim of several have ended. An end that it has noted before stays as it is.
func (p *Policy) End(r *store.Record, all ...Ended) {
	for _, e := range all {
		open := slices.Clone(r.Backfill.Open)
		i := slices.IndexFunc(open, func(o store.OpenTick) bool { return o.Token == r.Token && o.Tick.Equal(e.Tick) })
		if i < 0 {
			continue
		}
		o := &open[i]
		early := e.Status == store.Stalled || e.Status == store.Abandoned
		if early && !strings.HasPrefix(e.Reason, Stopped) {
			o.Deaths++
		}
		switch {
		case e.Status == "":
			o.Attempt, o.Token = o.Attempt-1, -o.Token
		case early && p.Interrupted.repeats(o.Attempt, o.Deaths):
			o.Token = -o.Token
		default:
			settleBackfilled(r, OutcomeOfSeveral(r, e, o.Attempt))
			open = slices.Delete(open, i, i+1)
		}
		r.Backfill.Open = open
	}
}

// OutcomeOfSeveral returns the outcome of an attempt of one of several ticks.
func OutcomeOfSeveral(r *store.Record, e Ended, attempt int) store.Outcome {
	f := LastOutcome(r, e.Status, e.Reason)
	f.Tick, f.Attempt, f.End = e.Tick, attempt, e.End
	return f
}

// An openFate says what becomes of an open tick.
type openFate struct {
	status store.Status // of its outcome; empty: it has none
	reason string
	token  int64 // of its outcome; zero: none
	again  bool  // it waits for another attempt, or goes on waiting
}

// settleOpen settles open ticks, none of which is under way, and returns their outcomes. A tick that has neither an outcome nor
// waits is dropped.
func settleOpen(r *store.Record, fateOf func(o *store.OpenTick) openFate) (told []store.Outcome) {
	var open []store.OpenTick
	for _, o := range r.Backfill.Open {
		f := fateOf(&o)
		if f.again {
			open = append(open, o)
		}
		if f.status == "" {
			continue
		}
		out := store.Outcome{Tick: o.Tick, Request: store.BackfillRequest(r.Backfill.Seq), Status: f.status, Reason: f.reason, Attempt: max(1, o.Attempt), Token: f.token}
		if f.token == r.Token && r.Run.Order == r.Backfill.Seq && isBackfill(r) {
			out.Replica, out.Start = r.Run.Replica, begun(r)
		}
		settleBackfilled(r, out)
		told = append(told, out)
	}
	r.Backfill.Open = open
	return told
}

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

// lastOpen returns the last tick without an outcome of the last claim, if that is one of several ticks; else the tick that is
// given.
func lastOpen(r *store.Record, tick time.Time) time.Time {
	for _, o := range r.Backfill.Open {
		if o.Token == r.Token || o.Token == -r.Token {
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

// FinishSeveral is Finish for a claim of several ticks, all of whose runs have returned.
func (p *Policy) FinishSeveral(r *store.Record, all []Ended, end time.Time) store.Record {
	f := r.Clone()
	f.Run.Finished, f.Run.Stopping = end, false
	if f.Run.Status != store.Stalled {
		worst := worst(all)
		if f.Run.Status = worst.Status; HasFailed(&f) {
			f.Run.Error = worst.Reason
		}
	}
	p.End(&f, all...)
	f.Due = p.due(&f)
	return f
}

// worst returns the end that the record shows for the run: of a stall, or else of the first that has not succeeded.
func worst(all []Ended) Ended {
	last := Ended{Status: store.Succeeded}
	for _, e := range slices.Backward(all) {
		if e.Status != "" && e.Status != store.Succeeded && (last.Status != store.Stalled || e.Status == store.Stalled) {
			last = e
		}
	}
	return last
}

// StallSeveral is Stall for one of several ticks. The runs of the others go on as long as the lease is trusted.
func (p *Policy) StallSeveral(r *store.Record, e Ended) store.Record {
	f := r.Clone()
	f.Run.Status, f.Run.Error, f.Run.Stopping = store.Stalled, e.Reason, true
	p.End(&f, e)
	f.Due = p.due(&f)
	return f
}
