package host

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
)

// hidden reports whether c is a control or format character. Such characters
// move a terminal's cursor, or change the order in which a reader sees the rest.
func hidden(c rune) bool { return unicode.In(c, unicode.Cc, unicode.Cf) }

// escape shows control and format characters as a Go literal does, \x1b. Any
// text of a record, a job or a service goes through it on its way to a terminal
// or the page.
func escape(text string) string {
	if strings.IndexFunc(text, hidden) < 0 {
		return text
	}
	var b strings.Builder
	for _, c := range text {
		if hidden(c) {
			literal := strconv.QuoteRuneToASCII(c)
			b.WriteString(literal[1 : len(literal)-1])
		} else {
			b.WriteRune(c)
		}
	}
	return b.String()
}

// line makes one escaped line of any text. A run of white space becomes one
// blank.
func line(text string) string { return escape(strings.Join(strings.Fields(text), " ")) }

// writeJSON writes body with control and format characters in the escapes of
// JSON, so that a reader gets the text as it is and a terminal does not.
func writeJSON(w io.Writer, body any, indent string) error {
	var plain bytes.Buffer
	e := json.NewEncoder(&plain)
	e.SetIndent("", indent)
	e.SetEscapeHTML(false) // people read it too, and no browser takes JSON for a page
	if err := e.Encode(body); err != nil {
		return err
	}
	var b bytes.Buffer
	for _, c := range plain.String() {
		if c >= 0x7f && hidden(c) {
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
