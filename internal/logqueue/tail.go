package logqueue

import (
	"context"
	"log/slog"
	"strings"
)

// Tail returns a handler that also hands each line to take, as text without what h has added to it so far.
func Tail(h slog.Handler, take func(line string)) slog.Handler {
	return tail{h, slog.NewTextHandler(taken(take), &slog.HandlerOptions{Level: slog.Level(-1 << 10), ReplaceAttr: inUTC})}
}

// A tail is a handler beside which another one writes the same lines as text.
type tail struct {
	slog.Handler
	text slog.Handler
}

// Handle implements [slog.Handler].
func (t tail) Handle(ctx context.Context, r slog.Record) error {
	_ = t.text.Handle(ctx, r) // it cannot fail: taken does not
	return t.Handler.Handle(ctx, r)
}

// WithAttrs implements [slog.Handler].
func (t tail) WithAttrs(attrs []slog.Attr) slog.Handler {
	return tail{t.Handler.WithAttrs(attrs), t.text.WithAttrs(attrs)}
}

// WithGroup implements [slog.Handler].
func (t tail) WithGroup(name string) slog.Handler {
	return tail{t.Handler.WithGroup(name), t.text.WithGroup(name)}
}

// inUTC has the time of a line in UTC, as all else that is kept of a run.
func inUTC(groups []string, a slog.Attr) slog.Attr {
	if len(groups) == 0 && a.Key == slog.TimeKey && a.Value.Kind() == slog.KindTime {
		a.Value = slog.TimeValue(a.Value.Time().UTC())
	}
	return a
}

// A taken is a writer that gets one line at a time.
type taken func(line string)

func (f taken) Write(b []byte) (int, error) {
	f(strings.TrimSuffix(string(b), "\n"))
	return len(b), nil
}
