package web

import (
	"net/http"
	"time"

	"github.com/soloist-go/soloist/host/internal/app"
	"github.com/soloist-go/soloist/host/internal/format"
	"github.com/soloist-go/soloist/host/internal/view"
	"github.com/soloist-go/soloist/store"
)

// An appInfo is what each answer says about the program and the replica that answers.
type appInfo struct {
	Name     string    `json:"name"`
	Replica  string    `json:"replica"`
	Store    string    `json:"store"`
	Version  string    `json:"version,omitempty"`  // of the program
	Revision string    `json:"revision,omitempty"` // of the deployment, as the platform names it
	Time     time.Time `json:"time"`               // now
	ReadAt   time.Time `json:"readAt,omitzero"`    // when the records were read; zero: not yet

	Jobs    int `json:"jobs"`    // how many jobs and singletons there are, each shard counted
	Trouble int `json:"trouble"` // how many of them an operator should look at

	Note      string            `json:"note,omitempty"`      // how old the answer is, if that is worth a word
	Storage   string            `json:"storage,omitempty"`   // why the store is out of reach
	Orders    string            `json:"orders,omitempty"`    // why the orders of operators cannot be read
	Log       string            `json:"log,omitempty"`       // why lines of the log wait
	Skew      float64           `json:"skew"`                // seconds that this machine's clock is ahead of the store's, as far as that is proved
	Clock     string            `json:"clock,omitempty"`     // the skew in words, if it is worth a word
	Stuck     []string          `json:"stuck,omitempty"`     // what only a restart of the replica helps
	Overrun   map[string]string `json:"overrun,omitempty"`   // runs that go on though their context has ended, and why it did
	Functions []string          `json:"functions,omitempty"` // in Functions: what is deployed and is not what the jobs need

	Replicas     []view.Replica `json:"replicas"`               // the first ones; of those that are up, it is left out when they wrote that
	MoreReplicas int            `json:"moreReplicas,omitempty"` // how many are left out
	Differs      []string       `json:"differs,omitempty"`      // what is not the same on all replicas, besides the settings of jobs

	Changes  access `json:"changes"`            // whether this caller may change something
	SignedIn bool   `json:"signedIn,omitempty"` // the caller is a browser that has signed in
}

// A jobsAnswer is one page of the list of jobs.
type jobsAnswer struct {
	App     appInfo    `json:"app"`
	Matched int        `json:"matched"` // how many jobs match the query
	Offset  int        `json:"offset"`  // how many of them come before these
	Jobs    []view.Row `json:"jobs"`
}

// A jobAnswer is one job.
type jobAnswer struct {
	App appInfo     `json:"app"`
	Job view.Detail `json:"job"`
	Log bool        `json:"log,omitempty"` // the history reaches back further than the record
}

// An ordersAnswer is what operators have ordered last.
type ordersAnswer struct {
	App    appInfo       `json:"app"`
	Orders []store.Order `json:"orders"` // newest first
}

// infoFor is what an answer to this request says about the program.
func (p *pages) infoFor(r *http.Request, n news) appInfo {
	h := p.app.Scheduler.Health()
	out := appInfo{Name: p.app.Settings.App, Replica: p.app.Scheduler.Replica, Store: p.app.Place, Version: app.Version(), Revision: app.RevisionName(),
		Time: format.UTC(p.app.Now()), Jobs: len(p.app.Names()),
		Note: n.old(), Skew: format.SkewSeconds(h.Skew), Clock: format.SkewNote(h.Skew),
		Stuck: h.Stuck, Overrun: each(h.Overrun, text), Functions: p.functions, Changes: p.guard.changes(r), SignedIn: p.guard.signedIn(r)}
	if !n.at.IsZero() { // by the clock of Time, whose steps do not touch the age
		out.ReadAt = format.UTC(p.app.Now().Add(-time.Since(n.at)))
	}
	p.tellFleet(n, &out)
	for _, row := range n.rows(p.app) {
		if row.Trouble {
			out.Trouble++
		}
	}
	if n.deaf != nil {
		out.Orders = text(n.deaf)
	}
	if h.Storage != nil {
		out.Storage = text(h.Storage)
	}
	if err := p.app.LogBlocked(h); err != nil {
		out.Log = text(err)
	}
	return out
}
