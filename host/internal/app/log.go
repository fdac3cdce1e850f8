package app

import (
	"log/slog"
	"os"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host/internal/logging"
	"github.com/soloist-go/soloist/internal/logqueue"
)

// SetLog hands out the logger. What the program itself logs while it serves goes
// through a queue, as what the scheduler logs does: a log that blocks must keep
// neither the start nor the end nor an answer waiting.
func (a *App) SetLog(log *slog.Logger) {
	a.Log, a.Scheduler.Logger = log, log
	if a.Serves {
		a.lines.Root = log.Handler()
		a.Log = a.lines.Logger(log)
	}
}

// LogBlocked returns why lines of the scheduler or of the program itself wait
// for the log, nil if they do not, or not for long.
func (a *App) LogBlocked(h soloist.Health) error {
	if h.Log != nil {
		return h.Log
	}
	return a.lines.Blocked()
}

// Flush waits for the lines of the program itself, but not for long.
func (a *App) Flush() { a.lines.Wait(logqueue.LastLines) }

// newLog logs to stdout where the program serves, since the Functions host
// shows all of stderr as errors. Other commands have an answer there, so they
// log to stderr; those that only look around, warnings only.
func newLog(c Config, s *Settings) *slog.Logger {
	w, level := c.Console.Stdout, s.LogLevel
	if !c.Serves {
		w = c.Console.Stderr
	}
	if !c.Serves && !c.Runs && os.Getenv("SOLOIST_LOG_LEVEL") == "" {
		level = slog.LevelWarn
	}
	return slog.New(logging.New(w, s.LogFormat, level, c.Console.OnTerminal(w)))
}
