package judge

import (
	"cmp"
	"slices"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/internal/sim/trace"
)

// Progress of a cluster that a platform scales to zero: it starts a replica when a message is visible in the queue of alarms.

// A letter is a message of the queue, from the queue's own log.
type letter struct {
	put, visible, gone time.Time // gone: deleted or lost; zero: it is still there
	lost               bool      // by the platform, or moved to another time
}

// letters are all messages that there ever were.
func (w *world) letters() (all []*letter) {
	known := map[string]*letter{}
	for _, e := range w.of[trace.Mail] {
		m := known[e.ID]
		switch {
		case e.Op == trace.MailPut:
			known[e.ID] = &letter{put: e.Time, visible: e.End}
			all = append(all, known[e.ID])
		case m == nil:
		case e.Op == trace.MailDeleted || e.Op == trace.MailLost:
			m.gone, m.lost = e.Time, m.lost || e.Op == trace.MailLost
		case e.Replica == trace.Platform:
			m.lost = true
		default:
			m.visible = e.End
		}
	}
	return all
}

// inQueue counts the messages that are in the queue at a time, and were put there between two times.
func (w *world) inQueue(t, from, to time.Time) (n int) {
	for _, m := range w.letters() {
		if !m.put.Before(from) && !m.put.After(to) && (m.gone.IsZero() || m.gone.After(t)) {
			n++
		}
	}
	return n
}

// rested is from when a cluster that scales to zero is judged: a replica has been up that knows what is in force.
func (w *world) rested() time.Time { return w.calm.Add(2 * trace.Settling) }

// wakes: a wake-up is pending at or before the next thing to do. So each tick begins as soon as the platform can start a replica
// for it, unless its job runs already: it looks, starts a replica, and perhaps another one after it, when the first one's
// pass was about to end; and it waits longer and longer before it starts a replica that ends by itself again. It is judged
// from when a replica has handed over that knows its schedule, after all faults, until an alarm would come that the platform
// has lost. A tick whose starting deadline may be over before a replica is up need not begin.
func wakes(w *world, bad report) {
	if w.Zero == nil {
		return
	}
	late := 2*(w.Zero.Poll+w.Zero.Start) + 25*time.Second
	if w.Zero.Kind == trace.AsApp && w.Zero.Stay > 0 {
		late += 5 * time.Minute
	}
	from, to := w.rested(), w.settled.Add(-time.Minute)
	for _, m := range w.letters() {
		if past := later(m.gone, m.visible).Add(time.Minute); m.lost && past.Before(from.Add(time.Hour)) {
			from = later(from, past)
		} else if m.lost {
			to = first(to, m.visible)
		}
	}
	for _, t := range w.tasks {
		all := w.of[trace.Handed]
		known := slices.IndexFunc(all, func(h *trace.Event) bool {
			its := w.definition(h.Replica, t.Name)
			return h.Note == "" && its != nil && its.Schedule == t.Schedule && its.Every == t.Every &&
				its.Closed == t.Closed && its.Limits == t.Limits
		})
		deadline := t.Late.Start
		if deadline == 0 && t.Late.Missed == soloist.SkipMissed {
			deadline = t.Lease
		}
		if t.due() && !t.Paused && known >= 0 && (deadline == 0 || deadline >= late) {
			t.begins(later(all[known].Time, from), to, late, bad)
		}
	}
}

// fewMessages: in the end no more than two messages are in the queue for longer than a pass, besides those that the faults have
// left.
func fewMessages(w *world, bad report) {
	from, to := w.rested(), w.settled
	n := w.inQueue(to, from, to.Add(-trace.LongestPass-5*time.Minute))
	if most := 2 + w.inQueue(from, time.Time{}, from); w.Zero != nil && n > most {
		bad(to, "%d messages are in the queue, at most %d", n, most)
	}
}

// fewStarts: once all faults are over, replicas are started about as often as ticks are due: an alarm for nothing is not followed
// by another one. Each message that the faults have left may start one.
func fewStarts(w *world, bad report) {
	if w.Zero == nil || w.healed.IsZero() {
		return
	}
	from, to := w.rested(), w.settled
	due := map[int64]bool{}
	for _, t := range w.tasks {
		if t.Every == 0 || t.Follows != "" {
			continue
		}
		for tick := t.After(from.Add(-time.Hour)); tick.Before(to); tick = t.After(tick) {
			due[tick.Unix()], due[tick.Add(t.Late.Finish).Unix()] = true, true // counted, and it may be reported as late once
		}
	}
	n, up := 0, time.Time{} // up: until when a replica is
	for _, u := range w.of[trace.Up] {
		if u.Time.After(up) && u.Time.After(from) && u.Time.Before(to) && u.Op == trace.ByAlarm {
			n++
		}
		up = later(up, cmp.Or(w.left[u.Replica], to))
	}
	if most := 2*len(due) + w.inQueue(from, time.Time{}, from) + 6; n > most {
		bad(to, "replicas were started %d times since %s, and ticks were due at %d instants", n, clock(from), len(due))
	}
}
