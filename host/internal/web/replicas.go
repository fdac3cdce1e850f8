package web

import (
	"net/http"

	"github.com/soloist-go/soloist/host/internal/view"
)

// fleetMost is how many replicas are in an answer about jobs.
const fleetMost = 20

// fleetOf returns the replicas that an answer shows.
func (p *pages) fleetOf(n news) *view.Fleet {
	if n.made == nil {
		return &view.Fleet{}
	}
	n.make(p.app)
	return n.made.fleet
}

// tellFleet adds the replicas to an answer about jobs.
func (p *pages) tellFleet(n news, out *appInfo) {
	f := p.fleetOf(n)
	shown := min(len(f.Replicas), fleetMost)
	out.Replicas, out.MoreReplicas = brief(append([]view.Replica{}, f.Replicas[:shown]...)), len(f.Replicas)-shown
	out.Differs = f.Differs
	if n.fleet.wrong != nil {
		out.Differs = view.UnreadFleet(p.app, n.fleet.wrong).Differs
	}
}

// A replicasAnswer is all replicas.
type replicasAnswer struct {
	App      appInfo        `json:"app"`
	Replicas []view.Replica `json:"replicas"` // those that are up first
}

// replicas answers with the replicas.
func (p *pages) replicas(w http.ResponseWriter, r *http.Request) {
	n := p.cache.look(r.Context())
	all := p.fleetOf(n).Replicas
	if all == nil {
		all = []view.Replica{}
	}
	Reply(w, http.StatusOK, replicasAnswer{App: p.infoFor(r, n), Replicas: all})
}
