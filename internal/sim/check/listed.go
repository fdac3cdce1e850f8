package check

import "slices"

// looked: what a status says of a job is what its record said at some moment while the status
// was read.
func looked(l *Log, bad report) {
	for _, job := range l.index.jobs {
		for _, e := range l.of(job, Listed) {
			if said, known := l.saidBetween(e); known && !said {
				bad(e.Heard, "a status says of %s what its record did not say from %s on: %s", job, TimeOfDay(e.Sent), describe(e.Record))
			}
		}
	}
}

// saidBetween reports whether the record of a job said what a status says while that was
// read. It is not known of an entry that was deleted or corrupted.
func (l *Log) saidBetween(e *Event) (said, known bool) {
	if l.forgot(e.Job, l.Events[0].Time, e.Heard) || l.forgot("", l.Events[0].Time, e.Heard) || len(l.of(e.Job, Corrupted)) > 0 {
		return false, false
	}
	writes := l.writes(e.Job)
	first := 0 // the last one before the status was asked for
	for i, w := range writes {
		if !w.Time.After(e.Sent) {
			first = i
		}
	}
	if e.Record == nil {
		return len(writes) == 0 || writes[0].Time.After(e.Sent), true
	}
	return slices.ContainsFunc(writes[min(first, len(writes)):], func(w *Event) bool {
		r := w.Record
		return r != nil && r.Writer == e.Record.Writer && r.Token == e.Record.Token && r.Run.Status == e.Record.Run.Status && !w.Time.After(e.Heard)
	}), true
}
