package host_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/host"
	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/store"
)

// aged runs some ticks over a store. The first run of each record waits a second
// for its token. Dates with a fraction of a second tell the time exactly, so that
// runs which start at once have the same start.
func aged(t *testing.T, backend store.Store) host.Program {
	t.Helper()
	slow := soloist.Job{Name: "slow", Schedule: "@every 1m", Do: func(context.Context, *soloist.Run) error {
		time.Sleep(150*time.Second + 250*time.Millisecond)
		return soloist.Skip("nothing new")
	}}
	p := host.Program{Work: append(work(), slow), Store: backend}
	time.Sleep(250 * time.Millisecond)
	run(t.Context(), p, "tick")
	time.Sleep(time.Minute)
	run(t.Context(), p, "tick")
	time.Sleep(90 * time.Minute)
	run(t.Context(), p, "tick")
	return p
}

func TestHistory(t *testing.T) {
	bubble(t, []string{"CONTAINER_APP_REPLICA_NAME=replica-a"}, func(t *testing.T) {
		p := aged(t, &local.Memory{})
		wantRun(t, p, "history", 0, `
			app demo on *local.Memory, 2000-01-01 01:36:01Z

			JOB           TICK                                                     FATE       ATTEMPT  REPLICA    START                 TOOK      TOKEN            REASON
			beat          2000-01-01 01:33:00Z                                     succeeded  1        replica-a  2000-01-01 01:33:31Z  0s        946684861000001  -
			beat          after 2000-01-01 00:01:00Z .. 2000-01-01 01:32:00Z (91)  missed     -        -          -                     -         -                a newer one was due
			beat          2000-01-01 00:01:00Z                                     succeeded  1        replica-a  2000-01-01 00:01:01Z  0s        946684861000000  -
			night-report  2000-01-01 01:30:00Z                                     failed     1        replica-a  2000-01-01 01:33:32Z  0s        946690412000000  no paper
			slow          after 2000-01-01 01:33:00Z .. 2000-01-01 01:36:00Z (3)   skipped    -        -          -                     -         -                overlap
			slow          2000-01-01 01:33:00Z                                     skipped    1        replica-a  2000-01-01 01:33:31Z  2m30.25s  946684861000001  nothing new
			slow          after 2000-01-01 00:03:00Z .. 2000-01-01 01:32:00Z (89)  missed     -        -          -                     -         -                a newer one was due
			slow          after 2000-01-01 00:01:00Z .. 2000-01-01 00:03:00Z (2)   skipped    -        -          -                     -         -                overlap
			slow          2000-01-01 00:01:00Z                                     skipped    1        replica-a  2000-01-01 00:01:01Z  2m30.25s  946684861000000  nothing new

			JOB           STATE       COUNTS
			beat          idle        2 succeeded, 91 missed
			night-report  failing x1  1 failed
			slow          idle        7 skipped, 89 missed
			leader        no record   -
		`)
		wantJSON(t, p, "history night-report --json", 0, `
			{"app":"demo","store":"*local.Memory","time":"2000-01-01T01:36:01.761Z","jobs":[
			{"job":"night-report","kind":"job","state":"failing","failures":1,"history":[
			{"id":"night-report@2000-01-01T01:30:00Z","tick":"2000-01-01T01:30:00Z","status":"failed","reason":"no\npaper",
			"attempt":1,"token":946690412000000,"replica":"replica-a",
			"start":"2000-01-01T01:33:32.532Z","end":"2000-01-01T01:33:32.532Z"}],"counts":{"failed":1}}]}
		`)
	})
}

// A range whose count stopped is told as such by log, history, JSON and page.
func TestHistoryOfLongRange(t *testing.T) {
	bubble(t, nil, func(t *testing.T) {
		p := host.Program{Store: &local.Memory{}, Work: []soloist.Work{soloist.Job{Name: "often", Schedule: "@every 1s", Late: soloist.Late{Missed: soloist.SkipMissed, Start: time.Millisecond}, Do: do}}}
		run(t.Context(), p, "tick")
		time.Sleep(48*time.Hour + 500*time.Millisecond)
		wantLines(t, p, "tick", 0, "at least 100000")
		wantLines(t, p, "history", 0, "(at least 100000)")
		wantLines(t, p, "history --json", 0, `"atLeast": true`)
		wantLines(t, p, "status", 0, "at least 100000 missed")
	})
}

