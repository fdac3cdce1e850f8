package check

import (
	"slices"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/store"
)

// previous: each run is given the newest tick whose run had returned well, and whose outcome the
// service had taken, before it was claimed; and the tick after its own by the schedule of its replica.
// Runs by hand are given it and do not count. One of a backfill is given the tick before its own, which the log does not
// know if a calendar leaves out the days before. Once an operator has changed the entry, the record may say less or more.
func previous(l *Log, bad report) {
	if !l.Around {
		return
	}
	for _, job := range l.index.jobs {
		if l.everywhere(job) {
			continue
		}
		for _, r := range l.runs(job) {
			d, claim := l.definition(r.Replica, job), l.claimOf(job, r.Token)
			if d == nil || d.Every == 0 || claim == nil || l.spoiltBy(job, r.Time) {
				continue
			}
			var want time.Time
			unknown := false
			if r.backfills() {
				want = d.Last(r.Tick.Add(-1))
				unknown = want.IsZero() && d.Limits.From.IsZero() && r.Previous.Before(d.times()[0].From)
			} else {
				want = l.newestSuccess(job, claim.Time)
			}
			if !r.Previous.Equal(want) && !unknown {
				bad(r.Time, "%s is given %s as the last tick that succeeded, or the one before that of a backfill, and that was %s", r.name(), TimeOfDay(r.Previous), TimeOfDay(want))
			}
			if want := d.After(r.Tick); !r.Next.Equal(want) && !(r.Next.IsZero() && want.Equal(forever)) {
				bad(r.Time, "%s is given %s as the next tick, and that is %s", r.name(), TimeOfDay(r.Next), TimeOfDay(want))
			}
		}
	}
}

// newestSuccess returns the newest tick of a job that had succeeded, as the service knew at a time,
// since the entry was last deleted.
func (l *Log) newestSuccess(job string, at time.Time) (tick time.Time) {
	for _, r := range slices.Backward(l.runs(job)) { // the newest first: of most others only the times are looked at
		if r.Time.Before(at) && r.Tick.After(tick) && r.Request == "" && l.returnedWell(&r) && l.finished(&r, at) && !l.forgot(job, r.Time, at) {
			tick = r.Tick
		}
	}
	return tick
}

// returnedWell reports whether a run has returned nil and counts as a success.
func (l *Log) returnedWell(r *Event) bool {
	return r.Note == "" && !r.End.IsZero() && (r.Cause != soloist.ErrCancelled.Error() || l.succeededAllTheSame(r)) && !l.returnedStalled(r)
}

// succeededAllTheSame reports whether a run that was cancelled has returned well before its outcome was written by
// another replica, which does not know that.
func (l *Log) succeededAllTheSame(r *Event) bool {
	return slices.ContainsFunc(l.index.told[r.Job], func(n told) bool {
		return n.outcome.Token == r.Token && n.outcome.Status == store.Succeeded
	})
}

// returnedStalled reports whether the replica of a run has told that it has stalled. Such a run may return
// well before its context has ended.
func (l *Log) returnedStalled(r *Event) bool {
	return r.Cause == soloist.ErrStalled.Error() || slices.ContainsFunc(l.of(r.Job, Emitted), func(e *Event) bool {
		return e.Replica == r.Replica && e.Token == r.Token && e.Op == string(event.Stalled)
	})
}
