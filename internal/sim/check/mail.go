package check

import (
	"slices"
	"time"
)

// A letter is a message of the queue of alarms: what its own log says of it.
type letter struct {
	id    string
	put   time.Time
	due   time.Time // when it is visible, as it was put
	steps []*Event  // in the order of time, the first is the put
	gone  time.Time // deleted or lost; zero: it is still there
	lost  bool
}

// letters returns all messages that there ever were.
func (l *Log) letters() (all []*letter) {
	known := map[string]*letter{}
	for _, e := range l.of("", Mail) {
		m := known[e.ID]
		switch {
		case e.Op == MailPut:
			m = &letter{id: e.ID, put: e.Time, due: e.End, steps: []*Event{e}}
			known[e.ID], all = m, append(all, m)
		case m == nil:
		case e.Op == MailDeleted, e.Op == MailLost:
			m.gone, m.lost = e.Time, e.Op == MailLost
		default:
			m.steps = append(m.steps, e)
		}
	}
	return all
}

// there reports whether a message was in the queue at t, visible or not.
func (m *letter) there(t time.Time) bool {
	return !m.put.After(t) && (m.gone.IsZero() || m.gone.After(t))
}

// last is what has befallen a message last, up to t.
func (m *letter) last(t time.Time) (e *Event) {
	for _, s := range m.steps {
		if !s.Time.After(t) {
			e = s
		}
	}
	return e
}

// hiding is for how long a replica may hide a message that it leaves in the queue.
const hiding = 35 * time.Second

// wakes reports whether a message that is in the queue at t wakes the app up by another time. What the platform does to a
// message does not count, and who looks at the queue may hide it for a moment.
func (m *letter) wakes(t, by time.Time) bool {
	by = later(t, by).Add(wakeDoubt)
	if !m.there(t) || m.due.After(by) {
		return false
	}
	e := m.last(t)
	return e.Replica == Platform || !e.End.After(by) || e.Op == MailTaken && e.End.Sub(e.Time) <= hiding
}

// wakeDoubt is by how much a replica may be wrong about when a message is visible: the service's clock shows seconds.
const wakeDoubt = 3 * time.Second

// downTimes are the times in which no replica is up, from the first start on.
func (l *Log) downTimes() (all []gap) {
	type change struct {
		at time.Time
		by int
	}
	var changes []change
	for _, u := range l.of("", Up) {
		changes = append(changes, change{u.Time, 1})
		if gone := l.gone(u.Replica); !gone.IsZero() {
			changes = append(changes, change{gone, -1})
		}
	}
	slices.SortStableFunc(changes, func(a, b change) int { return a.at.Compare(b.at) })
	up, since := 0, time.Time{}
	for _, c := range changes {
		if up == 0 && !since.IsZero() && c.at.After(since) {
			all = append(all, gap{from: since, to: c.at})
		}
		if up += c.by; up == 0 {
			since = c.at
		}
	}
	if up == 0 && !since.IsZero() && l.end().After(since) {
		all = append(all, gap{from: since, to: l.end()})
	}
	return all
}

// handed is the last time up to t that a replica said that an alarm is pending; nil: none has.
func (l *Log) handed(t time.Time) (last *Event) {
	for _, e := range l.of("", Handed) {
		if e.Note == "" && !e.Time.After(t) {
			last = e
		}
	}
	return last
}
