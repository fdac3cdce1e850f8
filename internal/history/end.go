package history

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/internal/record"
	"github.com/soloist-go/soloist/store"
)

// An end is the end of a job's logs, as it was read.
type end struct {
	prefix string       // of the names of the logs, before their numbers
	full   int64        // from this size on a log is not written any more
	number int          // of the log to be written
	size   int64        // of it
	torn   bool         // it ends in the middle of a line
	token  int64        // the largest there
	since  time.Time    // of the first outcome that was read; zero: all were
	ticks  bool         // the end has outcomes that are not of a backfill
	known  map[key]bool // the last outcomes, at least those that the record has
	parts  []extent     // all logs, the oldest first
}

// An extent is one log of a job.
type extent struct {
	name   string
	number int
	size   int64
}

// enough is how many outcomes an end has to know: a record has up to twenty.
const enough = 40

// list returns the logs of a job whose parts have such a prefix before their number.
func list(ctx context.Context, s store.Appender, entry, prefix string) (all []extent, err error) {
	err = s.Logs(ctx, entry, func(name string, size int64) bool {
		text, ok := strings.CutPrefix(path.Base(name), prefix)
		if number, err := strconv.Atoi(text); ok && err == nil {
			all = append(all, extent{name, number, size})
		}
		return true
	})
	return all, err
}

// endOf returns the end of logs that were not read.
func endOf(parts []extent, prefix string, full int64) *end {
	e := &end{prefix: prefix, full: full, number: 1, parts: parts}
	if n := len(parts); n > 0 {
		e.number, e.size = parts[n-1].number, parts[n-1].size
	}
	e.turn()
	return e
}

// turn goes on to a new log if the last one is full.
func (e *end) turn() {
	if e.size >= e.full {
		e.number, e.size, e.torn = e.number+1, 0, false
	}
}

// look reads the end of a job's logs.
func look(ctx context.Context, s store.Appender, entry string) (*end, error) {
	parts, err := list(ctx, s, entry, "")
	if err != nil {
		return nil, err
	}
	e := endOf(parts, "", full)
	e.known = map[key]bool{}
	for i := len(parts) - 1; i >= 0 && len(e.known) < enough; i-- {
		p := parts[i]
		from := max(0, p.size-store.MaxAppend)
		b, err := s.ReadLog(ctx, p.name, from, int(p.size-from))
		if err != nil {
			return nil, err
		}
		if int64(len(b)) != p.size-from {
			return nil, fmt.Errorf("log %s has %d bytes from %d on, and %d were listed", p.name, len(b), from, p.size-from)
		}
		if e.number == p.number {
			e.torn = len(b) > 0 && b[len(b)-1] != '\n'
		}
		lines := decode(b)
		if e.learn(lines); len(lines) > 0 {
			e.since = lines[0].At()
		}
		if i == 0 && from == 0 {
			e.since = time.Time{}
		}
	}
	return e, nil
}

func (e *end) learn(lines []Line) {
	for i := range lines {
		e.known[keyOf(&lines[i].Outcome)] = true
		e.token = max(e.token, lines[i].Token)
		e.ticks = e.ticks || event.BackfillOf(lines[i].Request) == 0
	}
}

// missing returns the outcomes of a record that the log lacks, the oldest first. The log has the order of the record: what is older
// than an outcome that it has, it has had; what is newer than one that was read would have been read, too, however old its tick is.
// The oldest quarter of a record may be ticks alone, from before other outcomes that were dropped: that the log has one of those
// does not show that it has the others.
func (e *end) missing(rec *record.Record) (news []Line) {
	known, whole, ticks := false, false, 0
	first := len(rec.History) - 1 // the oldest that was read
	for first >= 0 && !e.known[keyOf(&rec.History[first])] {
		first--
	}
	for i, o := range rec.History {
		l := Line{Outcome: o}
		if o.Request == "" {
			ticks++
		}
		known = known || e.has(&o)
		whole = whole || known && (o.Request != "" || ticks > len(rec.History)/4)
		if !known && (i < first || !l.At().Before(e.since)) {
			news = append(news, l)
		}
	}
	slices.Reverse(news)
	if len(news) > 0 && !whole && e.written() && !e.precedes(news) {
		news[0].Gap = true
	}
	return news
}

