package runner

import (
	"maps"
	"slices"
	"sync"

	"github.com/soloist-go/soloist/store"
)

// A decoded is the record that the last status of a job has shown. A page that reads the
// statuses of many jobs every few seconds decodes only those that have changed.
type decoded struct {
	mu   sync.Mutex
	etag string // of rec; empty: nothing is kept
	rec  store.Record
}

// record returns the record of an entry, which shares its history with earlier answers and nothing that can be written
// in place.
func (d *decoded) record(e *store.Entry, app, job string) (store.Record, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if e.ETag == "" || e.ETag != d.etag {
		rec, err := store.DecodeRecord(e.Record, app, job)
		if err != nil {
			return rec, err
		}
		d.etag, d.rec = e.ETag, rec
	}
	rec := d.rec.Clone()
	rec.Counts = maps.Clone(rec.Counts) // what a caller writes there is its own
	rec.Backfill.Counts, rec.Backfill.Open = maps.Clone(rec.Backfill.Counts), slices.Clone(rec.Backfill.Open)
	return rec, nil
}
