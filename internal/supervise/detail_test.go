package supervise

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/internal/elapsed"
	"github.com/soloist-go/soloist/internal/lease"
)

// fails returns the detail of an attempt that fails, and the reason of its outcome.
func fails(t *testing.T, tries int, do func(h *Handle) error) (text, reason string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		a := &Attempt{Task: &Task{MaxTries: tries, Backoff: time.Second, Do: func(_ context.Context, h *Handle) error { return do(h) }},
			Info: event.Run{Tick: time.Now()}, Under: &Conditions{Stop: t.Context(), Elapsed: elapsed.Now, Now: time.Now},
			Status: slowLog(0), Emit: func(event.Event) {}, Jitter: lease.NewJitter("detail")}
		status, why := a.Run()
		if text, reason = a.Detail(status), why; status != event.Failed {
			t.Errorf("the attempt has %s", status)
		}
		if !utf8.ValidString(text) || len(text) > longestDetail || strings.ContainsFunc(text, func(c rune) bool { return c < ' ' && c != '\n' && c != '\t' || c == 0x7f }) {
			t.Errorf("%d bytes with characters that are no plain text: %.300q", len(text), text)
		}
	})
	return text, reason
}

// A detail has each try with its time and error, what an error wraps, the stack of a panic, and the last lines of the log.
func TestDetailOfAFailure(t *testing.T) {
	text, _ := fails(t, 4, func(h *Handle) error {
		for i := range 30 {
			h.Logged(fmt.Sprintf("line %d of try %d", i, h.Run.Try))
		}
		time.Sleep(250 * time.Millisecond)
		switch h.Run.Try {
		case 1, 2:
			return fmt.Errorf("page 3:\n%w", &fs.PathError{Op: "open", Path: "x", Err: quiet{errors.New("the disk is gone")}})
		case 3:
			return errors.New("no\x1b[2Jpaper")
		}
		panic("no ink")
	})
	before, log, _ := strings.Cut(text, "\nthe last lines that the run has logged, of 120:\n")
	tries, stack, _ := strings.Cut(before, "\nstack of the last panic:\n")
	if _, wait, _ := strings.Cut(tries, "try 4 at "); !strings.Contains(wait, "failed after 250ms:\npanic: no ink\n") {
		t.Errorf("the last try: %q", wait)
	}
	if want := "try 1 at 2000-01-01T00:00:00Z, failed after 250ms:\nthe same as of the next try\n\n"; !strings.HasPrefix(tries, want) {
		t.Errorf("got %q, want it to begin with %q", tries, want)
	}
	for _, want := range []string{"failed after 250ms:\npage 3:\nopen x: it hides why\nwraps *fs.PathError\nwraps supervise.quiet\nwraps *errors.errorString: the disk is gone\n", "failed after 250ms:\nno\\x1b[2Jpaper\n"} {
		if !strings.Contains(tries, want) {
			t.Errorf("got %q, want %q in it", tries, want)
		}
	}
	if !strings.HasPrefix(stack, "goroutine ") || !strings.Contains(stack, "TestDetailOfAFailure") {
		t.Errorf("the stack: %q", stack)
	}
	if lines := strings.Split(strings.TrimSpace(log), "\n"); len(lines) != mostLines || lines[0] != "line 10 of try 3" || lines[49] != "line 29 of try 4" {
		t.Errorf("the log: %q", lines)
	}
}

// quiet is an error whose text does not say what it wraps.
type quiet struct{ error }

func (quiet) Error() string   { return "it hides why" }
func (q quiet) Unwrap() error { return q.error }

// broken is an error whose text was never asked for by what wraps it.
type broken struct{ *fs.PathError }

func (broken) Unwrap() error { return nil }

// hidden wraps an error without its text.
type hidden struct{ error }

func (hidden) Error() string   { return "hidden" }
func (h hidden) Unwrap() error { return h.error }

