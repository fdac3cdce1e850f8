package event_test

import (
	"testing"
	"time"

	"github.com/soloist-go/soloist/event"
)

func TestLate(t *testing.T) {
	tick := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		kind event.Kind
		run  event.Run
		at   time.Duration
		want time.Duration
	}{
		"claimed":       {event.Claimed, event.Run{Tick: tick}, time.Second, time.Second},
		"started":       {event.Started, event.Run{Tick: tick, Try: 2}, time.Minute, time.Minute},
		"early":         {event.Started, event.Run{Tick: tick}, -time.Second, 0},
		"by hand":       {event.Started, event.Run{Tick: tick, Request: "once"}, time.Second, 0},
		"singleton":     {event.Started, event.Run{Token: 7}, time.Second, 0},
		"of no start":   {event.Ended, event.Run{Tick: tick}, time.Second, 0},
		"about no runs": {event.StoreBack, event.Run{}, time.Second, 0},
	} {
		if got := (event.Event{Kind: c.kind, Run: c.run, Time: tick.Add(c.at)}).Late(); got != c.want {
			t.Errorf("%s: late by %s, want %s", name, got, c.want)
		}
	}
}
