package view

import (
	"fmt"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host/internal/app"
	"github.com/soloist-go/soloist/host/internal/format"
	"github.com/soloist-go/soloist/store"
)

// pausedNow reports whether ticks of a job are skipped as paused. A replica
// that serves knows it from its own settings. A command runs in an environment
// of its own, so it asks the record what the replicas did with the last tick.
func pausedNow(a *app.App, st soloist.JobStatus) bool {
	if a.Serves {
		return a.Paused(st.Name)
	}
	return recordPaused(&st.Record)
}

// recordPaused reports whether the newest tick was skipped because of a pause.
func recordPaused(r *store.Record) bool {
	for _, f := range r.History {
		if f.Request == "" {
			return f.Status == store.Skipped && f.Reason == "paused" && f.Token == 0 // else its run said so
		}
	}
	return false
}

const (
	skippedElsewhere = "this environment does not pause it, but by the record its last tick was skipped as paused"
	pausedHere       = "this environment pauses it, but by the record its last tick was not skipped as paused"
)

// differsOf says where the settings of this program are not those that the record
// shows in force.
func differsOf(a *app.App, st soloist.JobStatus) (notes []string) {
	if st.Foreign {
		notes = append(notes, foreignWords(st))
	}
	if a.Serves {
		return notes // its own pause is in force, at least here
	}
	switch here, there := a.Paused(st.Name), recordPaused(&st.Record); {
	case here && !there:
		notes = append(notes, pausedHere)
	case there && !here:
		notes = append(notes, skippedElsewhere)
	}
	return notes
}

// foreignWords say which schedule is in force, as far as the record shows: it
// has a hash of the schedule, not its text.
func foreignWords(st soloist.JobStatus) string {
	text := "this environment's schedule is not the one in force"
	if st.Shards > 0 {
		text = fmt.Sprintf("this environment's schedule or number of shards (%d) is not the one in force", st.Shards)
	} else if st.Schedule != "" {
		text = "this environment's schedule (" + st.Schedule + ") is not the one in force"
	}
	if st.Next.IsZero() {
		return text + ", whose next tick is not known"
	}
	return text + ", whose next tick is " + format.Stamp(st.Next)
}
