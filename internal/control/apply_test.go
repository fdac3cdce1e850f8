package control

import (
	"testing"
	"time"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/internal/record"
)

// An order to end a run that was confirmed is in force until there is nothing left to end, whatever is ordered after it.
func TestEndIsKept(t *testing.T) {
	const fill = 9
	at := func(hour int) time.Time { return time.Date(2026, 11, 21, hour, 0, 0, 0, time.UTC) }
	tick := record.About{Tick: at(1), Attempt: 1}
	again := record.About{Tick: at(1), Attempt: 2}
	manual := record.About{}
	asked := record.About{Order: 7, Attempt: 1}
	filled := record.About{Tick: at(1), Order: fill, Attempt: 1}
	cancel, handOver := record.OrderCancel, record.OrderStepDown
	type order struct {
		kind  record.OrderKind
		token int64
		about record.About
	}
	settled := record.Record{Watermark: at(1), Orders: record.Orders{Served: 7}}
	past := func(seq int64, through int, open ...record.OpenTick) record.Record {
		return record.Record{Backfill: record.Backfilled{Seq: seq, Through: at(through), Open: open}}
	}
	running := record.Record{Orders: record.Orders{Served: 7}, Run: record.Run{Order: 7}}
	for name, tt := range map[string]struct {
		first, second order
		record        record.Record // that the second is based on
		token         int64         // of the claim that is looked at
		about         record.About
		want          int64 // the order that ends it; zero: none
		earlier       int   // how many orders are kept
	}{
		"a manual run is cancelled after a tick": {order{cancel, 1, tick}, order{cancel, 2, manual}, record.Record{}, 3, tick, 11, 1},
		"and is ended too":                       {order{cancel, 1, tick}, order{cancel, 2, manual}, record.Record{}, 2, manual, 12, 1},
		"the tick has its outcome":               {order{cancel, 1, tick}, order{cancel, 2, manual}, settled, 3, tick, 0, 0},
		"a tick is handed over after a request":  {order{cancel, 1, asked}, order{handOver, 2, tick}, record.Record{}, 3, asked, 11, 1},
		"the request has its outcome":            {order{cancel, 1, asked}, order{cancel, 2, tick}, settled, 3, asked, 0, 0},
		"the request has none":                   {order{cancel, 1, asked}, order{cancel, 2, tick}, running, 3, asked, 11, 1},
		"a tick is cancelled in a backfill":      {order{cancel, 1, filled}, order{cancel, 2, tick}, settled, 3, filled, 11, 1},
		"the backfill is past the tick":          {order{cancel, 1, filled}, order{cancel, 2, tick}, past(fill, 2), 3, filled, 0, 0},
		"the backfill is at the tick":            {order{cancel, 1, filled}, order{cancel, 2, tick}, past(fill, 1), 3, filled, 11, 1},
		"an older tick of it is open":            {order{cancel, 1, filled}, order{cancel, 2, tick}, past(fill, 2, record.OpenTick{Tick: at(0)}), 3, filled, 11, 1},
		"a later tick of it is open":             {order{cancel, 1, filled}, order{cancel, 2, tick}, past(fill, 2, record.OpenTick{Tick: at(2)}), 3, filled, 0, 0},
		"the record is of an older backfill":     {order{cancel, 1, filled}, order{cancel, 2, tick}, past(fill-1, 2), 3, filled, 11, 1},
		"the next attempt is cancelled":          {order{cancel, 1, tick}, order{cancel, 2, again}, record.Record{}, 2, again, 11, 0},
		"what is handed over is cancelled":       {order{handOver, 1, tick}, order{cancel, 1, tick}, record.Record{}, 1, tick, 12, 0},
		"the second sees an older run":           {order{handOver, 2, manual}, order{cancel, 1, tick}, record.Record{}, 2, manual, 11, 1},
		"an older claim is handed over":          {order{cancel, 2, tick}, order{handOver, 1, tick}, record.Record{}, 3, tick, 11, 1},
		"an older attempt is cancelled":          {order{handOver, 2, again}, order{cancel, 1, tick}, record.Record{}, 2, again, 12, 1},
	} {
		t.Run(name, func(t *testing.T) {
			c := record.Control{Seq: 10, Jobs: map[string]record.JobControl{"job": {Backfill: record.Backfill{Seq: fill}}}}
			for _, o := range []order{tt.first, tt.second} {
				tt.record.Token = o.token
				if err := Apply(&c, &record.Order{Kind: o.kind, Job: "job", Token: o.token, About: o.about}, &tt.record); err != nil {
					t.Fatal(err)
				}
			}
			j := c.Jobs["job"]
			if e := j.EndOf(tt.token, tt.about); e.Seq != tt.want || len(j.Earlier) != tt.earlier {
				t.Errorf("the run is ended by %+v, want the order %d; kept: %+v", e, tt.want, j.Earlier)
			}
		})
	}
}

