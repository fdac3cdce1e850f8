package host

import (
	"io"
	"log/slog"
	"os"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/internal/logqueue"
)

// setLog hands out the logger. What the program itself logs while it serves goes
// through a queue, as what the scheduler logs does: a log that blocks must keep
// neither the start nor the end nor an answer waiting.
func (a *app) setLog(log *slog.Logger) {
	a.log, a.sched.Logger = log, log
	if a.serves {
		a.lines.Root = log.Handler()
		a.log = a.lines.Logger(log)
	}
	a.refused = newRefusals(a.log)
}

// logBlocked returns why lines of the scheduler or of the program itself wait
// for the log, nil if they do not, or not for long.
func (a *app) logBlocked(h soloist.Health) error {
	if h.Log != nil {
		return h.Log
	}
	return a.lines.Blocked()
}

// flush waits for the lines of the program itself, but not for long.
func (a *app) flush() { a.lines.Wait(logqueue.LastLines) }

// logger logs to stdout where the program serves, since the Functions host
// shows all of stderr as errors. Other commands have an answer there, so they
// log to stderr; those that only look around, warnings only.
func (a *app) logger(c *command) *slog.Logger {
	w, level := a.Stdout, a.LogLevel
	if !c.serves {
		w = a.Stderr
	}
	if !c.serves && !c.runs && os.Getenv("SOLOIST_LOG_LEVEL") == "" {
		level = slog.LevelWarn
	}
	log := slog.New(handler(w, a.LogFormat, level, a.onTerminal(w)))
	if a.process {
		slog.SetDefault(log) // jobs that use it end up where they should
	}
	return log
}

func handler(w io.Writer, format logFormat, level slog.Level, terminal bool) slog.Handler {
	options := &slog.HandlerOptions{Level: level, ReplaceAttr: plainDuration}
	switch {
	case format != "json" && terminal:
		return newTerminal(w, level, wantsColour())
	case format == "text":
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

func (p *Program) onTerminal(w io.Writer) bool { return p.terminal || isTerminal(w) }

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
