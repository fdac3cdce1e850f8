package web

import (
	"context"
	"errors"
	"reflect"
	"time"

	"github.com/soloist-go/soloist/host/internal/presence"
	"github.com/soloist-go/soloist/host/internal/view"
)

// fleetFor is for how long the replicas are not read again: they write every few minutes.
const fleetFor = 5 * time.Second

// A fleet is one reading of the replicas.
type fleet struct {
	presence.Reading
	read  time.Time // by this machine's clock
	wrong error     // why the document is not one of replicas
}

// readFleet reads the replicas, unless the last reading is new. In an outage that one stays.
func readFleet(ctx context.Context, from *presence.Reader, last fleet) fleet {
	if from == nil || !last.read.IsZero() && time.Since(last.read) < fleetFor {
		return last
	}
	now := time.Now()
	r, err := from.Read(ctx)
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
	return f.Doc == other.Doc && (f.wrong == nil) == (other.wrong == nil) && reflect.DeepEqual(brief(view.Replicas(f.Reading, nil)), brief(view.Replicas(other.Reading, nil)))
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
