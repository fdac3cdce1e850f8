package format

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"unicode/utf16"
)

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
