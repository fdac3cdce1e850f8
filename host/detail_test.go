package host_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host"
	"github.com/soloist-go/soloist/host/azure"
	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/internal/azurite"
	"github.com/soloist-go/soloist/store"
)

// An error of 10,291 characters, the tries before it, the stack of a panic and the last lines of the run are told whole, by command and by
// API, over each kind of store; the secrets of the program are not, and nothing that is told moves a cursor. The record has 500
// characters, the table of many outcomes 100.
func TestWholeError(t *testing.T) {
	stores := map[string]func(t *testing.T) store.Store{
		"memory":    func(*testing.T) store.Store { return &local.Memory{} },
		"directory": func(t *testing.T) store.Store { return local.Dir{Path: t.TempDir()} },
		"azurite": func(t *testing.T) store.Store {
			s, err := azure.Open(azure.Config{ConnectionString: azurite.Shared(t).ConnectionString(), Container: "details"})
			must(t, err)
			return s
		},
	}
	for name, backend := range stores {
		t.Run(name, func(t *testing.T) {
			p := host.Program{Store: backend(t), Work: []soloist.Work{troubled}}
			environment(t, "SOLOIST_ADMIN_TOKEN="+adminToken)
			if name == "azurite" {
				wantWhole(t, p)
				return
			}
			synctest.Test(t, func(t *testing.T) { wantWhole(t, p) })
		})
	}
}

// longError has 10,291 characters on two lines.
var longError = strings.Repeat("no paper ", 1142) + "\n<b>\u00e9\x1b[2J !!!"

// troubled is a job whose first try panics. The second returns a long error. Its lines are short: a detail has 16 KiB, and the
// stack in it grows with the path of the sources.
var troubled = soloist.Job{Name: "report", Schedule: "@yearly", Retry: soloist.Retry{MaxTries: 2, Backoff: time.Second}, Do: func(_ context.Context, run *soloist.Run) error {
	for i := range 60 {
		run.Log.With("page", i).WithGroup("p").Info("on", "key", adminToken)
	}
	if run.Try == 1 {
		panic("no ink")
	}
	return errors.New(longError)
}}

func wantWhole(t *testing.T, p host.Program) {
	t.Helper()
	long := strings.ReplaceAll(longError, "\x1b", `\x1b`)
	if n := len([]rune(longError)); n != 10_291 {
		t.Errorf("the error has %d characters", n)
	}
	run(t.Context(), p, "run", "report", "--here", "--request", "monday").wants(t, "run", 1)

	list := run(t.Context(), p, "history")
	list.wants(t, "history", 0, "report", strings.Repeat("no paper ", 11)+"…\n")
	one := run(t.Context(), p, "history", "report@monday")
	one.wants(t, "history of one", 0, strings.TrimSpace(strings.Repeat("no paper ", 56))[:480], "report@monday, attempt 1\n  try 1 at ", "panic: no ink\n", "  goroutine ", ", failed after ", "\n  the last lines that the run has logged, of 120:\n",
		` level=INFO msg=on page=10 p.key=***`+"\n", `msg=on page=59 p.key=***`)
	if before, after, ok := strings.Cut(long, "\n"); !strings.Contains(one.out, "\n  "+strings.TrimSpace(before)) || !ok || !strings.Contains(one.out, "\n  "+after+"\n") {
		t.Errorf("history does not tell the whole error: %s", one.out)
	}
	wantText(t, "history", one.out, "!"+adminToken, "!\x1b", "!page=9 ")

	var body struct {
		Jobs []struct {
			History []struct{ ID, Reason, Detail string }
		}
	}
	told := run(t.Context(), p, "history", "report@monday", "--json")
	must(t, json.Unmarshal([]byte(told.out), &body))
	wantText(t, "history as JSON", body.Jobs[0].History[0].Detail, long, "panic: no ink", "page=59")
	if n := len([]rune(body.Jobs[0].History[0].Reason)); n != 500 {
		t.Errorf("the record has %d characters of the error", n)
	}

	s := open(t, p)
	var answer struct {
		Note     string
		Outcomes []struct{ ID, Reason, Detail string }
	}
	for _, id := range []string{"monday", "report@monday", "monday"} {
		got := s.get("/api/v1/jobs/report/history?run=" + id)
		wantAnswer(t, id, got, http.StatusOK)
		described(t, s).wantAsDescribed(t, "GET", "/api/v1/jobs/report/history", got)
		answer.Outcomes = nil // else one without a detail would keep that of the answer before
		must(t, json.Unmarshal(got.Body.Bytes(), &answer))
		if len(answer.Outcomes) != 1 || answer.Outcomes[0].Detail != body.Jobs[0].History[0].Detail || answer.Note != "" {
			t.Errorf("%s: the API has not the same: %s", id, got.Body)
		}
	}
	for path, want := range map[string]int{"?run=tuesday": 0, "": 1} {
		got := s.get("/api/v1/jobs/report/history" + path)
		answer.Outcomes = nil
		must(t, json.Unmarshal(got.Body.Bytes(), &answer))
		if len(answer.Outcomes) != want || strings.Contains(got.Body.String(), `"detail"`) {
			t.Errorf("%q: got %s", path, got.Body)
		}
	}
}