// rows are the ticks and outcomes in a table of history.
func rows(out string) (all []string) {
	for line := range strings.Lines(out) {
		for _, s := range []string{"succeeded", "failed", "skipped", "missed", "abandoned"} {
			if before, _, ok := strings.Cut(line, "  "+s+"  "); ok && !strings.HasPrefix(line, " ") {
				all = append(all, strings.Join(strings.Fields(before), " ")+" "+s)
			}
		}
	}
	return all
}

func TestHistoryOfSome(t *testing.T) {
	environment(t, "CONTAINER_APP_REPLICA_NAME=replica-a")
	const newest, first, late = "beat 2000-01-01 01:33:00Z succeeded", "beat 2000-01-01 00:01:00Z succeeded", "beat after 2000-01-01 00:01:00Z .. 2000-01-01 01:32:00Z (91) missed"
	const report = "night-report 2000-01-01 01:30:00Z failed"
	synctest.Test(t, func(t *testing.T) {
		p := aged(t, &local.Memory{})
		p.Work = p.Work[:2]
		for _, tt := range []struct {
			args string
			want []string
		}{
			{"--job beat", []string{newest, late, first}},
			{"beat --outcome succeeded", []string{newest, first}},
			{"--outcome succeeded,failed -n 1", []string{newest, report}},
			{"--outcome missed --outcome failed", []string{late, report}},
			{"--since 1h", []string{newest, late, report}},
			{"--since 1d --limit 2", []string{newest, late, report}},
			{"--since 2000-01-01T01:32:30Z", []string{newest, report}}, // the report ended after that
			{"beat --since 2000-01-01", []string{newest, late, first}},
			{"beat@2000-01-01T00:01:00Z", []string{first}},
			{"beat@2000-01-01T01:01:00+01:00", []string{first}},
			{"beat@2000-01-01T01:00:00Z", []string{late}},
		} {
			got := run(t.Context(), p, append([]string{"history"}, strings.Fields(tt.args)...)...)
			if !slices.Equal(rows(got.out), tt.want) || got.code != 0 {
				t.Errorf("%s: got %d, %q, want %q", tt.args, got.code, rows(got.out), tt.want)
			}
		}
		wantEqual(t, "as the table shows it", rows(run(t.Context(), p, "history", "beat@2000-01-01 00:01:00Z").out), []string{first})
		const none = "demo: history: the record has no outcome of beat@2000-01-02T00:01:00Z: it keeps the newest ones only, and none of a run that has not ended, which status shows\n"
		wantLines(t, p, "history beat@2000-01-02T00:01:00Z", 1, none)
	})
}

// A pastAnswer is what a test reads of a history.
type pastAnswer struct {
	Source, Note    string
	Matched, Offset int
	Outcomes        []struct {
		ID     string
		Status event.Status
		Token  int64
		Gap    bool
	}
}

// pastOf asks for the history of the job often.
func pastOf(t *testing.T, s site, query string) (answer pastAnswer) {
	t.Helper()
	got := s.get("/api/v1/jobs/often/history" + query)
	wantAnswer(t, query, got, http.StatusOK)
	must(t, json.Unmarshal(got.Body.Bytes(), &answer))
	return answer
}

// logs is a memory whose calls for logs are counted, and fail while there is an error.
type logs struct {
	*local.Memory
	calls atomic.Int64
	err   atomic.Pointer[error]
}

func (l *logs) ReadLog(ctx context.Context, name string, offset int64, n int) ([]byte, error) {
	l.calls.Add(1)
	if err := l.err.Load(); err != nil {
		return nil, *err
	}
	return l.Memory.ReadLog(ctx, name, offset, n)
}

// ticks runs the program at so many ticks.
func ticks(t *testing.T, p host.Program, n int) {
	t.Helper()
	for range n {
		run(t.Context(), p, "tick")
		time.Sleep(20 * time.Second)
	}
}

