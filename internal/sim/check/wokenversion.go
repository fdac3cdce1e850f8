package check

import (
	"slices"
	"time"
)

// wokenVersion: a message that was put after a deployment is gone only once a replica has started since, which is one of
// the new version; or the message was put again, or is an hour old.
func wokenVersion(l *Log, bad report) {
	if l.Zero == nil {
		return
	}
	all := l.letters()
	for _, m := range all {
		if m.steps[0].Note != ForVersion || m.gone.IsZero() || m.lost || m.gone.Sub(m.put) > time.Hour-wakeDoubt {
			continue
		}
		since := func(t time.Time) bool { return !t.Before(m.put) && !t.After(m.gone) }
		started := slices.ContainsFunc(l.of("", Up), func(u *Event) bool { return since(u.Time) })
		again := slices.ContainsFunc(all, func(o *letter) bool { return o != m && o.steps[0].Note == ForVersion && since(o.put) })
		if !started && !again {
			bad(m.gone, "message %s, for the version that was deployed at %s, is gone, and no replica has started since", m.id, TimeOfDay(m.put))
		}
	}
}
