package ical

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
)

const maxEvents = 10_000

// An event has the values of its properties by their names in capitals: a name may be there several times.
type event map[string][]string

// value is empty for a property that is not there.
func (e event) value(name string) string {
	if all := e[name]; len(all) > 0 {
		return all[0]
	}
	return ""
}

// A scanner finds the events of a file. It reads each line once, and keeps one event.
type scanner struct {
	open   []string // the components that are open
	event  event    // nil: none is open
	events int
	ended  bool // the calendar is
	found  func(n int, e event) error
}

// scan calls found for each event of a text.
func scan(text []byte, found func(n int, e event) error) error {
	s := &scanner{found: found}
	var line []byte // a property may go on: in lines that begin with a blank
	for raw := range bytes.Lines(text) {
		raw = bytes.TrimRight(raw, "\r\n")
		if len(raw) > 0 && (raw[0] == ' ' || raw[0] == '\t') {
			line = append(line, raw[1:]...)
			continue
		}
		if err := s.line(string(line)); err != nil {
			return err
		}
		line = append(line[:0], raw...)
	}
	if err := s.line(string(line)); err != nil {
		return err
	}
	switch {
	case !s.ended:
		return errors.New("it does not end with END:VCALENDAR")
	case s.events == 0:
		return errors.New("it has no events")
	}
	return nil
}

// line takes a whole property.
func (s *scanner) line(text string) error {
	if text == "" {
		return nil
	}
	name, value, ok := property(text)
	switch {
	case !ok:
		return fmt.Errorf("it has the line %.60q, want a property such as DTSTART:20260501", text)
	case s.ended:
		return fmt.Errorf("it goes on after END:VCALENDAR, with %.60q", text)
	case name == "BEGIN":
		return s.begin(strings.ToUpper(value))
	case name == "END":
		return s.end(strings.ToUpper(value))
	case len(s.open) == 0:
		return errors.New("it does not begin with BEGIN:VCALENDAR")
	case len(s.open) == 2 && s.open[1] == "VEVENT":
		s.event[name] = append(s.event[name], value)
	}
	return nil
}

func (s *scanner) begin(component string) error {
	switch {
	case len(s.open) == 0 && component != "VCALENDAR":
		return errors.New("it does not begin with BEGIN:VCALENDAR")
	case len(s.open) != 1 || component == "VTIMEZONE":
	case component != "VEVENT":
		return fmt.Errorf("it has a %.40q, want events alone", component)
	default:
		if s.events++; s.events > maxEvents {
			return fmt.Errorf("it has more than %d events", maxEvents)
		}
		s.event = event{}
	}
	s.open = append(s.open, component)
	return nil
}

func (s *scanner) end(component string) error {
	last := len(s.open) - 1
	if last < 0 || s.open[last] != component {
		return fmt.Errorf("it has END:%.40s, and that has not begun, or something within it has not ended", component)
	}
	s.open = s.open[:last]
	s.ended = last == 0
	if last != 1 || component != "VEVENT" {
		return nil
	}
	return s.found(s.events, s.event)
}

// property splits a line at the first colon that is not within quotes, and leaves out the parameters.
func property(text string) (name, value string, ok bool) {
	quoted := false
	for i, c := range []byte(text) {
		switch {
		case c == '"':
			quoted = !quoted
		case c == ':' && !quoted:
			name, _, _ = strings.Cut(text[:i], ";")
			return strings.ToUpper(name), strings.TrimSpace(text[i+1:]), name != ""
		}
	}
	return "", "", false
}
