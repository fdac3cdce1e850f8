package alert

import (
	"fmt"
	"sync"
	"time"
)

// outageTime is for how long the store is out of reach before that is an incident.
const outageTime = time.Minute

// A local finds what only this replica can know. The document cannot be written while the store is
// out of reach, so each replica sends its own messages about that.
type local struct {
	c         *Config
	start     time.Time // when elapsed time was zero, by the wall clock of then
	incidents content
	outage    outage

	mu   sync.Mutex
	skew time.Duration
}

// An outage is the time for which the store is out of reach.
type outage struct {
	on    bool
	begun time.Duration // in elapsed time
}

func newLocal(c *Config) local {
	return local{c: c, start: c.Now().Round(0).UTC().Add(-c.Elapsed())}
}

// hear notes by how much the clock of this replica is wrong.
func (l *local) hear(skew time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.skew = skew
}

// look looks at clock and store. It returns true if the store seems out of reach, so that the next
// look has to come soon.
func (l *local) look() bool {
	now, version := l.now(), int64(l.c.Elapsed()/time.Millisecond)
	l.incidents.App = l.c.App
	for _, c := range []condition{l.clock(), l.storage()} {
		if c.Version = version; c.On {
			c.About = version
		}
		l.incidents.observe([]condition{c}, nil, now)
	}
	for _, i := range l.incidents.Incidents { // other replicas may have the same trouble
		i.ID = fmt.Sprintf("%s/%s/%s/%d", l.c.App, i.Kind, l.c.Replica, i.Since.Unix())
	}
	return l.outage.on
}

// now is an instant by elapsed time: what is wrong may be the wall clock, which leaps when it is
// put right.
func (l *local) now() time.Time { return l.start.Add(l.c.Elapsed()) }

// wall is when it was now, by the wall clock.
func (l *local) wall(now time.Time) time.Time {
	return now.Add(l.c.Now().Sub(l.now())).Round(0).UTC()
}

// dated converts the times in messages to the wall clock.
func (l *local) dated(due []Message) []Message {
	for n := range due {
		m := &due[n]
		if m.Since = l.wall(m.Since); !m.Over.IsZero() {
			m.Over = l.wall(m.Over)
		}
	}
	return due
}

// clock is about the clock of this replica.
func (l *local) clock() condition {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := condition{Kind: Skewed, On: l.skew != 0}
	c.facts = facts{Replica: l.c.Replica, Text: fmt.Sprintf("the clock of replica %s is wrong by %s: put it right", l.c.Replica, l.skew.Round(time.Millisecond))}
	return c
}

// storage is about a store that this replica has not reached for some time.
func (l *local) storage() condition {
	c := condition{Kind: Storage}
	err := l.c.Health().Storage
	if err == nil {
		l.outage = outage{}
		return c
	}
	if !l.outage.on {
		l.outage = outage{true, l.c.Elapsed()}
	}
	c.On = l.c.Elapsed()-l.outage.begun >= outageTime
	c.facts = facts{Replica: l.c.Replica, Error: err.Error(),
		Text: fmt.Sprintf("replica %s has not reached the store since %s", l.c.Replica, l.wall(l.start.Add(l.outage.begun)).Format(time.RFC3339))}
	return c
}
