package event_test

import (
	"fmt"
	"time"

	"github.com/soloist-go/soloist/event"
)

// What alerts, counts or draws takes the events that it needs by their kind.
func ExampleEvent() {
	tick := time.Date(2026, 11, 21, 2, 0, 0, 0, time.UTC)
	events := make(chan event.Event, 2) // those of a Scheduler: its Events sends them here
	run := event.Run{Tick: tick}
	outcome := event.Outcome{Tick: tick, Status: event.Failed, Reason: "no answer"}
	events <- event.Event{Kind: event.Started, Job: "report", Time: tick.Add(3 * time.Second), Run: run}
	events <- event.Event{Kind: event.Ended, Job: "report", Run: run, Outcome: outcome}
	close(events)
	for e := range events {
		switch e.Kind {
		case event.Started:
			fmt.Println(e.Job, "starts late by", e.Late())
		case event.Ended:
			fmt.Println(e.Job, e.Outcome.Status+":", e.Outcome.Reason)
		}
	}
	// Output:
	// report starts late by 3s
	// report failed: no answer
}

// Runs of a backfill can be told from others by the name of their request.
func ExampleBackfillOf() {
	for _, run := range []event.Run{{Request: "backfill/7"}, {Request: "by-ann"}, {}} {
		fmt.Println(event.BackfillOf(run.Request))
	}
	// Output:
	// 7
	// 0
	// 0
}
