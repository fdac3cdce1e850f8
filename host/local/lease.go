package local

import (
	"time"

	"github.com/soloist-go/soloist/store"
)

// lease is the lease of one entry, a pure state machine: the table of the
// Lease Blob operation (https://learn.microsoft.com/rest/api/storageservices/lease-blob).
// A method that fails changes nothing. The zero value is available.
type lease struct {
	ID     string        `json:"id,omitempty"`        // who leased it last; empty: no process since a release
	Length time.Duration `json:"length_ns,omitempty"` // what the lease was acquired for
	Until  time.Time     `json:"until,omitzero"`      // the first instant at which it is not live
	Broken bool          `json:"broken,omitempty"`    // it was broken: Until cannot be moved forward

	// In the file of a Dir, Until by a clock that cannot be set: see instant.
	Boot string        `json:"boot,omitempty"`
	End  time.Duration `json:"end_ns,omitempty"`
	Seen sightings     `json:"seen,omitempty"`
}

func (l *lease) state(now time.Time) store.LeaseState {
	live := now.Before(l.Until)
	switch {
	case l.ID == "":
		return store.Available
	case l.Broken && live:
		return store.Breaking
	case l.Broken:
		return store.Broken
	case live:
		return store.Leased
	}
	return store.Expired
}

// rebase keeps a lease that goes by the wall clock from lasting longer than its length after the clock was
// put back: by the new clock, a day of waiting could be left of a dead holder.
func (l *lease) rebase(now time.Time) {
	if l.Until.Sub(now) > l.Length {
		l.Until = now.Add(l.Length)
	}
}

func (l *lease) acquire(id string, d time.Duration, now time.Time) error {
	switch state := l.state(now); {
	case state == store.Breaking, state == store.Leased && l.ID != id:
		return store.ErrHeld
	}
	*l = lease{ID: id, Length: d, Until: now.Add(d)}
	return nil
}

// renew also revives an expired lease: that ID is still there proves that
// no other process leased the entry in between.
func (l *lease) renew(id string, now time.Time) error {
	if l.ID != id || l.Broken {
		return store.ErrLost
	}
	l.Until = now.Add(l.Length)
	return nil
}

// check says whether id may write now.
func (l *lease) check(id string, now time.Time) error {
	if l.ID != id || !l.state(now).Live() {
		return store.ErrLost
	}
	return nil
}

func (l *lease) release(id string) error {
	if l.ID != id {
		return store.ErrLost
	}
	*l = lease{}
	return nil
}

// end breaks the lease after period, at the latest when it ends by itself; a
// negative period leaves it all the time it has.
func (l *lease) end(period time.Duration, now time.Time) error {
	if l.ID == "" {
		return store.ErrLost
	}
	if period >= 0 && now.Add(period).Before(l.Until) {
		l.Until = now.Add(period)
	}
	l.Broken = true
	return nil
}

// sightings are the ends of a lease by the clocks of machines other than its
// holder's, the latest last: "START=END;START=END", in nanoseconds. Each machine
// has its own, so that a look by one does not prolong the lease for another. It
// is text, so that an entry can be compared.
type sightings string
