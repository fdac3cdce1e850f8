package web

import (
	"context"
	"errors"
	"net/http"
	"reflect"
	"time"

	"github.com/soloist-go/soloist/host/internal/format"
	"github.com/soloist-go/soloist/host/internal/presence"
	"github.com/soloist-go/soloist/host/internal/view"
)

const (
	fleetFor  = 5 * time.Second // so long the replicas are not read again: they write every few minutes
	fleetMost = 20              // replicas in an answer about jobs
)

// A fleet is one reading of the replicas.
type fleet struct {
	presence.Reading
	read  time.Time // by this machine's clock
	wrong error     // why the document is not one of replicas
}

// readFleet reads the replicas, unless the last reading is new. In an outage that one stays.
func (c *Cache) readFleet(ctx context.Context, last fleet) fleet {
	if c.beacon == nil || !last.read.IsZero() && time.Since(last.read) < fleetFor {
		return last
	}
	now := time.Now()
	r, err := c.beacon.Read(ctx)
	switch {
	case err == nil:
		return fleet{Reading: r, read: now}
	case errors.Is(err, presence.ErrForeign):
		return fleet{read: now, wrong: err}
	}
	return last
}

// looks reports whether two readings look the same in a list.
func (f fleet) looks(other fleet) bool {
	return f.Doc == other.Doc && (f.wrong == nil) == (other.wrong == nil) && reflect.DeepEqual(brief(view.Replicas(f.Reading)), brief(view.Replicas(other.Reading)))
}

// brief leaves out when a replica that is up has written: an answer about jobs would be news
// all the time.
func brief(all []view.Replica) []view.Replica {
	for i := range all {
		if all[i].State == presence.Up {
			all[i].Seen = time.Time{}
		}
	}
	return all
}

// fleetOf returns the replicas that an answer shows.
func (p *pages) fleetOf(n news) *view.Fleet {
	if n.made == nil {
		return &view.Fleet{}
	}
	n.make(p.app)
	return n.made.fleet
}

// tellFleet is what an answer about jobs tells of the replicas.
func (p *pages) tellFleet(n news, out *appInfo) {
	f := p.fleetOf(n)
	shown := min(len(f.Replicas), fleetMost)
	out.Replicas, out.MoreReplicas = brief(append([]view.Replica{}, f.Replicas[:shown]...)), len(f.Replicas)-shown
	out.Differs = f.Differs
	if n.fleet.wrong != nil {
		out.Differs = []string{"the replicas cannot be shown: " + format.Line(n.fleet.wrong.Error())}
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
