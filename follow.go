package soloist

import "time"

// follow waits beside a run of another replica: for the moment when its lease
// could lapse if somebody waits for that, else a minute.
func (w *worker) follow(now time.Time) time.Duration {
	w.note(nil)
	w.losses.reset()
	w.holder = w.rec.Holder
	switch urgent := w.urgent(&w.rec, now); {
	case urgent && w.rec.Stopping:
		// After half a minute ever more rarely: some take long to stop.
		return w.again(min(w.untilLapse(), max(nearEvery, time.Since(w.closer.at)/300)))
	case urgent:
		return w.again(w.untilLapse())
	}
	wait := lookEvery
	if next := w.ticks.Next(later(now, w.rec.Tick)); !next.IsZero() {
		wait = min(wait, next.Sub(now))
	}
	return w.again(wait)
}

// untilLapse aims just behind the next instant at which the lease of another
// replica's run could lapse: renewals come at thirds of it after the claim, and
// so do lapses. The earliest reading of the service's clock has to be behind it
// too by then, though it lags a little more all the time: else there would be a
// second look.
func (w *worker) untilLapse() time.Duration {
	lo, _, ok := w.clock.now()
	third := time.Duration(w.rec.Lease) / 3
	if !ok || third <= 0 {
		return w.length / 3
	}
	wait := third - lo.Sub(w.rec.Claimed)%third
	wait += wait / (driftShare - 1)
	return min(wait, 2*third) + 50*time.Millisecond + w.dice.upTo(200*time.Millisecond)
}

// again has the entry read anew after d.
func (w *worker) again(d time.Duration) time.Duration {
	w.entry, w.lookAt = nil, time.Now().Add(d)
	return d
}

// A sighting is when something was first seen of the run with a token.
type sighting struct {
	token int64
	at    time.Time // monotonic
}

func (s *sighting) of(token int64) {
	if s.token != token {
		*s = sighting{token, time.Now()}
	}
}

// lookedAway says that the entry may have been changed and changed again.
func (w *worker) lookedAway() {
	w.entry = nil
	w.still.etag, w.still.at = "", time.Now()
}

// sight remembers since when what was read is as it is. A hold-off counts from
// there, however often it is cut short.
func (w *worker) sight() {
	w.looked = time.Now()
	w.occupation.look(w.entry, &w.rec, w.dueTime())
	if w.still.etag != w.entry.ETag {
		w.still.etag, w.still.at, w.still.date = w.entry.ETag, time.Now(), w.entry.Date
	}
	if w.rec.mayRun() && !w.entry.State.Live() && w.entry.State != Expired {
		w.freed.of(w.rec.Epoch)
	}
	if w.rec.Stopping {
		w.closer.of(w.rec.Epoch)
	} else {
		w.closer = sighting{}
	}
}

// recall notes the record of an entry that was read, and whether the entry is
// another one than this process has seen before.
func (s *seen) recall(r *Record) {
	if !s.created.IsZero() && !r.Created.Equal(s.created) {
		s.anew = time.Now()
	}
	s.created, s.before = r.Created, max(s.before, time.Duration(r.Lease))
}