// precedes reports whether the log has the claim before the first one of these outcomes. Those that were settled without a run
// have no token.
func (e *end) precedes(news []Line) bool {
	i := slices.IndexFunc(news, func(l Line) bool { return l.Token != 0 })
	return i < 0 || news[i].Token <= e.token+1
}

// has reports whether the log has an outcome of a record. If its end has outcomes of a backfill alone, it has those up to its
// largest token.
func (e *end) has(o *event.Outcome) bool {
	return e.known[keyOf(o)] || !e.ticks && o.Token != 0 && o.Token <= e.token
}

// complete returns the outcomes of a record that do not change any more. A stalled run may not have returned yet, so its end
// is not known: it waits, and so do the ticks that were skipped under it, since the log has the order of the record.
func complete(news []Line, rec *record.Record) []Line {
	i := slices.IndexFunc(news, func(l Line) bool { return rec.MayRun() && l.Token == rec.Token })
	if i < 0 {
		return news
	}
	return news[:i]
}

// with adds to the news of a record what it does not have, of the outcomes that this replica kept: outcomes that the record
// has dropped before they were logged, in their place, and the outcomes of a backfill, which it only counts.
func (e *end) with(kept, news []Line, rec *record.Record) []Line {
	var all, filled []Line
	for _, l := range kept {
		k := keyOf(&l.Outcome)
		is := func(o event.Outcome) bool { return keyOf(&o) == k }
		if i := slices.IndexFunc(news, func(l Line) bool { return is(l.Outcome) }); i >= 0 {
			news[i].Reason = longer(l.Reason, news[i].Reason)
			all, news = append(all, news[:i+1]...), news[i+1:]
		}
		switch {
		case e.known[k] || slices.ContainsFunc(rec.History, is):
		case event.BackfillOf(l.Request) != 0:
			filled = append(filled, l)
		case l.Token > e.token, l.Token == 0 && l.seen.After(e.since): // else another replica has logged it
			all = append(all, l)
		}
	}
	return slices.Concat(all, news, filled)
}

// written reports whether a log has anything. An empty one was created by an append that got
// no further: nothing was in it that could be lost.
func (e *end) written() bool {
	return slices.ContainsFunc(e.parts, func(p extent) bool { return p.size > 0 })
}

// forget forgets what neither the record has any more nor this replica has kept.
func (e *end) forget(rec *record.Record, kept []Line) {
	known := make(map[key]bool, len(rec.History))
	retain := func(o *event.Outcome) {
		if k := keyOf(o); e.known[k] {
			known[k] = true
		}
	}
	for i := range rec.History {
		retain(&rec.History[i])
	}
	for i := range kept {
		retain(&kept[i].Outcome)
	}
	e.known = known
}

// append appends lines to the log, and learns what they say. They are from one record, so they fit into one append.
func (e *end) append(ctx context.Context, s store.Appender, entry string, lines []Line) error {
	b, err := encode(lines)
	if err == nil {
		err = e.write(ctx, s, entry, b)
	}
	if err == nil {
		e.learn(lines)
	}
	return err
}

// write appends text to the log.
func (e *end) write(ctx context.Context, s store.Appender, entry string, b []byte) error {
	if e.torn && e.size > 0 {
		b = append([]byte("\n"), b...)
	}
	name := store.LogName(entry, e.prefix+part(e.number))
	if err := s.Append(ctx, name, e.size, b); err != nil {
		return err
	}
	if e.size += int64(len(b)); len(e.parts) == 0 || e.parts[len(e.parts)-1].name != name {
		e.parts = append(e.parts, extent{name: name, number: e.number})
	}
	e.parts[len(e.parts)-1].size, e.torn = e.size, false
	e.turn()
	return nil
}
