package main

import (
	"bytes"
	"context"
	"errors"
	"strings"
)

// A reader notes from the output of go test what tells a failure from a
// time-out. It keeps nothing else: a mistake can make a test print without end.
type reader struct {
	line     []byte // that has not ended yet
	failed   bool   // a test
	timedOut bool
	running  []string // tests, when the time was over
}

func (r *reader) Write(p []byte) (int, error) {
	for line := range bytes.Lines(p) {
		if len(r.line) < 1<<10 {
			r.line = append(r.line, line...)
		}
		if bytes.HasSuffix(line, []byte("\n")) {
			r.note(string(r.line))
			r.line = r.line[:0]
		}
	}
	return len(p), nil
}

func (r *reader) note(line string) {
	switch {
	case strings.Contains(line, "--- FAIL"):
		r.failed = true
	case strings.Contains(line, "panic: test timed out after"):
		r.timedOut = true
	case r.timedOut && strings.HasPrefix(line, "\t\tTest"):
		r.running = append(r.running, strings.TrimSpace(line))
	}
}

// judge returns the verdict on a run that ended with err. A run in which a test
// had failed before the time was over is a catch.
func (r *reader) judge(err error) (v verdict, detail string) {
	if r.failed || !r.timedOut && !errors.Is(err, context.DeadlineExceeded) {
		return caught, ""
	}
	if len(r.running) == 0 {
		return endless, "the tests that were running are unknown"
	}
	return endless, "running: " + strings.Join(r.running, ", ")
}
