package view

import (
	"time"

	"github.com/soloist-go/soloist/host/internal/app"
	"github.com/soloist-go/soloist/host/internal/format"
	"github.com/soloist-go/soloist/host/internal/locks"
)

// An Answer is the JSON output of a command: J is its part about one job.
type Answer[J any] struct {
	App   string    `json:"app,omitempty"`   // of next --schedule: there is none
	Store string    `json:"store,omitempty"` // of next: it asks none
	Time  time.Time `json:"time"`
	Jobs  []J       `json:"jobs"`
	Next  time.Time `json:"next,omitzero"` // of tick: when the next one of any job is due

	// Of status and next: which data of time zones are in use, and how old they are; empty: all is in UTC.
	Zones string `json:"zones,omitempty"`

	// Of status: seconds that this machine's clock is ahead of the store's, as
	// far as that is proved.
	Skew float64 `json:"skew,omitzero"`

	// Of status, in Functions: what is deployed and is not what the jobs need.
	Functions []string `json:"functions,omitempty"`

	// Of status: the replicas by what each has written last, and where they and this program
	// differ.
	Replicas []Replica `json:"replicas,omitempty"`
	Differs  []string  `json:"differs,omitempty"`

	// Of status: the locks, and what is done once. Nil: of another command.
	*locks.Shown

	// Of status and history: why there is nothing to show.
	Error string `json:"error,omitempty"`
}

// New is an answer about these jobs.
func New[J any](a *app.App, jobs []J) Answer[J] {
	if jobs == nil {
		jobs = []J{} // readers want a list
	}
	return Answer[J]{App: a.Settings.App, Store: a.Place, Time: format.UTC(a.Now()), Jobs: jobs}
}

// Status is the answer of status --json: functions is what is
// deployed in Functions and is not what the jobs need.
func Status(a *app.App, views []Job, functions []string, fleet *Fleet) Answer[Job] {
	body := New(a, views)
	if fleet != nil {
		body.Replicas, body.Differs = fleet.Replicas, fleet.Differs
	}
	body.Skew, body.Functions, body.Zones = format.SkewSeconds(a.Skew()), functions, a.ZoneWords()
	return body
}
