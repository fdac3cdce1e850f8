package soloist

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"reflect"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/internal/fields"
)

// What a job says of late ticks reaches the decisions whole: a field that is lost on the way has no effect.
func TestLateReachesDecisions(t *testing.T) {
	var late Late
	n := 0
	for _, v := range fields.Of(&late) {
		if n++; v.Kind() == reflect.String {
			v.SetString(fmt.Sprint(n))
		} else {
			v.SetInt(int64(n))
		}
	}
	if got, want := fmt.Sprintf("%+v", late.policy()), fmt.Sprintf("%+v", late); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// The table of docs/events.md names the event and the attributes of each line of the log, and no others.
func TestPageNamesWhatIsLogged(t *testing.T) {
	page, err := os.ReadFile("docs/events.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile("(?m)^\\| `([a-z-]+)` \\|.*\\| ([^|]*)\\|$").FindAllStringSubmatch(string(page), -1)
	if len(rows) < 30 {
		t.Errorf("found %d kinds", len(rows))
	}
	for _, row := range rows {
		var want []string
		for _, name := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(row[2], -1) {
			want = append(want, name[1])
		}
		slices.Sort(want)
		if got := logged(t, event.Kind(row[1])); !slices.Equal(got, want) {
			t.Errorf("%s: the page names %q, and its lines have %q", row[1], want, got)
		}
	}
}

// logged returns the name of an event and the attributes of its lines, without those that name the run; nothing for
// a kind that is not logged.
func logged(t *testing.T, kind event.Kind) (names []string) {
	t.Helper()
	tick := time.Date(2026, 3, 29, 1, 0, 0, 0, time.UTC)
	o := event.Outcome{Tick: tick, From: tick, Count: 1, Token: 7, Status: event.Failed, Reason: "no paper"}
	full := event.Event{Kind: kind, Run: event.Run{Tick: tick}, Outcome: o, Took: 1500 * time.Millisecond, Err: errors.New("x"), Stack: "y"}
	noted := full
	noted.Note, noted.Wait = "why", time.Second
	for _, e := range []event.Event{full, noted} {
		var b bytes.Buffer
		log := slog.New(slog.NewJSONHandler(&b, &slog.HandlerOptions{Level: slog.LevelDebug}))
		writeLine(&e, log, log)
		var line map[string]any
		if b.Len() == 0 {
			continue
		}
		if err := json.Unmarshal(b.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		if ms, timed := line["took_ms"]; timed && ms != 1500. {
			t.Errorf("%s: took_ms is %v", kind, ms)
		}
		for key, value := range line {
			switch {
			case key == "event":
				names = append(names, value.(string))
			case runLines[kind].line != nil && slices.Contains([]string{"tick", "attempt", "token", "request"}, key), key == "time", key == "level", key == "msg":
			default:
				names = append(names, key)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
