package store

import (
	"fmt"
	"time"
)

// checkInstants refuses an instant whose year in UTC is beyond what JSON can write. It can be
// read in another zone, but then no answer that contains it can be written: one such record
// would make the status of all jobs fail.
func (r *Record) checkInstants() error {
	for _, at := range r.instants() {
		if year := at.UTC().Year(); year < 1 || year > 9999 {
			return fmt.Errorf("the record has the instant %s: want the years 1 to 9999 in UTC: correct the record", at.Format(time.RFC3339))
		}
	}
	return nil
}

// instants returns all instants in the record.
func (r *Record) instants() []time.Time {
	all := []time.Time{r.Created, r.Definition.Since, r.Definition.Mark.Since, r.Watermark, r.Due, r.Succeeded, r.Past.Succeeded, r.Past.Judged, r.Past.Late.Since, r.Past.Late.Tick, r.Past.Told, r.Run.Tick, r.Run.Claimed, r.Run.Finished, r.Run.Progress.At, r.Run.Unlocked.At, r.Orders.Paused.At, r.Orders.Returned.Tick, r.Backfill.Through, r.Backfill.Failed}
	for _, o := range r.Backfill.Open {
		all = append(all, o.Tick)
	}
	for _, s := range r.Orders.Pauses {
		all = append(all, s.From, s.To)
	}
	for _, f := range r.History {
		all = append(all, f.Tick, f.From, f.Start, f.End)
	}
	return all
}
