package record

import (
	"strconv"
	"time"
)

// A BackfillProgress is the last backfill of a job, and how far it is.
type BackfillProgress struct {
	Order  Backfill   // zero: none was ordered
	Done   Backfilled // zero: nothing of it has begun
	Tick   time.Time  // the first tick whose run has no outcome yet; zero: none
	Beside int        // how many more ticks have such a run
	Over   bool       // nothing of it is left to run: it is done or cancelled
}

// BackfillRequest returns the request of the runs of a backfill, which [event.BackfillOf] reads.
func BackfillRequest(seq int64) string { return "backfill/" + strconv.FormatInt(seq, 10) }
