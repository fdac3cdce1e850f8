package check

import (
	"slices"
	"time"

	"github.com/soloist-go/soloist"
)

// startedByAlarm: once all faults are over, each tick begins when it is due, or when the platform can have started a
// replica for its alarm, whichever is later; also one that comes while a replica is up that is busy with other jobs.
func startedByAlarm(l *Log, bad report) {
	healed := l.healed()
	if l.Zero == nil || healed.IsZero() {
		return
	}
	all := l.letters()
	for _, job := range l.index.jobs {
		d := l.latest(job)
		if d == nil || d.Every == 0 || d.Follows != "" || d.Group != "" || d.Paused || d.EveryReplica || job == Foreign {
			continue
		}
		for tick := d.After(healed.Add(2 * Settling)); tick.Add(l.lateAt(d, tick)).Before(l.settled().Add(-time.Minute)); tick = tick.Add(d.Every) {
			late := l.lateAt(d, tick)
			if l.mayBePaused(job, tick) || l.heldUp(job, tick) || l.lostAlarm(all, tick, tick) || l.runsOver(job, tick) || l.crowdedOut(d, tick) {
				continue
			}
			if n := slices.IndexFunc(l.runs(job), func(r Event) bool { return r.Tick.Equal(tick) }); n < 0 {
				window, limited := d.window(tick, 1)
				tooLate := limited && window < late // when the replica comes
				last, _ := l.ledger(job, tick)
				noEntry := last == nil && len(l.of(job, Deleted)) > 0 // a new one knows only later ticks
				if tooLate || noEntry || l.newerBegins(d, tick, late) || !l.unheard(job, tick).IsZero() {
					continue
				}
				bad(tick, "tick %s of %s begins nowhere", TimeOfDay(tick), job)
			} else if r := l.runs(job)[n]; r.Time.After(later(tick, l.unheard(job, tick)).Add(late)) {
				bad(r.Time, "%s begins %s after it was due, and the platform takes %s at most", r.name(), r.Time.Sub(tick), late)
			}
		}
	}
}

// crowdedOut reports whether no replica had come that has the ticks of a definition, and the platform had no room for one until
// shortly before a tick: as many others were up as it runs.
func (l *Log) crowdedOut(d *Definition, tick time.Time) bool {
	others, at := 0, tick.Add(-l.Zero.Poll-l.Zero.Start)
	for _, u := range l.of("", Up) {
		if u.Time.After(tick) {
			break
		}
		if its := l.definition(u.Replica, d.Name); its != nil && its.sameTicks(d) {
			return false
		}
		if gone := l.gone(u.Replica); u.Time.Before(at) && (gone.IsZero() || gone.After(at)) {
			others++
		}
	}
	return others >= l.Zero.Most
}

// unheard is when the lease ends under which a claim of a tick got no answer in the short time that it has under beats; zero:
// each got one. Nothing runs until then, nor after it where a run is not repeated.
func (l *Log) unheard(job string, tick time.Time) (end time.Time) {
	for _, e := range l.of(job, Request) {
		if e.Op == "claim" && e.Record != nil && e.Record.Run.Tick.Equal(tick) && e.beats() > 0 && e.Heard.IsZero() {
			end = e.Sent.Add(time.Duration(e.Record.Run.Lease))
		}
	}
	return end
}

// newerBegins reports whether a newer tick begins in the time in which a tick is to begin, and is run in its place.
func (l *Log) newerBegins(d *Definition, tick time.Time, late time.Duration) bool {
	return d.Missed != soloist.RunAll && slices.ContainsFunc(l.runs(d.Name), func(r Event) bool {
		return r.Tick.After(tick) && !r.Time.After(tick.Add(late)) && d.Every < late
	})
}

// lateAt is late for a tick. One that comes when a pass ends which does not wait any more is left to the next replica, and
// the lead is over then. A replica that goes on has to begin it, unless it has too little time left for a run.
func (l *Log) lateAt(d *Definition, tick time.Time) time.Duration {
	z := l.Zero
	for _, u := range l.of("", Up) {
		left, gone := u.Time.Add(LongestPass).Sub(tick), l.gone(u.Replica)
		if z.Kind != AsApp && left > 0 && left < max(d.Timeout, time.Minute) && gone.After(tick) && !gone.After(u.Time.Add(LongestPass+time.Minute)) {
			return gone.Sub(tick) + z.late() + z.Poll + z.Start
		}
	}
	ends := z.Kind != AsApp && slices.ContainsFunc(l.of("", Up), func(u *Event) bool {
		gone := l.gone(u.Replica)
		return u.Time.Before(tick.Add(passOver-max(z.Stay, z.Lead))) && gone.After(tick.Add(-z.Lead)) && gone.Before(tick.Add(z.late()))
	})
	if ends {
		return z.late() + min(z.Lead, z.Poll+z.Start)
	}
	return z.late()
}

// passOver is for how long a pass hands over at most.
const passOver = 15 * time.Second

// late is how long after a tick a run begins at most, if all goes well.
func (z *Zero) late() time.Duration {
	late := max(0, z.Poll+z.Start-z.Lead) + 10*time.Second
	if z.Kind == AsApp && z.Stay > 0 {
		late += 5 * time.Minute // a replica that has ended by itself is started again later and later
	}
	return late
}

// runsOver reports whether a run of a job was under way when a tick came, or was about to be.
func (l *Log) runsOver(job string, tick time.Time) bool {
	return slices.ContainsFunc(l.runs(job), func(r Event) bool {
		return !r.Tick.Equal(tick) && r.Time.Before(tick.Add(time.Minute)) && (r.End.IsZero() || r.End.After(tick.Add(-time.Minute)))
	})
}
