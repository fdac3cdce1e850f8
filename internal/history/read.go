package history

import (
	"context"
	"slices"
	"time"

	"github.com/soloist-go/soloist/store"
)

// firstRead is how much of the end of a log is read first: about a day of a job that runs
// each twenty seconds.
const firstRead = 1 << 20

// Read returns the outcomes of a job since an instant, the oldest first. To what the logs
// have it adds what only the record has yet. Zero: all that are there.
func Read(ctx context.Context, s store.Appender, entry string, since time.Time, rec *store.Record) ([]Line, error) {
	parts, err := list(ctx, s, entry)
	if err != nil {
		return nil, err
	}
	var all []Line
	for _, part := range slices.Backward(parts) {
		lines, whole, err := back(ctx, s, part, since)
		if err != nil {
			return nil, err
		}
		all = append(lines, all...)
		if !whole {
			break
		}
	}
	all = append(all, unlogged(all, rec)...)
	return slices.DeleteFunc(all, func(l Line) bool { return l.At().Before(since) }), nil
}

// back reads a log from its end until a line from before an instant, and returns whether
// it has read the whole log without one.
func back(ctx context.Context, s store.Appender, p extent, since time.Time) (lines []Line, whole bool, err error) {
	for n := int64(firstRead); ; n *= 4 {
		from := max(0, p.size-n)
		b, err := s.ReadLog(ctx, p.name, from, int(p.size-from))
		if err != nil {
			return nil, false, err
		}
		lines = decode(b)
		before := len(lines) > 0 && lines[0].At().Before(since)
		if before || from == 0 {
			return lines, !before, nil
		}
	}
}

// unlogged returns the outcomes of a record that lines lack.
func unlogged(lines []Line, rec *store.Record) []Line {
	if rec == nil {
		return nil
	}
	e := &end{known: map[key]bool{}}
	if e.learn(lines); len(lines) > 0 {
		e.parts = []extent{{}}
	}
	news := e.missing(rec)
	if len(rec.History) > 0 && rec.MayRun() { // a stalled run has its outcome before its end is known
		if last := rec.History[0]; last.Token == rec.Token && !e.known[keyOf(&last)] {
			news = append(news, Line{Outcome: last})
		}
	}
	return news
}
