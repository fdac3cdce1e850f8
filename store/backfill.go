package store

import (
	"strconv"
	"strings"
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

// ofBackfill begins the request of a run of a backfill. No person can ask for such a name.
const ofBackfill = "backfill/"

// BackfillRequest returns the request of the runs of a backfill.
func BackfillRequest(seq int64) string { return ofBackfill + strconv.FormatInt(seq, 10) }

// BackfillOf returns the number of the backfill that a run with such a request is of, zero if it
// is of none.
func BackfillOf(request string) int64 {
	number, ok := strings.CutPrefix(request, ofBackfill)
	if !ok {
		return 0
	}
	seq, _ := strconv.ParseInt(number, 10, 64)
	return seq
}
