package host_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host"
	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/store"
)

// hostile sets a terminal's title and colour, by two kinds of escape sequence,
// and turns the direction of what follows. Some of it cannot be seen.
const hostile = "a\x1b]0;title\x07b\u009b31mc\u202egnp.exe\u2066d\u200b\ufeffe\x7ff"

// escaped is what a terminal or browser gets instead.
const escaped = `a\x1b]0;title\ab\u009b31mc\u202egnp.exe\u2066d\u200b\ufeffe\x7ff`

// poisoned is a record whose texts are all hostile.
func poisoned(r *store.Record) {
	r.Run.Replica, r.Run.Error, r.Run.Request = hostile, hostile, hostile
	told(hostile)(r)
	r.History = []store.Outcome{{Tick: r.Run.Tick.Add(-time.Minute), Status: store.Failed, Reason: hostile, Request: hostile, Replica: hostile,
		Token: 6, Attempt: 1, Start: r.Run.Claimed.Add(-time.Minute), End: r.Run.Claimed.Add(-time.Minute)}}
	r.Counts = map[store.Status]int64{store.Failed: 1}
}

// wantPlain wants a text that moves no cursor and hides nothing.
func wantPlain(t *testing.T, what, text string) {
	t.Helper()
	for _, c := range text {
		if c != '\n' && unicode.In(c, unicode.Cc, unicode.Cf) {
			t.Errorf("%s: got %q in %q", what, c, text)
			return
		}
	}
}

func TestCommandsEscapeTextsOfRecords(t *testing.T) {
	environment(t)
	p := host.Program{Work: work()[:1], Store: claimed(t, true, poisoned), Now: spring}
	for _, args := range []string{"status", "history", "doctor", "unlock beat --yes"} {
		got := run(t.Context(), p, strings.Fields(args)...)
		if wantPlain(t, args, got.out+got.err); !strings.Contains(got.out, escaped) {
			t.Errorf("%s: got no %s in\n%s", args, escaped, got.out)
		}
	}
}

func TestJSONEscapesTextsOfRecords(t *testing.T) {
	environment(t)
	p := host.Program{Work: work()[:1], Store: claimed(t, true, poisoned), Now: spring}
	s := open(t, p)
	for what, text := range map[string]string{"status": run(t.Context(), p, "status", "--json").out,
		"history": run(t.Context(), p, "history", "--json").out, "/api/v1/jobs": s.get("/api/v1/jobs").Body.String()} {
		wantPlain(t, what, text)
		var got struct {
			Jobs []struct{ Progress store.Progress }
		}
		if err := json.Unmarshal([]byte(text), &got); err != nil || len(got.Jobs) != 1 || got.Jobs[0].Progress.Note != hostile {
			t.Errorf("%s: got %+v, %v, want the text as it is", what, got, err)
		}
	}
	s.wait()
}

// What a job returns reaches terminals at once too, without a record.
func TestTextsOfErrorsAreEscaped(t *testing.T) {
	broke := func(context.Context, *soloist.Run) error { return errors.New(hostile) }
	environment(t, "SOLOIST_LOG_FORMAT=text")
	synctest.Test(t, func(t *testing.T) {
		p := host.Program{Work: []soloist.Work{soloist.Job{Name: "beat", Schedule: "@every 1m", Do: broke}}, Store: &local.Memory{}}
		run(t.Context(), p, "tick")
		time.Sleep(time.Minute)
		got := run(t.Context(), p, "tick")
		wantPlain(t, "tick", got.out+got.err)
		if !strings.Contains(got.out, escaped) || !strings.Contains(got.err, escaped[1:]) {
			t.Errorf("got %+v, want %s in answer and log", got, escaped)
		}
	})
	environment(t, "FUNCTIONS_CUSTOMHANDLER_PORT=7071")
	synctest.Test(t, func(t *testing.T) {
		s := open(t, host.Program{Work: work()[:1], Store: newGated(&local.Memory{}, refuse(errors.New(hostile)))})
		s.tick()
		for _, path := range []string{"/healthz", "/readyz"} {
			wantPlain(t, path, s.get(path).Body.String())
		}
		r := s.send(http.MethodPost, "/tick")
		wantPlain(t, "invocation", r.Body.String())
		s.wait()
	})
}

// A status is printed as it is, so it is one that this program knows.
func TestUnknownStatusInHistoryIsRefused(t *testing.T) {
	environment(t)
	backend := claimed(t, false, func(r *store.Record) {
		r.History = []store.Outcome{{Tick: r.Run.Tick, Status: hostile, Token: 6}}
	})
	got := run(t.Context(), host.Program{Work: work()[:1], Store: backend, Now: spring}, "history")
	wantPlain(t, "history", got.out)
	if got.code != 1 || !strings.Contains(got.out, "unknown status") {
		t.Errorf("got %+v, want a word on the status", got)
	}
}
