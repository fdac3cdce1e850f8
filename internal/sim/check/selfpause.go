package check

import (
	"time"

	"github.com/soloist-go/soloist/store"
)

// pausedItself: a job that has failed as often in a row as PauseAfter says starts nothing but
// runs by hand until it is resumed. The failures are counted here: what the record says of the
// pause does not count.
func pausedItself(l *Log, bad report) {
	for _, job := range l.index.jobs {
		if l.forgot(job, time.Time{}, l.end()) || l.forgot("", time.Time{}, l.end()) || len(l.of(job, Corrupted)) > 0 {
			continue
		}
		for _, p := range l.selfPauses(job) {
			for _, r := range l.runs(job) {
				if r.Try == 1 && r.Request == "" && r.Time.After(p.from) && r.Time.Before(p.to) {
					bad(r.Time, "%s begins, and the job has failed too often at %s", r.name(), TimeOfDay(p.from))
				}
			}
		}
	}
}

// selfPauses returns the times in which a job was surely paused by itself.
func (l *Log) selfPauses(job string) (all []pauseTime) {
	row, seen := 0, map[int64]bool{}
	for _, n := range l.index.told[job] {
		d := l.definition(n.write.Replica, job)
		if n.outcome.Request != "" || n.outcome.Token == 0 || seen[n.outcome.Token] || d == nil {
			continue
		}
		seen[n.outcome.Token] = true
		switch n.outcome.Status {
		case store.Succeeded:
			row = 0
		case store.Failed, store.Stalled:
			if row++; d.Every > 0 && d.PauseAfter > 0 && row >= d.PauseAfter { // a singleton has no PauseAfter
				all = append(all, pauseTime{n.write.Time, l.resumedAfter(job, n.outcome.Token, n.write.Time)})
				row = 0 // those before a resume do not count
			}
		}
	}
	return all
}

// resumedAfter is when a pause that begins at t, for the failure of a token, may be over: the
// first resume that was not surely in force before. One that was is about that failure too if
// its run was over: only its outcome came later, since its tick waited for another attempt.
func (l *Log) resumedAfter(job string, token int64, t time.Time) time.Time {
	end := l.end()
	for _, o := range l.of(job, Ordered) {
		if o.Op == string(store.OrderResume) && (o.Heard.IsZero() || !o.Heard.Before(t) || o.Token >= token) {
			end = earlier(end, o.Time)
		}
	}
	return end
}
