package plan

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist/store"
)

// A manual call runs what was ordered before its turn, or what will have been ordered meanwhile. When its turn comes it is not run
// again, also where history has forgotten it; a claim that was given up is claimed again.
func TestOrderServedBeforeItsTurn(t *testing.T) {
	now := clockTime("01:00:00")
	var orders store.JobControl
	for i, name := range []string{"a", "b", "c", "d"} {
		orders.Requests = append(orders.Requests, store.Request{Seq: int64(i + 1), Name: name, At: now, Until: now.Add(time.Hour)})
	}
	p := Policy{Ticks: every("24h"), Spec: "s", Lease: 15 * time.Second}
	for name, tt := range map[string]struct {
		calls []string // empty: a replica that runs what is next; upper case: a call that knows no orders yet
		back  int      // which claim is given up
		want  []string
	}{
		"all in turn":              {[]string{"", "", "", "", ""}, -1, []string{"a", "b", "c", "d", ""}},
		"one before":               {[]string{"c", "", "", "", ""}, -1, []string{"c", "a", "b", "d", ""}},
		"some before":              {[]string{"d", "b", "", "", ""}, -1, []string{"d", "b", "a", "c", ""}},
		"the next one":             {[]string{"a", "b", "", "", ""}, -1, []string{"a", "b", "c", "d", ""}},
		"ordered meanwhile":        {[]string{"D", "", "", "", ""}, -1, []string{"d", "a", "b", "c", ""}},
		"given up":                 {[]string{"c", "", "", "", ""}, 0, []string{"c", "a", "b", "c", "d"}},
		"given up beside an early": {[]string{"c", "", "", "", ""}, 1, []string{"c", "a", "a", "b", "d"}},
		"given up after an early":  {[]string{"b", "", "", "", ""}, 2, []string{"b", "a", "c", "c", "d"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := store.Record{Watermark: now, Definition: store.Definition{Spec: "s"}}
			var got []string
			for i, call := range tt.calls {
				v := View{Record: &r, Now: now, Request: strings.ToLower(call), Control: orders}
				if call != v.Request {
					v.Control = store.JobControl{}
				}
				if i > 0 && call != "" && Served(v) {
					t.Errorf("%s is refused", call)
				}
				next, _ := p.Claim(v)
				if !next.Run {
					got, r.Orders = append(got, ""), next.Record.Orders // as the next write of the job has them
					continue
				}
				run, known := next.Record.Run, v.Control.Requests != nil
				got = append(got, run.Request)
				if known && (run.Order != int64(run.Request[0]-'a'+1) || !next.Record.Orders.IsServed(run.Order)) {
					t.Errorf("%s is the order %d, and %+v", run.Request, run.Order, next.Record.Orders)
				}
				if i == tt.back {
					r = p.TakeBack(&r, &next.Record)
				} else {
					r = p.Finish(&next.Record, store.Succeeded, "", now, now, store.JobControl{})
				}
				r.History = nil
			}
			if !slices.Equal(got, tt.want) || len(r.Orders.Early) > 0 || r.Orders.Served != 4 {
				t.Errorf("ran %q, want %q; noted: %+v", got, tt.want, r.Orders)
			}
		})
	}
}
