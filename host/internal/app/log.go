package app

import (
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/url"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host/internal/format"
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
func newLog(c Config, s *Settings, secrets []string) *slog.Logger {
	w, level := c.Console.Stdout, s.LogLevel
	if !c.Serves {
		w = c.Console.Stderr
	}
	if !c.Serves && !c.Runs && os.Getenv("SOLOIST_LOG_LEVEL") == "" {
		level = slog.LevelWarn
	}
	return slog.New(logging.New(logging.Masked(w, secrets), s.LogFormat, level, c.Console.OnTerminal(w)))
}

// A Console is where a program prints its answers and its mistakes.
type Console struct {
	Name     string    // of the program
	Stdout   io.Writer // for answers, and the logs of serve
	Stderr   io.Writer // for mistakes, and the logs of other commands
	Terminal bool      // both are one, whatever they are
}

// OnTerminal reports whether w is a terminal.
func (c Console) OnTerminal(w io.Writer) bool { return c.Terminal || logging.IsTerminal(w) }

// Width is how many columns an answer may have.
func (c Console) Width() int { return logging.Width(c.Stdout) }

// Tell writes a line to Stderr that begins with the program's name. Arguments may be text of any kind.
func (c Console) Tell(layout string, args ...any) {
	fmt.Fprintf(c.Stderr, "%s: %s\n", c.Name, format.Hanging(fmt.Sprintf(layout, args...)))
}

// Complain lists all mistakes, a line each.
func (c Console) Complain(err error) {
	all := format.Lines(err)
	c.Tell("%s", format.Plural(len(all), "mistake"))
	for _, text := range all {
		fmt.Fprintf(c.Stderr, "  %s\n", format.Hanging(text))
	}
}

// JSON answers in JSON and reports whether that could be written.
func (c Console) JSON(body any) bool {
	err := format.WriteJSON(c.Stdout, body, "  ")
	if err != nil {
		c.Tell("the answer cannot be written as JSON: %s", format.Error(err))
	}
	return err == nil
}

// Secrets are the secret values of the settings, the longest first.
func (s *Settings) Secrets(pings map[string]string) []string {
	all := map[string]bool{}
	add := func(value string) {
		if len(value) >= logging.ShortestSecret {
			all[value] = true
		}
	}
	for f, v := range reflect.ValueOf(*s).Fields() {
		if f.Tag.Get("secret") != "" && f.Name != "Storage" {
			add(v.String())
		}
	}
	for _, url := range pings {
		add(url)
	}
	for _, name := range []string{"AzureWebJobsStorage__clientSecret", "AZURE_CLIENT_SECRET", "AZURE_CLIENT_CERTIFICATE_PASSWORD", "PGPASSWORD"} {
		add(os.Getenv(name))
	}
	if s.otherScheme() != "" { // what is before its last @, as it is and decoded, also in a URL with a mistake
		login := s.Storage[:max(strings.LastIndex(s.Storage, "@"), 0)]
		_, password, _ := strings.Cut(strings.TrimPrefix(login, s.otherScheme()+"://"), ":")
		add(password)
		if decoded, err := url.PathUnescape(password); err == nil {
			add(decoded)
		}
	}
	for _, place := range []string{s.Storage, os.Getenv("AzureWebJobsStorage"), os.Getenv("AzureWebJobsStorage__blobServiceUri"), os.Getenv("AzureWebJobsStorage__queueServiceUri")} {
		for part := range strings.FieldsFuncSeq(place, func(c rune) bool { return c == ';' || c == '?' || c == '&' }) {
			switch name, value, _ := strings.Cut(part, "="); strings.ToLower(name) {
			case "accountkey", "sig", "password":
				add(value)
			case "sharedaccesssignature":
				if _, sig, ok := strings.Cut(value, "sig="); ok {
					add(sig)
				}
			}
		}
	}
	for _, signal := range []string{"", "TRACES_", "METRICS_"} {
		for pair := range strings.SplitSeq(os.Getenv("OTEL_EXPORTER_OTLP_"+signal+"HEADERS"), ",") {
			_, value, _ := strings.Cut(pair, "=")
			add(strings.TrimSpace(value))
		}
	}
	return slices.SortedFunc(maps.Keys(all), func(a, b string) int { return len(b) - len(a) })
}
