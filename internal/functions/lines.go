package functions

import (
	"strings"
	"sync"
)

// A Level is how the host shows a line.
type Level string

// The levels of what a handler prints, and of what it returns as Logs.
const (
	Info    Level = "info"
	Warning Level = "warning"
	Error   Level = "error"
	System  Level = "system" // not shown to users
)

// A Line is one line of output, or one of an answer's Logs.
type Line struct {
	Source string // "stdout", "stderr" or the name of a function
	Text   string
}

func stdoutLevel(text string) Level {
	if strings.HasPrefix(text, systemPrefix) {
		return System
	}
	return Info
}

func stderrLevel(text string) Level {
	switch {
	case strings.HasPrefix(text, systemPrefix):
		return System
	case strings.Contains(strings.ToLower(text), "warn"):
		return Warning
	}
	return Error
}

const systemPrefix = "LanguageWorkerConsoleLog"

// lastLines are the three that an exit is explained with.
type lastLines struct {
	mu    sync.Mutex
	lines []string
}

func (l *lastLines) add(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, line)
	l.lines = l.lines[max(0, len(l.lines)-3):]
}

func (l *lastLines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.lines, " | ")
}
