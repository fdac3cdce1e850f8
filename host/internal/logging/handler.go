// Package logging makes the handlers of a program's log: JSON, text, and short
// lines on a terminal.
package logging

import (
	"io"
	"log/slog"
	"os"

	"github.com/soloist-go/soloist/host/internal/format"
)

// A Format is text or json; it is empty where it depends on the terminal.
type Format string

// New writes a log to w, in lines for people where that is a terminal.
func New(w io.Writer, form Format, level slog.Level, terminal bool) slog.Handler {
	options := &slog.HandlerOptions{Level: level, ReplaceAttr: plainDuration}
	switch {
	case form != "json" && terminal:
		return newTerminal(w, level, format.WantsColour())
	case form == "text":
		return dumper{slog.NewTextHandler(w, options), w}
	}
	return slog.NewJSONHandler(w, options)
}

// plainDuration writes a duration as in the text format, "1.5s": a JSON log
// would show a number of nanoseconds.
func plainDuration(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		a.Value = slog.StringValue(a.Value.Duration().String())
	}
	return a
}

// IsTerminal reports whether w is a terminal.
func IsTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
