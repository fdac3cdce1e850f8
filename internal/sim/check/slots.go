package check

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/soloist-go/soloist/internal/entry"
)

// A Lock is what is known of a lock.
type Lock struct {
	Slots int           // of the replica that has the most
	Lease time.Duration // the longest
	Users int           // goroutines on all replicas, one after the other
}

// A Once is what is known of work that is done once.
type Once struct {
	Lease    time.Duration
	MaxTries int
	Backoff  time.Duration
}

// IsSlot reports whether an entry is that of a slot of a lock or a group, of what is done once for a
// key, or of a replica that is up, and of no job.
func IsSlot(name string) bool { return name != "" && name[0] >= '0' && name[0] <= '9' }

// isMember reports whether an entry says that a replica is up.
func isMember(name string) bool {
	n, ok := entry.Parse(name)
	return ok && n.Kind == entry.Member
}

// lockOf is the lock of an entry, empty if it is of no lock.
func lockOf(name string) string {
	if n, ok := entry.Parse(name); ok && n.Kind == entry.Lock {
		return n.Name
	}
	return ""
}

// findSlots finds the entry of each function that holds a lock: that of the last claim of its token
// by its replica. Tokens of two slots may be the same, so a claim is for one function.
func (x *index) findSlots(events []*Event) {
	claims := map[string][]*Event{}
	for _, e := range events {
		if lock := lockOf(e.Job); lock != "" && e.What == Request && e.Op == "claim" && e.OK() && e.Record != nil {
			claims[lock+" "+e.Replica] = append(claims[lock+" "+e.Replica], e)
		}
	}
	taken := map[*Event]bool{}
	for _, e := range events {
		if e.What != Ran || e.Lock == "" {
			continue
		}
		all := claims[e.Lock+" "+e.Replica]
		x.slotOf[e.Call] = entry.OfSlot(entry.Lock, 0, e.Lock) // if there is no claim, claims has something to say
		for _, c := range slices.Backward(all) {
			if !taken[c] && c.Record.Token == e.Token && !c.Time.After(e.Time) && c.Job == slotByID(e, c.Job) {
				taken[c], x.slotOf[e.Call] = true, c.Job
				break
			}
		}
	}
}

// slotByID is the entry of the slot that the ID of a function names. That of the first names none, or
// the ID is not told.
func slotByID(e *Event, untold string) string {
	_, number, found := strings.Cut(e.ID[strings.LastIndexByte(e.ID, '@')+1:], "/")
	switch n, err := strconv.Atoi(number); {
	case !strings.Contains(e.ID, "@"):
		return untold
	case !found || err != nil:
		return entry.OfSlot(entry.Lock, 0, e.Lock)
	default:
		return entry.OfSlot(entry.Lock, n, e.Lock)
	}
}

// entryOf is the entry that an event is about.
func (x *index) entryOf(e *Event) string {
	switch {
	case e.OfDocument():
		return "" // the document of orders concerns all jobs
	case e.Lock != "" && (e.What == Ran || e.What == Effect):
		return x.slotOf[e.Call]
	}
	return e.Job
}

// sortEntries parts the entries of jobs from the others.
func (x *index) sortEntries(l *Log) {
	all := slices.DeleteFunc(x.jobs, func(job string) bool { return job == "" || l.everywhere(job) })
	slices.Sort(all)
	x.jobs = nil
	for _, name := range all {
		if IsSlot(name) {
			x.slots = append(x.slots, name)
		} else {
			x.jobs = append(x.jobs, name)
		}
	}
	x.entries = slices.Concat(x.jobs, x.slots)
}

// Results of a call of Do, TryDo or Once.Run.
const (
	IsHeld = "held"
	IsLost = "lost"
)

// gaveUp reports whether a call says that the work is given up for its key.
func gaveUp(e *Event) bool { return strings.Contains(e.Note, "is not tried again for this key") }
