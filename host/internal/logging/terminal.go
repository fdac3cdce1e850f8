package logging

import (
	"context"
	"io"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/soloist-go/soloist/host/internal/format"
	"github.com/soloist-go/soloist/internal/logqueue"
)

// The messages of the core at the start and at the end of each try of a run.
const (
	runStarted = "run started"
	runEnded   = "run ended"
)

// A terminal is a log for people: a short line for each run and for each event,
// in colour. It is not a library's because those pass escape sequences in a
// value on to the terminal, and a value may be a text of a service.
type terminal struct {
	out    *output
	level  slog.Level
	colour bool
	group  string      // before the keys of what follows, with a dot
	with   []slog.Attr // with their groups in the keys
}

// An output writes one line after the other.
type output struct {
	mu sync.Mutex
	io.Writer
}

func newTerminal(w io.Writer, level slog.Level, colour bool) *terminal {
	return &terminal{out: &output{Writer: w}, level: level, colour: colour}
}

func (t *terminal) Enabled(_ context.Context, level slog.Level) bool { return level >= t.level }

func (t *terminal) WithGroup(name string) slog.Handler {
	if name == "" {
		return t
	}
	next := *t
	next.group += name + "."
	return &next
}

func (t *terminal) WithAttrs(attrs []slog.Attr) slog.Handler {
	next := *t
	next.with = slices.Clone(t.with)
	for _, a := range attrs {
		next.with = append(next.with, flat(t.group, a)...)
	}
	return &next
}

// flat resolves an attribute, and takes a group apart.
func flat(prefix string, a slog.Attr) (all []slog.Attr) {
	a.Value = a.Value.Resolve()
	if a.Value.Kind() != slog.KindGroup {
		if a.Equal(slog.Attr{}) {
			return nil
		}
		a.Key = prefix + a.Key
		return []slog.Attr{a}
	}
	if a.Key != "" {
		prefix += a.Key + "."
	}
	for _, inner := range a.Value.Group() {
		all = append(all, flat(prefix, inner)...)
	}
	return all
}

// Handle writes one line, and below it what has lines of its own.
func (t *terminal) Handle(_ context.Context, r slog.Record) error {
	r, dumps := withoutDumps(r)
	var own []slog.Attr
	r.Attrs(func(a slog.Attr) bool {
		if _, named := a.Value.Any().(logqueue.EventName); !named { // the text says it
			own = append(own, flat(t.group, a)...)
		}
		return true
	})
	if r.Message == runStarted && has(own, "try") && t.level > slog.LevelDebug {
		return nil // the line about the end says how long it took
	}
	text := t.paint(format.Faint, r.Time.Format(time.TimeOnly)) + " " + t.levelWord(r.Level) + " " + t.words(r, own) + "\n"
	t.out.mu.Lock()
	defer t.out.mu.Unlock()
	_, err := io.WriteString(t.out, text+dumps)
	return err
}

// words are the job, the message, and the attributes that say more than which
// run it is about.
func (t *terminal) words(r slog.Record, own []slog.Attr) string {
	var b strings.Builder
	var rest []slog.Attr
	for _, a := range t.with {
		switch {
		case a.Key == "job":
			b.WriteString(t.paint(format.Bold, format.Line(a.Value.String())) + " ")
		case slices.Contains([]string{"replica", "tick", "token", "request"}, a.Key):
		case a.Key == "attempt" && a.Value.String() == "1": // as nearly always
		default:
			rest = append(rest, a)
		}
	}
	if r.Message == runEnded && has(own, "outcome") {
		text, left := t.ending(own)
		own = left
		b.WriteString(text)
	} else {
		b.WriteString(format.Line(r.Message))
	}
	for _, a := range append(rest, own...) {
		b.WriteString(" " + t.paint(format.Faint, format.Line(a.Key)+"=") + t.value(a, r.Level >= slog.LevelWarn))
	}
	return b.String()
}

// has reports whether there is an attribute with this key: a job may log the
// messages of the core, without their attributes.
func has(attrs []slog.Attr, key string) bool {
	return slices.ContainsFunc(attrs, func(a slog.Attr) bool { return a.Key == key })
}

// ending is the outcome of a run and how long it took. It returns the other
// attributes.
func (t *terminal) ending(attrs []slog.Attr) (text string, rest []slog.Attr) {
	for _, a := range attrs {
		switch a.Key {
		case "outcome":
			outcome := format.Line(a.Value.String())
			text = t.paint(format.OutcomeTone(outcome), outcome) + text
		case "took":
			text += " in " + plainValue(a.Value)
		case "took_ms": // for programs
		default:
			rest = append(rest, a)
		}
	}
	return text, rest
}

// value quotes a text with blanks, so that it is seen where it ends. In a warning the reason of it is red.
func (t *terminal) value(a slog.Attr, warns bool) string {
	text := plainValue(a.Value)
	if text == "" || strings.ContainsAny(text, " \"=") || strings.IndexFunc(text, format.Hidden) >= 0 {
		text = strconv.Quote(text)
	}
	if warns && (a.Key == "error" || a.Key == "reason" || a.Key == "cause") {
		return t.paint(format.Red, text)
	}
	return text
}

func plainValue(v slog.Value) string {
	switch v.Kind() {
	case slog.KindDuration:
		return format.Lasted(v.Duration())
	case slog.KindTime:
		return format.Stamp(v.Time())
	}
	return strings.Join(strings.Fields(v.String()), " ")
}

func (t *terminal) levelWord(level slog.Level) string {
	switch {
	case level >= slog.LevelError:
		return t.paint(format.Red, "ERR")
	case level >= slog.LevelWarn:
		return t.paint(format.Yellow, "WRN")
	case level >= slog.LevelInfo:
		return t.paint(format.Green, "INF")
	}
	return t.paint(format.Faint, "DBG")
}

func (t *terminal) paint(as format.Tone, text string) string { return format.Paint(t.colour, as, text) }
