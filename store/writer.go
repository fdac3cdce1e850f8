package store

import (
	"strconv"
	"time"
	"unicode/utf16"
	"unicode/utf8"
)

// A writer appends the members of JSON objects, in ASCII.
type writer struct {
	b   []byte
	err error // of the first instant that JSON cannot write
}

// separate appends what comes between two members, or between two elements.
func (w *writer) separate() {
	if last := w.b[len(w.b)-1]; last != '{' && last != '[' {
		w.b = append(w.b, ',')
	}
}

// name appends the name of the next member. It is plain ASCII.
func (w *writer) name(name string) {
	w.separate()
	w.b = append(w.b, '"')
	w.b = append(w.b, name...)
	w.b = append(w.b, '"', ':')
}

// open begins a member that is an object or an array.
func (w *writer) open(name string, bracket byte) {
	w.name(name)
	w.b = append(w.b, bracket)
}

// element begins an object in an array.
func (w *writer) element() {
	w.separate()
	w.b = append(w.b, '{')
}

// close ends an object.
func (w *writer) close() { w.b = append(w.b, '}') }

func (w *writer) number(name string, n int64) {
	w.name(name)
	w.b = strconv.AppendInt(w.b, n, 10)
}

func (w *writer) numberUnlessZero(name string, n int64) {
	if n != 0 {
		w.number(name, n)
	}
}

func (w *writer) seconds(name string, s Seconds) {
	w.name(name)
	w.b = strconv.AppendFloat(w.b, time.Duration(s).Seconds(), 'f', -1, 64)
}

// flag appends a member if it is true.
func (w *writer) flag(name string, yes bool) {
	if yes {
		w.name(name)
		w.b = append(w.b, "true"...)
	}
}

func (w *writer) instant(name string, t time.Time) {
	w.name(name)
	w.b = append(w.b, '"')
	b, err := t.AppendText(w.b)
	if err != nil {
		w.err = err
		return
	}
	w.b = append(b, '"')
}

func (w *writer) instantUnlessZero(name string, t time.Time) {
	if !t.IsZero() {
		w.instant(name, t)
	}
}

func (w *writer) textUnlessEmpty(name, s string) {
	if s != "" {
		w.text(name, s)
	}
}

// text appends a string member with all but printable ASCII escaped, and what package json
// escapes for HTML; see ascii.
func (w *writer) text(name, s string) {
	w.name(name)
	w.b = append(w.b, '"')
	for i := 0; i < len(s); {
		if c := s[i]; plain(c) && (c != ' ' || w.b[len(w.b)-1] != ' ') {
			w.b = append(w.b, c)
			i++
			continue
		}
		c, size := utf8.DecodeRuneInString(s[i:])
		w.escape(c)
		i += size
	}
	w.b = append(w.b, '"')
}

// plain reports whether a character stands for itself.
func plain(c byte) bool {
	return c >= ' ' && c < 0x7f && c != '"' && c != '\\' && c != '<' && c != '>' && c != '&'
}

// escape appends the escape of a character.
func (w *writer) escape(c rune) {
	switch c {
	case '"', '\\':
		w.b = append(w.b, '\\', byte(c))
	case '\b':
		w.b = append(w.b, `\b`...)
	case '\f':
		w.b = append(w.b, `\f`...)
	case '\n':
		w.b = append(w.b, `\n`...)
	case '\r':
		w.b = append(w.b, `\r`...)
	case '\t':
		w.b = append(w.b, `\t`...)
	default:
		if hi, lo := utf16.EncodeRune(c); hi != utf8.RuneError {
			w.unicode(hi)
			c = lo
		}
		w.unicode(c)
	}
}

// unicode appends a character of sixteen bits by its number.
func (w *writer) unicode(c rune) {
	const digits = "0123456789abcdef"
	w.b = append(w.b, '\\', 'u', digits[c>>12&15], digits[c>>8&15], digits[c>>4&15], digits[c&15])
}
