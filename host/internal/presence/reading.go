package presence

import (
	"context"
	"errors"
	"time"

	"github.com/soloist-go/soloist/internal/document"
	"github.com/soloist-go/soloist/store"
)

// callTime is for one call to the store.
const callTime = 3 * time.Second

// A State says whether a replica is up, as far as others know.
type State string

const (
	Up     State = "up"
	Asleep State = "asleep" // a platform wakes it up for each tick, and has not done so for a while
	Silent State = "silent" // it should have written again, and has not: it was killed, hangs, or cannot reach the store
	Lost   State = "lost"   // its lease of a run has ended without the run's outcome, and it has not written since
	Left   State = "left"   // it has stopped in an orderly way
)

// A Reading is what the store had at one time, by its clock. Zero: nothing is known.
type Reading struct {
	At  time.Time
	Doc *Document
}

// silentAt reports whether a replica should have written again by an instant.
func (r *Replica) silentAt(at time.Time) bool {
	return at.Sub(r.Seen).Abs() > 3*time.Duration(r.Every)*time.Second/2+repeatTime
}

// SilentAt reports whether a replica had not written for too long by an instant, as far as the reading shows.
func (r Replica) SilentAt(at time.Time) bool { return at.After(r.Seen) && r.silentAt(at) }

// State returns the state of a replica of the reading.
func (r Reading) State(replica Replica) State {
	switch {
	case !replica.Left.IsZero():
		return Left
	case !replica.Lost.IsZero():
		return Lost
	case !replica.silentAt(r.At):
		return Up
	case replica.Woken:
		return Asleep
	}
	return Silent
}

// Covers reports whether each replica that was up at an instant is in the reading, unless a later process has its name: one that
// has not written for an hour is dropped, and so are some if there are too many.
func (r Reading) Covers(at time.Time) bool {
	if r.Doc == nil || len(r.Doc.Replicas) == 0 || len(r.Doc.Replicas) >= most {
		return false
	}
	for _, replica := range r.Doc.Replicas {
		if replica.Seen.Sub(at)+time.Duration(replica.Every)*time.Second >= keepFor {
			return false
		}
	}
	return true
}

// Alone reports whether no replica is up but the one of this name.
func (r Reading) Alone(name string) bool {
	for other, entry := range r.Doc.Replicas {
		if other != clip(name, longName) && r.State(entry) == Up {
			return false
		}
	}
	return true
}

// A Reader reads the document of one app. It is for one goroutine at a time.
type Reader struct {
	Store store.Documenter
	App   string

	copy document.Copy
}

func (r *Reader) document() *document.Copy {
	r.copy.Document = document.Document{Store: r.Store, Name: Name(r.App), Limit: callTime}
	return &r.copy
}

// Read reads the document; a document that has not changed is not transferred. There is an
// empty one if no replica has written.
func (r *Reader) Read(ctx context.Context) (Reading, error) {
	body, at, err := r.document().Read(ctx)
	if err != nil {
		return Reading{}, known(err)
	}
	doc, err := decode(body, r.App)
	return Reading{at, doc}, err
}

// known says of a document that is too large that it is none of Soloist.
func known(err error) error {
	if errors.Is(err, store.ErrTooLarge) {
		return errors.Join(ErrForeign, err)
	}
	return err
}
