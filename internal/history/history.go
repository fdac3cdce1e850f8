// Package history keeps the outcomes of jobs for longer than their records do, which have
// the last twenty. Each job has a log next to its entry, a line of JSON for each outcome, in the order of the record.
//
// The record is the source of each line: a replica that has ended some runs reads the record and appends the outcomes that
// the log lacks, whichever replica has written them. So a replica that dies leaves nothing to be repaired; the next replica
// that writes mends the log. An append is made at the size that the log had when its end was read, and fails if another
// replica was faster: no outcome is there twice.
//
// Each replica also keeps its own last outcomes until they are in the log: a record has no outcomes of a backfill, and twenty
// others. Up to five of these are the newest ticks, and may be older than manual runs that the record has dropped.
//
// What is not promised: that the log is complete. If more outcomes came while no replica could write the log, or their
// replica died, the outcomes before the record's are lost; the line after them says that some may be, unless all that the
// record has of them were settled without a run. Nor that an outcome is in the log soon: they are written in batches of about
// ten. [Read] adds what only the record has yet. Nor the order of outcomes that the record had dropped before they were
// logged: if two replicas wrote them, the outcomes of the replica that logs first come first.
package history

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/store"
)

// A Line is one outcome in a log.
type Line struct {
	event.Outcome
	Gap bool `json:"gap,omitempty"` // outcomes before this one may be lost

	seen time.Time // when this replica settled it; zero: it is from a log or a record
}

// shortened returns an outcome whose reason is no longer than one of a record.
func shortened(o event.Outcome) event.Outcome {
	if r := []rune(o.Reason); len(r) > longestReason {
		o.Reason = string(r[:longestReason])
	}
	return o
}

const longestReason = 500

// longer returns a reason as it was when it was longer: a record shortens those of older outcomes.
func longer(before, now string) string {
	if strings.HasPrefix(before, now) {
		return before
	}
	return now
}

// At is when the outcome came about: the end of the run, as far as it is known.
func (l *Line) At() time.Time {
	switch {
	case !l.End.IsZero():
		return l.End
	case !l.Start.IsZero():
		return l.Start
	}
	return l.Tick
}

// A key identifies an outcome of a job. It has what does not change: the end of a stalled run is added later, and a long
// reason is shortened.
type key struct {
	token      int64
	tick, from int64
	status     event.Status
	request    string
	attempt    int
}

func keyOf(o *event.Outcome) key {
	return key{o.Token, o.Tick.UnixNano(), o.From.UnixNano(), o.Status, o.Request, o.Attempt}
}

// encode returns lines as they are in a log.
func encode(lines []Line) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	for i := range lines {
		if err := e.Encode(&lines[i]); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), nil
}

// decode reads the lines of a part of a log. What is no line is left out: a store that
// crashed may have kept the beginning of one.
func decode(b []byte) (lines []Line) {
	for text := range bytes.Lines(b) {
		var l Line
		if json.Unmarshal(text, &l) == nil && l.Status != "" {
			lines = append(lines, l)
		}
	}
	return lines
}

// part names the logs of a job, which follow each other. All replicas begin a new one at
// the same size, so only one is written at a time.
func part(n int) string { return fmt.Sprintf("%06d", n) }

// full is the size from which on a log is not written any more. An append is at most
// [store.MaxAppend] long.
const full = store.MaxLog - store.MaxAppend
