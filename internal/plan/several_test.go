package plan

import (
	"slices"
	"testing"
	"time"

	"github.com/soloist-go/soloist/store"
)

// An order to cancel a claim of several ticks is read by replicas only once the claim has ended, however that was. It cancels
// what later claims repeat of it, and nothing else.
func TestCancelOfSeveralReachesAllItsTicks(t *testing.T) {
	at := func(seconds int) time.Time { return midnight.Add(time.Duration(seconds) * time.Second) }
	p := Policy{Ticks: every("10s"), Spec: "s", Interrupted: Rerun}
	fill := store.Backfill{Seq: 9, Spans: []store.Span{{From: at(5), To: at(90)}}, Parallel: 3}
	end := func(r *store.Record, status store.Status, reason string, ticks ...time.Time) (all []Ended) {
		for _, o := range UnderWay(r) {
			if len(ticks) == 0 || slices.Contains(ticks, o.Tick) {
				all = append(all, Ended{Tick: o.Tick, Status: status, Reason: reason, End: at(300)})
			}
		}
		return all
	}
	for name, tt := range map[string]struct {
		ends      func(before, r *store.Record) store.Record // how the claim ends
		cancelled int64
	}{
		"its runner dies": {func(_, r *store.Record) store.Record { return *r }, 3},
		"its runner dies after the first": {func(_, r *store.Record) store.Record {
			p.End(r, end(r, store.Succeeded, "", at(10))...)
			return *r
		}, 2},
		"its runner stops after the first": {func(_, r *store.Record) store.Record {
			p.End(r, end(r, store.Succeeded, "", at(10))...)
			return p.FinishSeveral(r, end(r, store.Abandoned, Stopped), at(300))
		}, 2},
		"it is given up": {func(before, r *store.Record) store.Record { return p.TakeBack(before, r) }, 3},
	} {
		t.Run(name, func(t *testing.T) {
			r := store.Record{Token: 7, Watermark: at(200), Definition: store.Definition{Spec: "s"}}
			claim := func(c store.JobControl) bool {
				c.Backfill = fill
				next, todo := p.Claim(View{Record: &r, State: store.Expired, Now: at(201), Since: midnight, Control: c})
				next.Record.Run.Claimed = at(201)
				if todo {
					r = next.Record
				}
				return todo && next.Run
			}
			before := r
			if !claim(store.JobControl{}) {
				t.Fatal("nothing is claimed")
			}
			order := store.End{Seq: 10, Token: r.Token, About: AboutLast(&r), Cancel: true, By: "ann"}
			r = tt.ends(&before, &r)
			claim(store.JobControl{}) // before the order arrives
			for ok := true; ok; ok = claim(store.JobControl{End: order}) {
				status := store.Succeeded
				if (&store.JobControl{End: order}).EndOf(r.Token, AboutLast(&r)).Cancel {
					status = store.Cancelled
				}
				r = p.FinishSeveral(&r, end(&r, status, ""), at(300))
			}
			if n := r.Backfill.Counts; n[store.Cancelled] != tt.cancelled || n[store.Succeeded] != 9-tt.cancelled {
				t.Errorf("got %v, want %d cancelled of 9", n, tt.cancelled)
			}
		})
	}
}
