package check

import (
	"slices"
	"time"
)

// wokenVersion: a message that was put for a version after its deployment is gone only once a replica of it was up: one that has
// started since, or had started already. Or the message was put again, or is an hour old, as far as who has deleted it can know.
func wokenVersion(l *Log, bad report) {
	if l.Zero == nil {
		return
	}
	all := l.letters()
	for _, m := range all {
		if m.steps[0].Note == "" || m.gone.IsZero() || m.lost || m.gone.Sub(m.put) > time.Hour-wakeDoubt {
			continue
		}
		since := func(t time.Time) bool { return !t.Before(m.put) && !t.After(m.gone) }
		started := slices.ContainsFunc(l.of("", Up), func(u *Event) bool {
			gone := l.gone(u.Replica)
			return since(u.Time) || u.ID == m.steps[0].Note && u.Time.Before(m.put) && (gone.IsZero() || gone.After(m.put))
		})
		again := slices.ContainsFunc(all, func(o *letter) bool { return o != m && o.steps[0].Note == m.steps[0].Note && since(o.put) })
		if !started && !again && !l.ignorant(m) {
			bad(m.gone, "message %s, put at %s for %s, is gone, and no replica of that was up", m.id, TimeOfDay(m.put), m.steps[0].Note)
		}
	}
}

// ignorant reports whether the store had not answered who has deleted a message: it does not know what time it is.
func (l *Log) ignorant(m *letter) bool {
	return slices.ContainsFunc(l.of("", Mail), func(d *Event) bool {
		return d.ID == m.id && d.Op == MailDeleted && !slices.ContainsFunc(l.Events, func(e *Event) bool {
			return e.What == Request && e.Job != AlarmNote && e.Replica == d.Replica && e.OK() && e.Cause == "" && !e.Heard.IsZero() && e.Heard.Before(d.Time)
		})
	})
}
