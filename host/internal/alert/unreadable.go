package alert

import (
	"time"

	"github.com/soloist-go/soloist"
)

// unreadableTime is for how long a replica has to fail before that is an incident: a call may
// fail once.
const unreadableTime = time.Minute

// unread has, of each job whose record cannot be read, since when, in elapsed time.
type unread map[string]time.Duration

// look is about a record that cannot be read, which has no version to order the looks
// by. So they are ordered by when they were made, in the store's time. The incident is over
// when any replica has read the record. It begins again only with a failure that came after
// that, or when no replica is left that can read it: records of a newer program stay unreadable
// for the replicas of the older one. Suspect says that a record cannot be read, for too short a
// time yet.
func (u unread) look(config *Config, st *soloist.JobStatus) (seen []condition, suspect bool) {
	c := condition{Kind: Unreadable, timed: true, looked: config.Elapsed(), first: config.Elapsed()}
	if st.Err == nil {
		delete(u, st.Name)
		return []condition{c}, false
	}
	if config.Health().Storage != nil { // that is an incident of its own
		delete(u, st.Name)
		return nil, false
	}
	if first, known := u[st.Name]; known {
		c.first = first
	}
	if u[st.Name] = c.first; c.looked-c.first < unreadableTime {
		return nil, true
	}
	c.On = true
	c.facts = facts{Replica: config.Replica, Error: st.Err.Error(), Text: "does not run: its record cannot be read"}
	return []condition{c}, false
}

// date sets the version of a condition whose record has none. The store's time was now when
// this replica's clock of elapsed time was at begun.
func (c *condition) date(now time.Time, begun time.Duration) {
	if !c.timed {
		return
	}
	c.Version = now.Add(c.looked - begun).UnixMilli()
	if c.On {
		c.About = now.Add(c.first - begun).UnixMilli()
	}
}
