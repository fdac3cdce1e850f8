// Package logqueue keeps a log that blocks from keeping its writers.
package logqueue

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

const (
	maxLines   = 500             // that wait for a log that blocks
	LastLines  = 5 * time.Second // how long Run, RunDue, RunNow and a program wait for their lines
	logBlocked = 3 * time.Minute // with one line: Health tells of it
)

// A Queue writes what the scheduler or its program itself logs, in order and in a goroutine
// of its own. A Logger may block for as long as its output is not read, and must
// keep no lease, deadline or loop waiting. The goroutine ends with the last line.
type Queue struct {
	Root slog.Handler // tells how many lines were dropped

	mu      sync.Mutex
	lines   []logLine
	dropped int
	since   time.Time     // when the line was begun that is being written; zero: none is
	idle    chan struct{} // closed once no line is left
}

type logLine struct {
	handler slog.Handler
	record  slog.Record
}

// Logger returns l with its lines going through the queue.
func (q *Queue) Logger(l *slog.Logger) *slog.Logger {
	return slog.New(queued{l.Handler(), q.add})
}

// add hands a line over. It calls no handler and does not wait.
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

func (q *Queue) write() {
	for line, ok := q.next(); ok; line, ok = q.next() {
		_ = line.handler.Handle(context.Background(), line.record) // there is no other log to tell the error
	}
}

// next returns the next line to write, false if there is none.
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

// tellDropped adds a line about those that were dropped, at their place.
func (q *Queue) tellDropped() {
	if q.dropped == 0 {
		return
	}
	r := slog.NewRecord(time.Now(), slog.LevelWarn, "lines were dropped: the log took none, or too few", 0)
	r.Add("lines", q.dropped)
	q.lines, q.dropped = append(q.lines, logLine{q.Root, r}), 0
}

// Wait returns once all lines are written, or one has kept the log busy for
// patience: so a log that blocks delays its callers once.
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

// Blocked returns why lines wait, nil if they do not, or not for long.
func (q *Queue) Blocked() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.since.IsZero() || time.Since(q.since) < logBlocked {
		return nil
	}
	return fmt.Errorf("the log has taken no line since %s: see what reads it, or restart the process", q.since.UTC().Format(time.RFC3339))
}

// queued is a handler whose lines go through a queue.
type queued struct {
	slog.Handler
	add func(slog.Handler, slog.Record)
}

// Handle implements [slog.Handler].
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
