package record

import (
	"encoding/json"
	"errors"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"
)

// A codec writes the members of JSON objects, in ASCII, or reads them in the same order and
// spelling.
type codec struct {
	b     []byte
	at    int // where the next member begins, of those that are read
	reads bool
	err   error // of the first thing that cannot be written or read
}

// errOther stops a read: package json may know what stands there.
var errOther = errors.New("not what a record is written as")

// name writes the name of the next member, which is plain ASCII.
func (c *codec) name(name string) {
	if c.b[len(c.b)-1] != '{' {
		c.b = append(c.b, ',')
	}
	c.b = append(c.b, '"')
	c.b = append(c.b, name...)
	c.b = append(c.b, '"', ':')
}

// readName reads a name with the comma before it and the colon after it.
func (c *codec) readName(name string) bool {
	if c.err != nil {
		return false
	}
	i := c.at
	if first := c.b[i-1] == '{'; !first {
		if i >= len(c.b) || c.b[i] != ',' {
			return false
		}
		i++
	}
	end := i + len(name) + 3
	if end > len(c.b) || c.b[i] != '"' || string(c.b[i+1:end-2]) != name || c.b[end-2] != '"' || c.b[end-1] != ':' {
		return false
	}
	c.at = end
	return true
}

// expect reads one character.
func (c *codec) expect(char byte) {
	if c.err != nil {
		return
	}
	if c.at >= len(c.b) || c.b[c.at] != char {
		c.err = errOther
		return
	}
	c.at++
}

// inside goes through what is between two brackets.
func (c *codec) inside(from, to byte, members func()) {
	if c.reads {
		c.expect(from)
		members()
		c.expect(to)
		return
	}
	c.b = append(c.b, from)
	members()
	c.b = append(c.b, to)
}

// number goes through a whole number.
func (c *codec) number(v reflect.Value) {
	if !c.reads {
		c.b = strconv.AppendInt(c.b, v.Int(), 10)
		return
	}
	text := c.token()
	got, err := strconv.ParseInt(string(text), 10, strconv.IntSize)
	if v.SetInt(got); err != nil || strconv.Itoa(int(got)) != string(text) { // a number may be written in several ways
		c.err = errOther
	}
}

// token reads a string without escapes, with its quotes, or a number.
func (c *codec) token() []byte {
	from := c.at
	quoted := from < len(c.b) && c.b[from] == '"'
	for i := from + 1; i < len(c.b); i++ {
		switch char := c.b[i]; {
		case quoted && char == '"':
			c.at = i + 1
			return c.b[from:c.at]
		case quoted && (char < ' ' || char >= 0x7f || char == '\\'):
			i = len(c.b)
		case !quoted && (char == ',' || char == '}' || char == ']'):
			c.at = i
			return c.b[from:i]
		}
	}
	c.err = errOther
	return nil
}

func (c *codec) seconds(s *Seconds) {
	if !c.reads {
		c.b = strconv.AppendFloat(c.b, time.Duration(*s).Seconds(), 'f', -1, 64)
		return
	}
	text := c.token()
	if c.err != nil || s.UnmarshalJSON(text) != nil {
		c.err = errOther
		return
	}
	if again, _ := s.MarshalJSON(); string(again) != string(text) {
		c.err = errOther
	}
}

func (c *codec) flag(v reflect.Value) {
	if !c.reads {
		c.b = strconv.AppendBool(c.b, v.Bool())
		return
	}
	text := string(c.token())
	if v.SetBool(text == "true"); text != "true" && text != "false" {
		c.err = errOther
	}
}

func (c *codec) instant(t *time.Time) {
	if c.reads {
		if text := c.token(); c.err != nil || text[0] != '"' || t.UnmarshalJSON(text) != nil || isFar(*t) { // which is refused then
			c.err = errOther
		}
		return
	}
	b, err := t.AppendText(append(c.b, '"'))
	if err != nil {
		c.err = err
		return
	}
	c.b = append(b, '"')
}

// text goes through a string, with all but printable ASCII escaped, and what package json escapes for HTML; see ascii.
func (c *codec) text(v reflect.Value) {
	if c.reads {
		v.SetString(c.readText())
		return
	}
	s := v.String()
	c.b = append(c.b, '"')
	for i := 0; i < len(s); {
		if char := s[i]; plain(char) && (char != ' ' || c.b[len(c.b)-1] != ' ') {
			c.b = append(c.b, char)
			i++
			continue
		}
		char, size := utf8.DecodeRuneInString(s[i:])
		c.escape(char)
		i += size
	}
	c.b = append(c.b, '"')
}

// readText reads a string. One with escapes is left to package json.
func (c *codec) readText() string {
	from := c.at
	text := c.token()
	if c.err == nil && text[0] == '"' {
		return string(text[1 : len(text)-1])
	}
	c.err = nil
	for i := from + 1; i < len(c.b); i++ {
		switch c.b[i] {
		case '\\':
			i++
		case '"':
			var s string
			if c.at = i + 1; json.Unmarshal(c.b[from:c.at], &s) != nil {
				c.err = errOther
			}
			return s
		}
	}
	c.err = errOther
	return ""
}

// plain reports whether a character stands for itself.
func plain(c byte) bool {
	return c >= ' ' && c < 0x7f && c != '"' && c != '\\' && c != '<' && c != '>' && c != '&'
}

// escape appends the escape of a character.
func (c *codec) escape(char rune) {
	if i := strings.IndexRune("\"\\\b\f\n\r\t", char); i >= 0 {
		c.b = append(c.b, '\\', `"\bfnrt`[i])
		return
	}
	if hi, lo := utf16.EncodeRune(char); hi != utf8.RuneError {
		c.unicode(hi)
		char = lo
	}
	c.unicode(char)
}

// unicode appends a character of sixteen bits by its number.
func (c *codec) unicode(char rune) {
	const digits = "0123456789abcdef"
	c.b = append(c.b, '\\', 'u', digits[char>>12&15], digits[char>>8&15], digits[char>>4&15], digits[char&15])
}