// What is kept of a failure has no secret of the program, also where it is cut in the middle of one.
func TestDetailHasNoSecret(t *testing.T) {
	const secret = "client-secret-0123456789"
	bubble(t, []string{"SOLOIST_READ_TOKEN=" + readToken, "AZURE_CLIENT_SECRET=" + secret}, func(t *testing.T) {
		job := soloist.Job{Name: "report", Schedule: "@yearly", Do: func(context.Context, *soloist.Run) error {
			return fmt.Errorf("%s, %s: %s", readToken, secret, strings.Repeat("x", 16<<10-300)+strings.Repeat(secret, 20))
		}}
		p := host.Program{Store: &local.Memory{}, Work: []soloist.Work{job}}
		run(t.Context(), p, "run", "report", "--here", "--request", "monday")
		_, detail, _ := strings.Cut(run(t.Context(), p, "history", "report@monday").out, "attempt 1\n")
		wantText(t, "the detail", detail, "\n  ***, ***: xxx", "x***", "*** … ", "bytes left out")
		wantText(t, "the detail", detail, "!"+readToken, "!client-s")
	})
}

// Nor has what is recorded, shown and logged of how a run ended, however its function says it.
func TestNoOutcomeHasASecret(t *testing.T) {
	bubble(t, []string{"SOLOIST_READ_TOKEN=" + readToken, "SOLOIST_ADMIN_TOKEN=" + adminToken, "SOLOIST_HISTORY=0"}, func(t *testing.T) {
		said := "the key is " + adminToken + ", not " + readToken
		ends := map[string]func() error{
			"fails":  func() error { return fmt.Errorf("page 3: %w", errors.New(said)) },
			"panics": func() error { panic(said) },
			"skips":  func() error { return soloist.Skip(said) },
		}
		p := host.Program{Store: &local.Memory{}}
		for name, end := range ends {
			p.Work = append(p.Work, soloist.Job{Name: name, Schedule: "@yearly", Retry: soloist.Retry{MaxTries: 2}, Do: func(_ context.Context, run *soloist.Run) error {
				run.Log.Info(said, "key", readToken)
				return end()
			}})
		}
		p.Before = before(func(context.Context) error { return ends["fails"]() })
		first := run(t.Context(), p, "tick")
		wantText(t, "what comes before", first.out+first.err, "the key is ***, not ***", "!"+readToken, "!"+adminToken)
		p.Before = nil
		stalls := soloist.HealthCheck{Interval: time.Second, Check: func(context.Context) error { return errors.New(said) }}
		p.Work = append(p.Work, soloist.Job{Name: "stalls", Schedule: "@yearly", Do: lasts(time.Hour), HealthCheck: stalls})
		for _, name := range []string{"fails", "panics", "skips", "stalls"} {
			told := run(t.Context(), p, "run", name, "--here")
			wantText(t, name, told.out+told.err+run(t.Context(), p, "history", name, "--json").out, "the key is ***, not ***", "!"+readToken, "!"+adminToken)
		}
	})
}

// Who has not asked for a history and may not list logs is told so once, and nothing goes on asking.
func TestRefusedHistory(t *testing.T) {
	for setting, says := range map[string]string{"": "no history is kept: the store refuses it", "24h": "the history of a job could not be written: trying again"} {
		bubble(t, []string{"SOLOIST_HISTORY=" + setting}, func(t *testing.T) {
			p := host.Program{Store: refusing{new(local.Memory)}}
			for i := range 3 {
				p.Work = append(p.Work, soloist.Job{Name: fmt.Sprint("often-", i), Schedule: "@every 20s", Do: do})
			}
			run(t.Context(), p, "tick")
			time.Sleep(20 * time.Second)
			got := run(t.Context(), p, "tick")
			if n := strings.Count(got.err, says); n == 0 || (n == 1) != (setting == "") {
				t.Errorf("SOLOIST_HISTORY=%s: %q was said %d times", setting, says, n)
			}
		})
	}
}

// refusing is a memory whose logs may not be listed.
type refusing struct{ *local.Memory }

func (refusing) Logs(context.Context, string, func(string, int64) bool) error {
	return fmt.Errorf("list: %w", fs.ErrPermission)
}