// Orders that may have to be obeyed fill a document no more than a replica can be behind: the next one is refused.
func TestEndsAreBounded(t *testing.T) {
	c, r := record.Control{Seq: 10}, record.Record{}
	for n := int64(1); n <= maxEnds+2; n++ {
		r.Token = n
		about := record.About{Tick: time.Date(2026, 11, 21, int(n), 0, 0, 0, time.UTC), Attempt: 1}
		err := Apply(&c, &record.Order{Kind: record.OrderCancel, Job: "job", Token: n, About: about}, &r)
		if j := c.Jobs["job"]; (err != nil) != (n > maxEnds+1) || len(j.Earlier) != int(min(n-1, maxEnds)) {
			t.Errorf("order %d: %v, and %d are kept", n, err, len(j.Earlier))
		}
	}
}

// A run that is cancelled is not handed over, nor is a later attempt of the same.
func TestCancelledRunIsNotHandedOver(t *testing.T) {
	c, about := record.Control{Seq: 10}, record.About{Tick: time.Date(2026, 11, 21, 1, 0, 0, 0, time.UTC), Attempt: 1}
	give := func(kind record.OrderKind, token int64) error {
		return Apply(&c, &record.Order{Kind: kind, Job: "job", Token: token, About: about}, &record.Record{Token: token})
	}
	if err := give(record.OrderCancel, 1); err != nil {
		t.Fatal(err)
	}
	for token := int64(1); token <= 2; token++ {
		if err := give(record.OrderStepDown, token); err == nil {
			t.Errorf("attempt %d is handed over", token)
		}
		about.Attempt++
	}
}

// A resume that was confirmed is in force, though one that is based on an older record comes later.
func TestResumeIsKept(t *testing.T) {
	var c record.Control
	for _, token := range []int64{5, 4} {
		if err := Apply(&c, &record.Order{Kind: record.OrderResume, Job: "job", Token: token}, &record.Record{}); err != nil {
			t.Fatal(err)
		}
	}
	if got := c.Jobs["job"].Resumed.Token; got != 5 {
		t.Errorf("the runs up to %d count no more, want 5", got)
	}
}

// A pause that is over is kept until its ticks have been skipped, whatever is ordered meanwhile. It was from 1 to 3.
func TestPausesAreKept(t *testing.T) {
	at := func(hour int) time.Time { return time.Date(2026, 11, 21, hour, 0, 0, 0, time.UTC) }
	runs := record.Run{Status: event.Running, Tick: at(2)}
	for name, tt := range map[string]struct {
		now    int
		record record.Record
		kept   bool
	}{
		"its last tick waits":       {30, record.Record{Watermark: at(2), Due: at(3)}, true},
		"the next tick is after it": {4, record.Record{Watermark: at(0), Due: at(3).Add(1)}, false},
		"a tick of it is claimed":   {30, record.Record{Watermark: at(1), Due: at(4), Run: runs}, true},
		"a manual run is under way": {4, record.Record{Due: at(4), Run: record.Run{Status: event.Running, Tick: at(3), Request: "x"}}, false},
		"there is no next tick":     {20, record.Record{Watermark: at(0)}, true},
		"nor was for a day":         {28, record.Record{Watermark: at(0)}, false},
	} {
		c := record.Control{Seq: 10, Jobs: map[string]record.JobControl{"job": {Pauses: []record.Span{{From: at(1), To: at(3)}}}}}
		if err := Apply(&c, &record.Order{Kind: record.OrderPause, Job: "job", At: at(tt.now)}, &tt.record); err != nil {
			t.Fatal(err)
		}
		if n := len(c.Jobs["job"].Pauses); (n == 1) != tt.kept {
			t.Errorf("%s: %d pauses are kept", name, n)
		}
	}
}

// No order has a number that replicas refuse to read.
func TestOrdersEndAtLargestNumber(t *testing.T) {
	c := record.Control{Seq: record.MaxToken}
	if err := Apply(&c, &record.Order{Kind: record.OrderPause, Job: "job"}, &record.Record{}); err == nil {
		t.Errorf("got %+v", c)
	}
}
