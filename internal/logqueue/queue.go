// Package logqueue keeps a log that blocks from delaying those who write to it. A full
// pipe or a slow terminal blocks a log for minutes; a replica that waited for it could
// not renew its leases.
package logqueue

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/soloist-go/soloist/internal/queue"
)

// An EventName is the value of the attribute event of a line that is about an event of the scheduler: a log for people
// leaves it out, and not what a job logs under the same key.
type EventName string

// LastLines is how long Run, RunDue, RunNow and a program wait for their lines before they return.
const LastLines = queue.LastItems

const maxLines = 500 // lines that wait for a log that blocks

// A Queue writes what the scheduler, or its program, itself logs, in order, in a goroutine
// of its own; see [queue.Queue].
type Queue struct {
	Root slog.Handler // writes how many lines were dropped

	once  sync.Once
	lines queue.Queue[logLine]
}

// A logLine is one line with the handler that writes it: loggers with different
// attributes share the queue, and with it the order.
type logLine struct {
	handler slog.Handler
	with    []func(slog.Handler) slog.Handler // what is added to handler
	record  slog.Record
}

// Logger returns l with its lines going through the queue. Levels and attributes are those
// of l.
func (q *Queue) Logger(l *slog.Logger) *slog.Logger {
	return slog.New(queued{Handler: l.Handler(), add: q.add})
}

// add puts a line into the queue.
func (q *Queue) add(l logLine) { q.open().Add(l) }

// open returns the queue of lines. It is made by the first call, so that a Queue can be a
// struct literal.
func (q *Queue) open() *queue.Queue[logLine] {
	q.once.Do(func() { q.lines.Take, q.lines.Most, q.lines.Lost = write, maxLines, q.lost })
	return &q.lines
}

// write has the handler of a line write it.
func write(l logLine) {
	h := l.handler
	for _, with := range l.with {
		h = with(h)
	}
	_ = h.Handle(context.Background(), l.record) // there is no other log for the error
}

// lost returns the line that says how many were dropped.
func (q *Queue) lost(n int) logLine {
	r := slog.NewRecord(time.Now(), slog.LevelWarn, "lines were dropped: the log blocks or is too slow", 0)
	r.Add("lines", n)
	return logLine{handler: q.Root, record: r}
}

// Wait returns when all lines are written, or when one line has kept the log busy for
// patience.
func (q *Queue) Wait(patience time.Duration) { q.open().Wait(patience) }

// Blocked returns why lines wait. It returns nil if none waits, or not for long yet.
func (q *Queue) Blocked() error {
	since := q.open().Blocked()
	if since.IsZero() {
		return nil
	}
	return fmt.Errorf("the log has accepted no line since %s: see what reads it, or restart the process", since.UTC().Format(time.RFC3339))
}

// A queued is a handler whose lines go through a queue. The handler inside answers at once
// only whether a level is enabled. Attributes and groups that are added later are added when
// a line is written: the handler may lock for that, and its lock may be that of a line that
// blocks.
type queued struct {
	slog.Handler
	with []func(slog.Handler) slog.Handler
	add  func(logLine)
}

// Handle implements [slog.Handler]. It calls no handler and never waits for one. It copies
// the record, which it must not keep otherwise.
func (h queued) Handle(_ context.Context, r slog.Record) error {
	h.add(logLine{h.Handler, h.with, r.Clone()})
	return nil
}

// WithAttrs implements [slog.Handler].
func (h queued) WithAttrs(attrs []slog.Attr) slog.Handler {
	return h.and(func(inside slog.Handler) slog.Handler { return inside.WithAttrs(attrs) })
}

// WithGroup implements [slog.Handler].
func (h queued) WithGroup(name string) slog.Handler {
	return h.and(func(inside slog.Handler) slog.Handler { return inside.WithGroup(name) })
}

func (h queued) and(with func(slog.Handler) slog.Handler) queued {
	h.with = append(slices.Clip(h.with), with)
	return h
}
