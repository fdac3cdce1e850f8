package local

import (
	"fmt"
	"strconv"
	"strings"
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

// instant is one moment by the clocks of a Dir. The wall clock gives the Date;
// a step of it must not end a lease early, so the end of a lease is kept by the
// time since the machine started, which includes suspension, along with an id
// of that start.
//
// Files keep the end by the wall clock as well. Processes of a system that does
// not tell the other one go by that, and drop
// the other when they change the lease; so the fields of a file never disagree,
// and what one process takes or breaks is taken or broken for all. Only while
// such a process takes part is a step of the wall clock as bad as it was.
type instant struct {
	wall  time.Time
	boot  time.Duration
	start string // the id; empty: not known
}

// tell sets Until of a lease from a file to its end by the wall clock of now,
// however that was set meanwhile. It reports whether it has noted a sighting,
// which the file has to keep.
//
// A lease of another start of the machine may be one of another machine that
// shares the directory; nothing distinguishes the two cases. Clocks of two machines
// are never compared: the lease lasts its length from when this machine saw it
// first. After a restart that is how long a lease of the dead keeps others away.
// The wall clock judges the end of a broken lease: the replica that takes it does
// not rely on that end.
func (l *lease) tell(now instant) (sighted bool) {
	switch {
	case l.Boot == "" || now.start == "":
		return false
	case l.Boot == now.start:
		l.Until = now.wall.Add(l.End - now.boot)
		return false
	case l.Broken:
		return false
	}
	end, known := l.Seen.by(now.start)
	if !known {
		end = now.boot + l.Length
		l.Seen = l.Seen.add(now.start, end)
	}
	l.Until = now.wall.Add(end - now.boot)
	return !known
}

// note is the opposite of tell, for the file: this machine's clock judges what
// this process has made of the lease.
func (l *lease) note(now instant) {
	l.Boot, l.End, l.Seen = "", 0, ""
	if now.start != "" && l.ID != "" {
		l.Boot, l.End = now.start, now.boot+l.Until.Sub(now.wall)
	}
}

// maxSightings keeps a machine that restarts again and again from filling the
// file. More machines than that push out each other's sightings, and none of them
// ever sees the end of a dead machine's lease.
const maxSightings = 64

func (s sightings) by(start string) (end time.Duration, known bool) {
	for one := range strings.SplitSeq(string(s), ";") {
		if text, ok := strings.CutPrefix(one, start+"="); ok {
			ns, err := strconv.ParseInt(text, 10, 64)
			return time.Duration(ns), err == nil
		}
	}
	return 0, false
}

func (s sightings) add(start string, end time.Duration) sightings {
	all := strings.FieldsFunc(string(s), func(c rune) bool { return c == ';' })
	all = append(all, fmt.Sprintf("%s=%d", start, end))
	return sightings(strings.Join(all[max(0, len(all)-maxSightings):], ";"))
}
