// Package format writes what people and programs read: times, outcomes, errors,
// tables and JSON. No text that it returns can move a terminal's cursor.
package format

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"
	"unicode"
	"unicode/utf16"
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

// Error is an error in one line, empty for none.
func Error(err error) string {
	if err == nil {
		return ""
	}
	return Line(err.Error())
}

// Brief is a line that a table can take: less than a record keeps of a reason.
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

// Block escapes the lines of a text, and sets them off by an indent. Tabs are four blanks.
func Block(text, indent string) string {
	var b strings.Builder
	for line := range strings.Lines(strings.ReplaceAll(text, "\t", "    ")) {
		b.WriteString(strings.TrimRight(indent+Escape(strings.TrimSuffix(line, "\n")), " ") + "\n")
	}
	return b.String()
}

// Hanging escapes each line of a text, and sets off the second and later ones.
func Hanging(text string) string {
	all := strings.Split(text, "\n")
	for i, part := range all {
		all[i] = Escape(part)
	}
	return strings.Join(all, "\n    ")
}

// Lines separates joined errors, so that each line says by itself what it
// is about.
func Lines(err error) (all []string) {
	if many, ok := err.(interface{ Unwrap() []error }); ok && isJoin(err, many.Unwrap()) {
		for _, e := range many.Unwrap() {
			all = append(all, Lines(e)...)
		}
		return all
	}
	if inner := errors.Unwrap(err); inner != nil {
		if prefix, ok := strings.CutSuffix(err.Error(), inner.Error()); ok {
			for _, line := range Lines(inner) {
				all = append(all, prefix+line)
			}
			return all
		}
	}
	return []string{err.Error()}
}

// isJoin distinguishes [errors.Join] from an error with several causes in one sentence.
func isJoin(err error, parts []error) bool {
	return err.Error() == errors.Join(parts...).Error()
}

// Table aligns columns under their titles. Flush prints it.
func Table(w io.Writer, titles string) *tabwriter.Writer {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, titles)
	return t
}

// A Tone is how a text looks on a terminal (ECMA-48, Select Graphic Rendition).
type Tone string

const (
	Bold   Tone = "1"
	Faint  Tone = "2"
	Red    Tone = "31"
	Green  Tone = "32"
	Yellow Tone = "33"
	Normal Tone = "39" // as long as the colours, so that a table stays aligned
)

// WantsColour follows https://no-color.org.
func WantsColour() bool { return os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" }

// Paint gives a text a tone where there are colours.
func Paint(colour bool, as Tone, text string) string {
	if !colour {
		return text
	}
	return "\x1b[" + string(as) + "m" + text + "\x1b[0m"
}

// OutcomeTone is how an outcome looks.
func OutcomeTone(outcome string) Tone {
	switch outcome {
	case "succeeded":
		return Green
	case "failed", "stalled":
		return Red
	}
	return Yellow
}

// WriteJSON writes body with control and format characters in the escapes of
// JSON, so that a reader gets the text as it is and a terminal does not.
func WriteJSON(w io.Writer, body any, indent string) error {
	var plain bytes.Buffer
	e := json.NewEncoder(&plain)
	e.SetIndent("", indent)
	e.SetEscapeHTML(false) // people read it too, and no browser takes JSON for a page
	if err := e.Encode(body); err != nil {
		return err
	}
	var b bytes.Buffer
	for _, c := range plain.String() {
		if c >= 0x7f && Hidden(c) {
			for _, unit := range utf16.Encode([]rune{c}) {
				fmt.Fprintf(&b, `\u%04x`, unit)
			}
		} else {
			b.WriteRune(c)
		}
	}
	_, err := w.Write(b.Bytes())
	return err
}