// Whatever an error is, its detail is whole up to the limit and says how much is left out.
func TestDetailOfOddErrors(t *testing.T) {
	const mb = 1 << 20
	for name, c := range map[string]struct {
		err  error
		want string // in the detail
	}{
		"of 10,291 characters":      {errors.New(strings.Repeat("x", 10_290) + "!"), strings.Repeat("x", 10_290) + "!\n"},
		"of 10 MB":                  {errors.New(strings.Repeat("x", 10*mb)), " bytes left out\n"},
		"of 10 MB, wrapped":         {fmt.Errorf("a: %w", fmt.Errorf("b: %w", errors.New(strings.Repeat("ä", 5*mb)))), " bytes left out\n"},
		"that hides 10 MB":          {hidden{errors.New(strings.Repeat("x", 10*mb))}, "hidden\nwraps *errors.errorString: xxx"},
		"of invalid UTF-8":          {errors.New("caf\xe9 \xff\xfe!"), "caf\uFFFD \uFFFD\uFFFD!\n"},
		"of 10 MB of zeros":         {errors.New(strings.Repeat("\x00", 10*mb)), `\x00`},
		"of HTML":                   {errors.New("<script>alert(1)</script>\r\n<b>"), "<script>alert(1)</script>\n<b>\n"},
		"of the other direction":    {errors.New("a\u202eb\u2028c"), "a\\u202eb\u2028c\n"},
		"of escapes":                {errors.New("\x1b]0;title\x07\x1b[2J\x7f"), `\x1b]0;title\a\x1b[2J\x7f`},
		"that cannot be asked":      {hidden{broken{}}, "hidden\nwraps supervise.broken"},
		"that joins a thousand":     {errors.Join(slices.Repeat([]error{errors.New("one")}, 1000)...), "one\none\n"},
		"without a text":            {errors.New(""), ":\n\n"},
		"that has what is left out": {errors.New("… 5 bytes left out" + strings.Repeat("y", 20_000)), "… 5 bytes left outyyy"},
	} {
		text, _ := fails(t, 1, func(*Handle) error { return c.err })
		if !strings.Contains(text, c.want) {
			t.Errorf("%s: got %.200q … %.100q, want %.100q", name, text, text[max(0, len(text)-100):], c.want)
		}
	}
	text, reason := fails(t, 1, func(*Handle) error { return errors.New(strings.Repeat("x", 10*mb)) })
	kept := strings.Count(text, "x")
	if want := "x" + leftOut(10*mb-kept) + "\n"; !strings.HasSuffix(text, want) || kept < longestDetail-200 {
		t.Errorf("of 10 MB %d bytes are kept, and it ends with %q, want %q", kept, text[len(text)-60:], want)
	}
	if len(reason) > longestError+60 {
		t.Errorf("the reason has %d bytes", len(reason))
	}
	panics, reason := fails(t, 1, func(*Handle) error { panic(strings.Repeat("x", 10*mb)) })
	if !strings.Contains(panics, "bytes left out\n\nstack of the last panic:\n") || len(reason) > longestError+60 {
		t.Errorf("a panic of 10 MB: %.200q, and a reason of %d bytes", panics, len(reason))
	}
}

// Where there is too much of everything, each part has its share, the newest lines and the last tries are there, and a run keeps
// little while it goes on.
func TestDetailOfTooMuch(t *testing.T) {
	text, _ := fails(t, 25, func(h *Handle) error {
		for i := range 1000 {
			h.Logged(fmt.Sprintf("line %d %s", i, strings.Repeat("y", 1000)))
		}
		h.Logged(strings.Repeat("z", 1<<20))
		if h.detail.size > longestDetail || len(h.detail.lines) > mostLines || len(h.detail.tries) > mostTries {
			t.Errorf("it keeps %d bytes of %d lines, and %d tries", h.detail.size, len(h.detail.lines), len(h.detail.tries))
		}
		if h.Run.Try == 25 {
			panic("the end")
		}
		return fmt.Errorf("try %d: %s", h.Run.Try, strings.Repeat("x", 100_000))
	})
	for _, want := range []string{"15 tries before are left out\ntry 16 at ", "\ntry 24: xxx", "panic: the end\n", "\ngoroutine ", "zzz … 1,044,480 bytes left out\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("got %d bytes without %q: %s", len(text), want, text)
		}
	}
	if len(text) < longestDetail*9/10 {
		t.Errorf("%d bytes: room is left", len(text))
	}
}

// A run that has not failed has no detail, nor has a singleton that was stopped.
func TestNoDetailOfASuccess(t *testing.T) {
	for status, want := range map[event.Status]bool{event.Succeeded: false, event.Skipped: false, event.Cancelled: false, event.Abandoned: false, event.Failed: true, event.Stalled: true} {
		a := &Attempt{}
		a.detail.logged("x")
		if got := a.Detail(status) != ""; got != want {
			t.Errorf("%s: %t", status, got)
		}
		a.Info.Tick = time.Now()
		if got := a.Detail(status) != ""; got != (want || status == event.Abandoned) {
			t.Errorf("%s of a tick: %t", status, got)
		}
	}
}
