package history

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/soloist-go/soloist/internal/record"
	"github.com/soloist-go/soloist/store"
)

// firstRead is how much of the end of a log is read first: about a day of a job that runs
// each twenty seconds.
const firstRead = 1 << 20

// usualLine is more than most lines have.
const usualLine = 256

// Read returns the outcomes of a job since an instant, the oldest first. To what the logs
// have it adds what only the record has yet. Zero: all that are there.
func Read(ctx context.Context, s store.Appender, entry string, since time.Time, rec *record.Record) ([]Line, error) {
	all, _, err := Newest(ctx, s, entry, since, math.MaxInt, rec)
	return slices.DeleteFunc(all, func(l Line) bool { return l.At().Before(since) }), err
}

// Newest is Read of the newest outcomes, about as many as most. It reads no more than it
// needs for that, so some from before the instant may be among them. whole reports whether
// it has all since the instant.
func Newest(ctx context.Context, s store.Appender, entry string, since time.Time, most int, rec *record.Record) (all []Line, whole bool, err error) {
	parts, err := list(ctx, s, entry, "")
	if err != nil {
		return nil, false, err
	}
	reached, from := false, int64(0)
	for len(parts) > 0 && !reached && from == 0 && len(all) < most {
		last := len(parts) - 1
		var lines []Line
		lines, from, err = back(ctx, s, parts[last], since, most-len(all))
		if err != nil {
			return nil, false, err
		}
		reached = len(lines) > 0 && lines[0].At().Before(since)
		all, parts = append(lines, all...), parts[:last]
	}
	whole = reached || len(parts) == 0 && from == 0
	if len(all) > most {
		all = slices.Clone(all[len(all)-most:]) // the rest is not kept in memory
		whole = all[0].At().Before(since)
	}
	return append(all, unlogged(all, rec)...), whole, nil
}

// back reads a log from its end until a line from before an instant, or enough lines, and
// returns where it has stopped.
func back(ctx context.Context, s store.Appender, p extent, since time.Time, most int) (lines []Line, from int64, err error) {
	n := int64(firstRead)
	if most < firstRead/usualLine { // many logs may be read for a few lines each
		n = max(firstRead/16, int64(most)*usualLine)
	}
	for ; ; n *= 4 {
		from = max(0, p.size-n)
		b, err := s.ReadLog(ctx, p.name, from, int(p.size-from))
		if err != nil {
			return nil, 0, err
		}
		lines = decode(b)
		if from == 0 || len(lines) >= most || len(lines) > 0 && lines[0].At().Before(since) {
			return lines, from, nil
		}
	}
}

// unlogged returns the outcomes of a record that lines lack.
func unlogged(lines []Line, rec *record.Record) []Line {
	if rec == nil {
		return nil
	}
	e := &end{known: map[key]bool{}}
	if e.learn(lines); len(lines) > 0 {
		e.parts = []extent{{size: 1}} // of some size: it has these lines
	}
	return e.missing(rec) // a stalled run is shown before its end is known
}

// Update returns lines that were read before, with what a record has that was read since.
// It changes none of them. ok is false if outcomes may lie between them and the record,
// which are in the log alone.
func Update(lines []Line, rec *record.Record) (all []Line, ok bool) {
	recent := slices.Clone(lines[max(0, len(lines)-enough):])
	at := map[key]int{}
	for i := range recent {
		at[keyOf(&recent[i].Outcome)] = i
	}
	changed := false
	for i := range rec.History {
		n, known := at[keyOf(&rec.History[i])]
		if !known {
			continue
		}
		o := rec.History[i]
		if o.Reason = longer(recent[n].Reason, o.Reason); recent[n].Outcome != o { // a stalled run ends later
			recent[n].Outcome, changed = o, true
		}
	}
	news := unlogged(recent, rec)
	if len(news) == 0 && !changed {
		return lines, true
	}
	all = slices.Concat(lines[:len(lines)-len(recent)], recent, news)
	return all, len(news) == 0 || !news[0].Gap
}
