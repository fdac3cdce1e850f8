package alert

import (
	"context"
	"fmt"
	"time"
)

// An outage is the time for which the store is out of reach.
type outage struct {
	on    bool
	begun time.Duration // in elapsed time
	since time.Time
}

// lookHere finds what only this replica can know. The document cannot be written while the
// store is out of reach, so each replica sends its own messages about that.
func (n *Notifier) lookHere() {
	now, version := n.now(), int64(n.c.Elapsed()/time.Millisecond)
	n.local.App = n.c.App
	for _, c := range []condition{n.clock(), n.storage()} {
		if c.Version = version; c.On {
			c.About = version
		}
		n.local.observe([]condition{c}, nil, now)
	}
	for _, i := range n.local.Incidents { // other replicas may have the same trouble
		i.ID = fmt.Sprintf("%s/%s/%s/%d", n.c.App, i.Kind, n.c.Replica, i.Since.Unix())
	}
}

func (n *Notifier) now() time.Time { return n.c.Now().Round(0).UTC() }

// clock is about the clock of this replica.
func (n *Notifier) clock() condition {
	n.mu.Lock()
	defer n.mu.Unlock()
	c := condition{Kind: Skewed, On: n.skew != 0}
	c.facts = facts{Replica: n.c.Replica, Text: fmt.Sprintf("the clock of replica %s is wrong by %s: put it right", n.c.Replica, n.skew.Round(time.Millisecond))}
	return c
}

// storage is about a store that this replica has not reached for some time.
func (n *Notifier) storage() condition {
	c := condition{Kind: Storage}
	err := n.c.Health().Storage
	if err == nil {
		n.outage = outage{}
		return c
	}
	n.busy = true
	if !n.outage.on {
		n.outage = outage{true, n.c.Elapsed(), n.now()}
	}
	c.On = n.c.Elapsed()-n.outage.begun >= outageTime
	c.facts = facts{Replica: n.c.Replica, Error: err.Error(),
		Text: fmt.Sprintf("replica %s has not reached the store since %s", n.c.Replica, n.outage.since.Format(time.RFC3339))}
	return c
}

// deliverLocal sends the messages about this replica.
func (n *Notifier) deliverLocal(ctx context.Context) {
	due, _ := n.local.take(n.me, n.now())
	results := n.send(ctx, due, n.c.Elapsed())
	n.note(&n.local, n.now(), results)
	for id := range results {
		delete(n.sent, id)
	}
	for _, i := range n.local.Incidents {
		n.busy = n.busy || i.waits()
	}
}
