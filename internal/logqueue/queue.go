// Package logqueue keeps a log that blocks from delaying those who write to it. A full
// pipe or a slow terminal blocks a log for minutes; a replica that waited for it could
// not renew its leases.
package logqueue

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

const (
	maxLines   = 500             // lines that wait for a log that blocks; the rest is dropped, since memory is bounded
	LastLines  = 5 * time.Second // how long Run, RunDue, RunNow and a program wait for their lines before they return
	logBlocked = 3 * time.Minute // a line that takes this long is trouble, which Health shows
)

// A Queue writes what the scheduler, or its program, itself logs, in order, in a goroutine
// of its own. The goroutine starts with a line and ends when none is left, so an idle
// scheduler has none, and nothing has to close the queue.
type Queue struct {
	Root slog.Handler // writes how many lines were dropped

	mu      sync.Mutex
	lines   []logLine
	dropped int
	since   time.Time     // when the line that is being written was begun; zero: none is being written
	idle    chan struct{} // closed when no line is left; a new one for each goroutine
}

// A logLine is one line with the handler that writes it: loggers with different
// attributes share the queue, and with it the order.
type logLine struct {
	handler slog.Handler
	record  slog.Record
}

// Logger returns l with its lines going through the queue. Levels and attributes are those
// of l.
func (q *Queue) Logger(l *slog.Logger) *slog.Logger {
	return slog.New(queued{l.Handler(), q.add})
}

// add hands a line over. It calls no handler and never waits for one.
func (q *Queue) add(h slog.Handler, r slog.Record) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.lines) >= maxLines {
		q.dropped++
		return
	}
	q.tellDropped()
	q.lines = append(q.lines, logLine{h, r})
	if q.since.IsZero() {
		q.since, q.idle = time.Now(), make(chan struct{})
		go q.write()
	}
}

// write is the goroutine: it writes lines until none is left. It must not hold mu while a
// handler writes, since add would then wait for the handler.
func (q *Queue) write() {
	for line, ok := q.next(); ok; line, ok = q.next() {
		_ = line.handler.Handle(context.Background(), line.record) // there is no other log for the error
	}
}

// next returns the next line to write. If there is none, it returns false and the goroutine
// must end: the next line starts another one.
func (q *Queue) next() (line logLine, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.lines) == 0 {
		q.tellDropped()
	}
	if len(q.lines) == 0 {
		q.since = time.Time{}
		close(q.idle)
		return logLine{}, false
	}
	line, q.lines, q.since = q.lines[0], q.lines[1:], time.Now()
	return line, true
}

// tellDropped adds a line about dropped lines where they are missing. The caller holds mu.
func (q *Queue) tellDropped() {
	if q.dropped == 0 {
		return
	}
	r := slog.NewRecord(time.Now(), slog.LevelWarn, "lines were dropped: the log blocks or is too slow", 0)
	r.Add("lines", q.dropped)
	q.lines, q.dropped = append(q.lines, logLine{q.Root, r}), 0
}

// Wait returns when all lines are written, or when one line has kept the log busy for
// patience. The time counts from the beginning of that line, so that a log that blocks
// delays the first caller and not every caller anew.
func (q *Queue) Wait(patience time.Duration) {
	q.mu.Lock()
	idle, since := q.idle, q.since
	q.mu.Unlock()
	if since.IsZero() {
		return
	}
	t := time.NewTimer(patience - time.Since(since))
	defer t.Stop()
	select {
	case <-idle:
	case <-t.C:
	}
}

// Blocked returns why lines wait. It returns nil if none waits, or not for long yet.
func (q *Queue) Blocked() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.since.IsZero() || time.Since(q.since) < logBlocked {
		return nil
	}
	return fmt.Errorf("the log has accepted no line since %s: see what reads it, or restart the process", q.since.UTC().Format(time.RFC3339))
}

// A queued is a handler whose lines go through a queue. What slog asks of it before a line,
// such as the level, the handler inside answers at once.
type queued struct {
	slog.Handler
	add func(slog.Handler, slog.Record)
}

// Handle implements [slog.Handler]. It copies the record, which it must not keep otherwise.
func (h queued) Handle(_ context.Context, r slog.Record) error {
	h.add(h.Handler, r.Clone())
	return nil
}

// WithAttrs implements [slog.Handler].
func (h queued) WithAttrs(attrs []slog.Attr) slog.Handler {
	return queued{h.Handler.WithAttrs(attrs), h.add}
}

// WithGroup implements [slog.Handler].
func (h queued) WithGroup(name string) slog.Handler {
	return queued{h.Handler.WithGroup(name), h.add}
}
