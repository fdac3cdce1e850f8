package alert

import (
	"time"

	"github.com/soloist-go/soloist"
)

// unreadableTime is for how long a replica has to fail before that is an incident: a call may
// fail once.
const unreadableTime = time.Minute

// unreadable is about a record that cannot be read, which has no version to order the looks
// by. So they are ordered by when they were made, in the store's time. The incident is over
// when any replica has read the record. It begins again only with a failure that came after
// that: records of a newer program stay unreadable for the replicas of the older one.
func (n *Notifier) unreadable(st *soloist.JobStatus) []condition {
	c := condition{Kind: Unreadable, timed: true, looked: n.c.Elapsed(), first: n.c.Elapsed()}
	if st.Err == nil {
		delete(n.unread, st.Name)
		return []condition{c}
	}
	if n.c.Health().Storage != nil { // that is an incident of its own
		delete(n.unread, st.Name)
		return nil
	}
	if first, known := n.unread[st.Name]; known {
		c.first = first
	}
	if n.unread[st.Name] = c.first; c.looked-c.first < unreadableTime {
		n.busy = true
		return nil
	}
	c.On = true
	c.facts = facts{Replica: n.c.Replica, Error: st.Err.Error(), Text: "does not run: its record cannot be read"}
	return []condition{c}
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