// The API has the outcomes of the log, in pages, by time and by outcome, through the end of one process and the start of
// the next. So has the command, which shows 20 where no number is given. However many ask for however long, a log is read once in
// five minutes, and one that was read to its beginning has no more, however much further back is asked for. What has happened
// since is there all the same.
func TestHistoryInAPI(t *testing.T) {
	bubble(t, []string{"SOLOIST_HISTORY=24h"}, func(t *testing.T) {
		backend := &logs{Memory: new(local.Memory)}
		p := frequent(backend)
		ticks(t, p, 140)
		s := open(t, p)
		d := described(t, s)
		backend.calls.Store(0)
		wantAnswer(t, "the job", s.get("/api/v1/jobs/often"), http.StatusOK, `"log":true`)
		wantEqual(t, "how often a page reads the log", backend.calls.Load(), 0)
		all, rest := pastOf(t, s, ""), pastOf(t, s, "?offset=100")
		if all.Source != "log" || all.Note != "" || len(all.Outcomes) != 100 || len(rest.Outcomes) != all.Matched-100 || all.Outcomes[0].ID == "" {
			t.Errorf("got %d and %d of %d outcomes of the %s: %s", len(all.Outcomes), len(rest.Outcomes), all.Matched, all.Source, all.Note)
		}
		for i, o := range append(all.Outcomes, rest.Outcomes...) {
			if want := all.Outcomes[0].Token - int64(i); o.Token != want || o.Gap {
				t.Fatalf("outcome %d: got %+v, want the token %d", i, o, want)
			}
		}
		failed := pastOf(t, s, "?outcome=failed,stalled")
		for _, o := range failed.Outcomes {
			wantEqual(t, "status", o.Status, event.Failed)
		}
		wantWithin(t, "failures of 14", failed.Matched, 13, 14)
		since := time.Now().Add(-30 * time.Minute).UTC().Format(time.RFC3339)
		for _, query := range []string{"?since=30m", "?since=" + url.QueryEscape(since)} {
			wantWithin(t, query, pastOf(t, s, query).Matched, 88, 91)
		}
		for args, want := range map[string]int{"": 20, "-n 1000": all.Matched, "-n 100 --outcome failed": failed.Matched, "--since 30m": 90} {
			wantWithin(t, args, len(historyOf(t, p, strings.Fields(args)...)), want-2, want+1)
		}
		for query, want := range map[string]string{"?since=x": "since is", "?since=2999-01-01": "has passed", "?outcome=failled": "failed", "?limit=101": "limit is", "?limit=0": "limit is",
			"?offset=-1": "offset is", "?of=1": "want since, outcome, offset or limit", "?since=1h&since=2h": "2 times", "?outcome=": "want one of"} {
			got := s.get("/api/v1/jobs/often/history" + query)
			wantAnswer(t, query, got, http.StatusBadRequest, want)
			d.wantAsDescribed(t, "GET", "/api/v1/jobs/often/history", got)
		}
		for _, path := range []string{"/api/v1/jobs/often/history", "/api/v1/jobs/none/history", "/api/v1/jobs/often"} {
			d.wantAsDescribed(t, "GET", path, s.get(path))
		}
		backend.calls.Store(0)
		for i := range 30 {
			s.tick()
			time.Sleep(3 * time.Second)
			got := pastOf(t, s, fmt.Sprint("?since=", 60+i, "m"))
			if n := len(got.Outcomes); got.Source != "log" || got.Outcomes[0].Token-got.Outcomes[n-1].Token != int64(n-1) {
				t.Fatalf("after %d ticks: got %d outcomes of the %s", i, n, got.Source)
			}
			time.Sleep(17 * time.Second)
		}
		wantEqual(t, "how often requests of the next ten minutes read the log", backend.calls.Load(), 1)
	})
}

