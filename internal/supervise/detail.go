package supervise

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/soloist-go/soloist/event"
)

const (
	longestDetail = 16 << 10 // bytes of all that is known of a failure
	mostTries     = 10       // tries that a detail has, the last ones
	mostLines     = 50       // lines that the run has logged, the last ones
	mostCauses    = 10       // errors that an error wraps
)

// A detail is what a person asks about an attempt that has failed, besides its outcome. It keeps no more than it may tell,
// however much an error or a run says.
type detail struct {
	mu    sync.Mutex
	tries []piece
	early int // tries before those
	stack piece
	lines []string
	size  int // of all lines, in bytes
	gone  int // lines before those
}

// A piece is a part of a text under a title.
type piece struct {
	title, text string
	left        int  // bytes that came after the text, and were not kept
	ends        bool // where there is no room, the end of it stays
}

// failed notes a try that began at a time and has not succeeded.
func (d *detail) failed(try int, began time.Time, took time.Duration, status event.Status, reason string, err error) {
	title := fmt.Sprintf("try %d", try)
	if !began.IsZero() {
		title += " at " + began.UTC().Format(time.RFC3339)
	}
	p := piece{title: fmt.Sprintf("%s, %s after %s", title, status, took.Round(time.Millisecond)), text: reason}
	if own, ok := err.(*fixedError); ok {
		if !strings.Contains(p.text, own.text) { // the cause of the end of its context hides what it has returned
			p.text += "\nit returned: " + own.text
		}
		p.text, p.left = strings.TrimSuffix(p.text, leftOut(own.left)), own.left
		if own.left == 0 {
			p.text += own.causes
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if n := len(d.tries); n > 0 && d.tries[n-1].text == p.text && p.left == 0 {
		d.tries[n-1].text = "the same as of the next try"
	}
	d.tries = append(d.tries, p)
	if n := len(d.tries) - mostTries; n > 0 {
		d.tries, d.early = slices.Delete(d.tries, 0, n), d.early+n
	}
}

// panicked notes the stack of a panic.
func (d *detail) panicked(stack string) {
	head := clip(stack, longestDetail)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stack = piece{title: "stack of the last panic", text: head, left: len(stack) - len(head)}
}

// logged notes a line that the run has logged.
func (d *detail) logged(line string) {
	line = shorten(line, longestDetail/4)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines, d.size = append(d.lines, line), d.size+len(line)+1
	for len(d.lines) > mostLines || d.size > longestDetail {
		d.size -= len(d.lines[0]) + 1
		d.lines, d.gone = d.lines[1:], d.gone+1
	}
}

// text is all of it, of longestDetail bytes at most. It has no control or format characters but ends of lines and tabs.
// Where there is too much, each part gets as much as the others, or less if it needs less.
func (d *detail) text() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := slices.Clone(d.tries)
	if d.early > 0 {
		all[0].title = fmt.Sprintf("%d tries before are left out\n%s", d.early, all[0].title)
	}
	if d.stack.text != "" {
		all = append(all, d.stack)
	}
	if len(d.lines) > 0 {
		title := "the last lines that the run has logged"
		if d.gone > 0 {
			title += fmt.Sprintf(", of %d", d.gone+len(d.lines))
		}
		all = append(all, piece{title: title, text: strings.Join(d.lines, "\n"), ends: true})
	}
	room, needs := longestDetail, make([]int, len(all))
	for i := range all {
		p := &all[i]
		p.text = plain(p.text)
		needs[i] = len(p.text) + len(leftOut(p.left))
		room -= len(p.title) + len(":\n\n\n")
	}
	most := share(room, needs)
	var parts []string
	for _, p := range all {
		parts = append(parts, p.title+":\n"+p.within(most)+"\n")
	}
	return strings.Join(parts, "\n")
}

// within is the text if it takes no more than so many bytes, else its beginning, or its end, with what it says of the rest.
func (p *piece) within(most int) string {
	if whole := p.text + leftOut(p.left); len(whole) <= most {
		return whole
	}
	room := max(0, most-len(leftOut(len(p.text)+p.left)))
	if p.ends {
		tail := p.text[len(p.text)-room:]
		if _, whole, ok := strings.Cut(tail, "\n"); ok {
			tail = whole
		}
		return strings.TrimSpace(leftOut(len(p.text)-len(tail))) + "\n" + strings.ToValidUTF8(tail, "")
	}
	head := clip(p.text, room)
	return head + leftOut(len(p.text)-len(head)+p.left)
}

// share returns the most that each may have of a room: who needs less leaves the rest to the others.
func share(room int, needs []int) (most int) {
	slices.Sort(needs)
	for i, need := range needs {
		if most = max(0, room) / (len(needs) - i); need > most {
			break
		}
		room -= need
	}
	return most
}

// leftOut says that so many bytes of a text are missing; nothing, if none are.
func leftOut(n int) string {
	if n <= 0 {
		return ""
	}
	digits := strconv.Itoa(n)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return " … " + digits + " bytes left out"
}

// shorten returns a text, or of one that is longer than n bytes its beginning and how much is left out.
func shorten(text string, n int) string {
	head := clip(text, n)
	return head + leftOut(len(text)-len(head)) // if that is anything, the rest is not kept in memory
}

// clip returns at most the first n bytes of a text, and no part of a character.
func clip(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}

// plain shows what could move a terminal's cursor, or change the order in which a reader sees the rest, as a Go literal does,
// and what is no UTF-8 as U+FFFD.
func plain(text string) string {
	var b strings.Builder
	for _, c := range strings.ReplaceAll(text, "\r\n", "\n") {
		if c != '\n' && c != '\t' && unicode.In(c, unicode.Cc, unicode.Cf) {
			literal := strconv.QuoteRuneToASCII(c)
			b.WriteString(literal[1 : len(literal)-1])
		} else {
			b.WriteRune(c)
		}
	}
	return b.String()
}

// causes lists the errors that an error wraps, by their types, and their texts where the text of the error has them not.
func causes(err error) string {
	var b strings.Builder
	all, text := unwrap(err), err.Error()
	for n := 0; n < mostCauses && len(all) > 0; n++ {
		e := all[0]
		all = append(unwrap(e), all[1:]...)
		said, kind := textOf(e), fmt.Sprintf("%T", e)
		isOf := func(of string) bool { return strings.HasPrefix(kind, of) }
		switch {
		case !strings.Contains(text, said):
			fmt.Fprintf(&b, "\nwraps %s: %s", kind, shorten(said, longestError))
		case !slices.ContainsFunc([]string{"*fmt.", "*errors.", "*supervise."}, isOf):
			fmt.Fprintf(&b, "\nwraps %s", kind)
		}
	}
	return b.String()
}

func unwrap(err error) []error {
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		return slices.DeleteFunc(slices.Clone(many.Unwrap()), func(e error) bool { return e == nil })
	}
	if one := errors.Unwrap(err); one != nil {
		return []error{one}
	}
	return nil
}

// textOf is the text of an error that was never asked for it: that may panic.
func textOf(err error) (text string) {
	defer func() {
		if recover() != nil {
			text = ""
		}
	}()
	return err.Error()
}

// Detail returns what is known of an attempt that has ended with this outcome, for people; nothing if it is no failure.
// A singleton always ends so when its replica stops.
func (a *Attempt) Detail(status event.Status) string {
	if status == event.Failed || status == event.Stalled || status == event.Abandoned && !a.Info.Tick.IsZero() {
		return a.masked(a.detail.text())
	}
	return ""
}

// Logged notes a line that the run has logged.
func (h *Handle) Logged(line string) { h.detail.logged(line) }
