// Package format writes what people and programs read: times, outcomes, errors,
// tables and JSON. No text that it returns can move a terminal's cursor.
package format

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// Hidden reports whether c is a control or format character. Such characters
// move a terminal's cursor, or change the order in which a reader sees the rest.
func Hidden(c rune) bool { return unicode.In(c, unicode.Cc, unicode.Cf) }

// Escape shows control and format characters as a Go literal does, \x1b. Any
// text of a record, a job or a service goes through it on its way to a terminal
// or the page.
func Escape(text string) string {
	if strings.IndexFunc(text, Hidden) < 0 {
		return text
	}
	var b strings.Builder
	for _, c := range text {
		if Hidden(c) {
			literal := strconv.QuoteRuneToASCII(c)
			b.WriteString(literal[1 : len(literal)-1])
		} else {
			b.WriteRune(c)
		}
	}
	return b.String()
}

// Line makes one escaped line of any text. A run of white space becomes one
// blank.
func Line(text string) string { return Escape(strings.Join(strings.Fields(text), " ")) }

// Brief is a line that a table can take: as much as a record keeps of a reason.
func Brief(text string) string {
	const most = 100
	if r := []rune(Line(text)); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return Line(text)
}

// Join lists what is not empty, "-" if all is.
func Join(all ...string) string {
	var some []string
	for _, s := range all {
		if s != "" {
			some = append(some, s)
		}
	}
	if some == nil {
		return "-"
	}
	return strings.Join(some, ", ")
}

// Plural counts things, no text for none.
func Plural(n int, thing string) string {
	switch n {
	case 0:
		return ""
	case 1:
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// Names lists the first few names, and how many more there are.
func Names(names []string) string {
	const most = 5
	var all []string
	for i, name := range names {
		if i == most {
			all = append(all, Plural(len(names)-most, "other"))
			break
		}
		all = append(all, Brief(name))
	}
	return strings.Join(all, ", ")
}
