package web

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/host/internal/past"
	"github.com/soloist-go/soloist/host/internal/view"
	"github.com/soloist-go/soloist/internal/desk"
	"github.com/soloist-go/soloist/internal/record"
)

// The run under way is the last cell of a lane, unless it has one already, or settles no tick. A tick that is claimed though it
// has succeeded has run twice.
func TestRunUnderWayIsACell(t *testing.T) {
	now := time.Date(2026, 3, 28, 12, 0, 0, 0, time.UTC)
	tick := now.Add(-time.Second)
	succeeded := []past.Cell{{At: tick.Unix(), Status: event.Succeeded, Replica: "a"}}
	for name, c := range map[string]struct {
		run   record.Run
		err   error
		cells []past.Cell
		on    string // the replica that the list names
		want  event.Status
		again int
	}{
		"a run":                   {run: record.Run{Tick: tick}, on: "b", want: event.Running},
		"a singleton":             {run: record.Run{Claimed: tick}, on: "b", want: event.Running},
		"its replica may be gone": {run: record.Run{Tick: tick}, want: interrupted},
		"claimed after a success": {run: record.Run{Tick: tick}, on: "b", cells: succeeded, want: event.Running, again: 1},
		"a singleton once more":   {run: record.Run{Claimed: tick}, on: "b", cells: succeeded, want: event.Running},
		"the next tick":           {run: record.Run{Tick: now}, on: "b", cells: succeeded, want: event.Running},
		"claimed before its tick": {run: record.Run{Tick: now.Add(time.Second)}, on: "b"},
		"a run by hand":           {run: record.Run{Tick: tick, Request: "once"}, on: "b"},
		"a stalled one":           {run: record.Run{Tick: tick, Status: event.Stalled}, on: "b"},
		"no run":                  {run: record.Run{Tick: tick, Status: event.Succeeded}},
		"a broken record":         {run: record.Run{Tick: tick}, err: errors.New("no record")},
	} {
		if c.run.Replica = "b"; c.run.Status == "" {
			c.run.Status = event.Running
		}
		st := &desk.Status{Record: record.Record{Run: c.run}, Err: c.err}
		cells, again := withRun(c.cells, st, &view.Job{Replica: c.on}, now)
		got := event.Status("")
		if len(cells) > len(c.cells) {
			got = cells[len(cells)-1].Status
		}
		if got != c.want || again != c.again || !slices.Equal(cells[:len(c.cells)], c.cells) {
			t.Errorf("%s: got %+v, %d again, want %q, %d", name, cells, again, c.want, c.again)
		}
	}
}

// Each outcome has a letter of its own, and a place among those of a cell of several ticks.
func TestOutcomesHaveLetters(t *testing.T) {
	seen := map[string]bool{}
	for status, letter := range letters {
		if len(letter) != 1 || seen[letter] || !slices.Contains(grave, status) {
			t.Errorf("%s: got the letter %q", status, letter)
		}
		seen[letter] = true
	}
	cells := slots([]past.Cell{
		{At: 900, Status: event.Skipped, Count: 2}, {At: 1000, Status: event.Succeeded, Replica: "a", Count: 1},
		{At: 1700, Status: event.Missed, Count: 3}, {At: 1800, Status: event.Skipped, Count: 1},
	}, 0, 86_400)
	want := []past.Cell{{At: 1700, Status: event.Missed, Replica: "a", Count: 6}, {At: 1800, Status: event.Skipped, Count: 1}}
	if !slices.Equal(cells, want) {
		t.Errorf("got %+v, want %+v", cells, want)
	}
}