// The answer, and the command, mark what may be missing. It says if the log cannot be read, which is not tried again at once.
func TestHistoryInAPIWithTrouble(t *testing.T) {
	bubble(t, []string{"SOLOIST_HISTORY=24h"}, func(t *testing.T) {
		backend := &logs{Memory: new(local.Memory)}
		p := frequent(backend)
		ticks(t, p, 5)
		t.Setenv("SOLOIST_HISTORY", "")
		ticks(t, p, 30)
		t.Setenv("SOLOIST_HISTORY", "24h")
		ticks(t, p, 1)
		s := open(t, p)
		gaps := 0
		for i, o := range pastOf(t, s, "").Outcomes {
			if o.Gap {
				gaps++
				wantEqual(t, "the outcome with a gap before it", i, 19)
			}
		}
		said := strings.Count(run(t.Context(), p, "history", "-n", "1000").out, "before this, outcomes may be lost")
		wantEqual(t, "gaps, also of the command", []int{gaps, said}, []int{1, 1})
		time.Sleep(10 * time.Minute)
		err := errors.New("no route to the log")
		backend.err.Store(&err)
		backend.calls.Store(0)
		for range 100 {
			if got := pastOf(t, s, ""); got.Source != "record" || len(got.Outcomes) != 20 || !strings.Contains(got.Note, "no route to the log") {
				t.Fatalf("got %+v", got)
			}
		}
		wantEqual(t, "how often 100 requests asked for a log that cannot be read", backend.calls.Load(), 1)
		backend.err.Store(nil)
		time.Sleep(10 * time.Second)
		if got := pastOf(t, s, ""); got.Source != "log" || got.Matched < 24 {
			t.Errorf("got %+v", got)
		}
	})
}

// Without a log the record has the last outcomes, and the answer says so: without the setting, for which nothing is
// written, and where the store keeps no logs, which is warned of.
func TestHistoryWithoutLog(t *testing.T) {
	for setting, note := range map[string]string{"": "set", "24h": "keeps no logs"} {
		bubble(t, []string{"SOLOIST_HISTORY=" + setting}, func(t *testing.T) {
			backend := new(local.Memory)
			p := frequent(backend)
			if setting != "" {
				p.Store = newGated(backend, nil)
			}
			warned := strings.Contains(run(t.Context(), p, "tick").err, "SOLOIST_HISTORY has no effect")
			wantEqual(t, "warned", warned, setting != "")
			ticks(t, p, 30)
			s := open(t, p)
			got := pastOf(t, s, "?limit=5&offset=3")
			if got.Source != "record" || got.Matched != 20 || len(got.Outcomes) != 5 || got.Offset != 3 ||
				!strings.Contains(got.Note, note) {
				t.Errorf("%q: got %+v", setting, got)
			}
			wantEqual(t, "failures", pastOf(t, s, "?outcome=failed").Matched, 2)
			wantEqual(t, "outcomes of the command", len(historyOf(t, p, "-n", "1000")), 20)
			job := s.get("/api/v1/jobs/often")
			wantAnswer(t, "the job", job, http.StatusOK, `"history":[`)
			logs := 0
			err := backend.Logs(t.Context(), "demo/often", func(string, int64) bool { logs++; return true })
			if err != nil || logs > 0 || strings.Contains(job.Body.String(), `"log":true`) {
				t.Errorf("%q: there are %d logs, %v, or the job has one", setting, logs, err)
			}
		})
	}
}

// frequent is a program whose job runs each 20 s, and fails each tenth time.
func frequent(backend store.Store) host.Program {
	n := 0
	return host.Program{Store: backend, Work: []soloist.Work{soloist.Job{Name: "often", Schedule: "@every 20s",
		Do: func(context.Context, *soloist.Run) error {
			if n++; n%10 == 0 {
				return errors.New("no paper")
			}
			return nil
		}}}}
}

// historyOf is what history tells of the job, as JSON.
func historyOf(t *testing.T, p host.Program, args ...string) (outcomes []struct {
	Gap bool
}) {
	t.Helper()
	got := run(t.Context(), p, append(append([]string{"history"}, args...), "--json")...)
	var body struct {
		Jobs []struct {
			History json.RawMessage
			Error   string
		}
	}
	if err := json.Unmarshal([]byte(got.out), &body); err != nil || got.code != 0 || len(body.Jobs) != 1 || body.Jobs[0].Error != "" {
		t.Fatalf("%v in %+v", err, got)
	}
	must(t, json.Unmarshal(body.Jobs[0].History, &outcomes))
	return outcomes
}
