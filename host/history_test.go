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
	for _, d := range []time.Duration{250 * time.Millisecond, time.Minute, 90 * time.Minute} {
		time.Sleep(d)
		call(t, p, "tick")
	}
	return p
}

func TestHistory(t *testing.T) {
	bubble(t, []string{"CONTAINER_APP_REPLICA_NAME=replica-a"}, func(t *testing.T) {
		p := aged(t, &local.Memory{})
		wantRun(t, p, "history", 0, `
			app demo on *local.Memory, 2000-01-01 01:36:01Z

			JOB           TICK                                                     OUTCOME    ATTEMPT  REPLICA    START                 TOOK      TOKEN            REASON
			slow          after 2000-01-01 01:33:00Z .. 2000-01-01 01:36:00Z (3)   skipped    -        -          -                     -         -                overlap
			beat          2000-01-01 01:33:00Z                                     succeeded  1        replica-a  2000-01-01 01:33:31Z  0s        946684861000001  -
			slow          2000-01-01 01:33:00Z                                     skipped    1        replica-a  2000-01-01 01:33:31Z  2m30.25s  946684861000001  nothing new
			beat          after 2000-01-01 00:01:00Z .. 2000-01-01 01:32:00Z (91)  missed     -        -          -                     -         -                a newer one was due
			slow          after 2000-01-01 00:03:00Z .. 2000-01-01 01:32:00Z (89)  missed     -        -          -                     -         -                a newer one was due
			night-report  2000-01-01 01:30:00Z                                     failed     1        replica-a  2000-01-01 01:33:32Z  0s        946690412000000  no paper
			slow          after 2000-01-01 00:01:00Z .. 2000-01-01 00:03:00Z (2)   skipped    -        -          -                     -         -                overlap
			beat          2000-01-01 00:01:00Z                                     succeeded  1        replica-a  2000-01-01 00:01:01Z  0s        946684861000000  -
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
	const newest, first, late = "beat 2000-01-01 01:33:00Z succeeded", "beat 2000-01-01 00:01:00Z succeeded", "beat after 2000-01-01 00:01:00Z .. 2000-01-01 01:32:00Z (91) missed"
	const report = "night-report 2000-01-01 01:30:00Z failed"
	bubble(t, []string{"CONTAINER_APP_REPLICA_NAME=replica-a"}, func(t *testing.T) {
		p := aged(t, &local.Memory{})
		p.Work = p.Work[:2]
		for args, want := range map[string][]string{
			"--job beat":                        {newest, late, first},
			"beat --outcome succeeded":          {newest, first},
			"--outcome succeeded,failed -n 2":   {newest, report},
			"--outcome missed --outcome failed": {late, report},
			"--since 1h":                        {newest, late, report},
			"--since 1d --limit 2":              {newest, late},
			"--since today":                     {newest, late, report, first},
			"--since 2000-01-01T01:32:30Z":      {newest, report}, // the report ended after that
			"beat --since 2000-01-01":           {newest, late, first},
			"beat@2000-01-01T00:01:00Z":         {first},
			"beat@2000-01-01T01:01:00+01:00":    {first},
			"beat@2000-01-01T01:00:00Z":         {late},
		} {
			wantEqual(t, args, rows(wantLines(t, p, "history "+args, 0).out), want)
		}
		wantLines(t, p, "history -n 3", 0, "-n, up to 1000, shows older ones")
		wantLines(t, p, "history", 0, "!shows older ones")
		wantEqual(t, "as the table shows it", rows(run(t.Context(), p, "history", "beat@2000-01-01 00:01:00Z").out), []string{first})
		const none = "demo: history: the record has no outcome of beat@2000-01-02T00:01:00Z: it keeps the newest ones only, and none of a run that has not ended, which status shows\n"
		wantLines(t, p, "history beat@2000-01-02T00:01:00Z", 1, none)
	})
}

// A singleton whose runner died has neither a tick nor an end: it counts from its start.
func TestHistoryHasADeadSingletonSince(t *testing.T) {
	bubble(t, nil, func(t *testing.T) {
		s := newScene(t, nil, soloist.Singleton{Name: "feed", Do: lasts(24 * time.Hour)})
		s.up("a")
		s.until("00:11:30")
		s.cut("a")
		s.up("b")
		s.until("00:23:00")
		wantEqual(t, "rows", rows(wantLines(t, s.p, "history feed --since 1h --outcome abandoned", 0, "its runner died").out), []string{"feed - abandoned"})
		wantEqual(t, "rows", len(rows(wantLines(t, s.p, "history feed --since 10m", 0).out)), 0)
		s.end()
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
		call(t, p, "tick")
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
		wantEqual(t, "source and note", all.Source+all.Note, "log")
		wantEqual(t, "outcomes", []int{len(all.Outcomes), len(rest.Outcomes)}, []int{100, all.Matched - 100})
		for i, o := range append(all.Outcomes, rest.Outcomes...) {
			if want := all.Outcomes[0].Token - int64(i); o.Token != want || o.Gap || o.ID == "" {
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
			wantWithin(t, args, historyOf(t, p, args), want-2, want+1)
		}
		for query, want := range map[string]string{"?since=x": "since is", "?since=2999-01-01": "has passed", "?outcome=failled": "failed", "?limit=101": "limit is", "?limit=0": "limit is",
			"?offset=-1": "offset is", "?of=1": "want since, outcome, run, offset or limit", "?since=1h&since=2h": "2 times", "?outcome=": "want one of"} {
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

// The timeline is the newest of all jobs, also where records have too few outcomes, or none of a backfill, and it reads no log
// for what records have.
func TestTimelineOfLogs(t *testing.T) {
	bubble(t, []string{"SOLOIST_HISTORY=24h"}, func(t *testing.T) {
		backend := &logs{Memory: new(local.Memory)}
		p := frequent(backend)
		rare := soloist.Job{Name: "rare", Schedule: "@every 10m", Do: do}
		p.Work = append(p.Work, rare)
		ticks(t, p, 100)
		out := func(args string) (all []string, text string) {
			t.Helper()
			backend.calls.Store(0)
			text = run(t.Context(), p, strings.Fields("history "+args)...).out
			return rows(text), text
		}
		all, text := out("-n 60")
		wantEqual(t, "rows", len(all), 60)
		wantText(t, "rows", text, "\nrare   2000", "-n, up to 1000, shows older ones")
		if !slices.IsSortedFunc(all, func(a, b string) int { return strings.Compare(strings.Fields(b)[2], strings.Fields(a)[2]) }) {
			t.Errorf("not the newest first:\n%s", text)
		}
		_, text = out("often")
		wantEqual(t, "readings of a log that the record makes up for", backend.calls.Load(), 0)
		wantText(t, "the newest 20", text, "-n, up to 1000, shows older ones")
		wantLines(t, p, "backfill often --from 1999-12-31T22:00:00Z --to 1999-12-31T22:01:00Z --all", 0, "4 ticks")
		ticks(t, p, 1)
		for _, args := range []string{"", "often", "-n 60"} {
			if all, text := out(args); len(all) < 20 || !strings.Contains(text, "1999-12-31 22:01:00Z") {
				t.Errorf("%q: got no tick of the backfill in\n%s", args, text)
			}
		}
	})
}

// One flag has each command that shows times show them in a zone, in that of each job, or as spans.
func TestTimesAsWanted(t *testing.T) {
	bubble(t, []string{"CONTAINER_APP_REPLICA_NAME=replica-a"}, func(t *testing.T) {
		p := aged(t, &local.Memory{})
		run(t.Context(), p, "pause", "night-report", "--until", "2h")
		for args, want := range map[string]string{
			"history --tz utc":                                   "  2000-01-01 01:30:00Z  ",
			"history --tz job":                                   "  2000-01-01 02:30:00 +01:00  ",
			"history beat --tz job":                              "  2000-01-01 01:33:00Z  ",
			"history --tz Asia/Tokyo":                            "Memory, 2000-01-01 10:36:01 +09:00\n",
			"history --tz ago":                                   "  6m1s ago  ",
			"audit --tz job":                                     "  2000-01-01 04:36:01 +01:00  ",
			"audit --tz ago":                                     "  in 2h  ",
			"audit --tz Asia/Tokyo":                              "  2000-01-01 12:36:01 +09:00  ",
			"next night-report --tz utc -n 1":                    "TICK                  FROM NOW\n2000-01-02 01:30:00Z  in 23h\n",
			"next night-report --tz job -n 1":                    "  Sun 2000-01-02 02:30:00 +01:00  ",
			"next night-report --tz ago -n 1":                    "\nFROM NOW\nin 23h\n",
			"status --tz ago":                                    "  in 23h\n",
			"status --tz job":                                    " Jan 2 02:30 in 23h\n",
			"status night-report --tz ago":                       "next      in 23h\n",
			"status night-report --tz utc":                       "2000-01-02 01:30:00Z in 23h\n",
			"history --since yesterday":                          "2000-01-01 01:30:00Z",
			"history --tz job night-report@2000-01-01T01:30:00Z": "  2000-01-01 02:30:00 +01:00  ",
		} {
			wantLines(t, p, args, 0, want)
		}
		p.Now = func() time.Time { return time.Date(2000, 1, 1, 23, 30, 0, 0, time.UTC) } // it is tomorrow in Berlin
		wantLines(t, p, "history night-report --tz job --since today", 0, "!no paper")
	})
}

// The answer, and the command, mark what may be missing. It says if the log cannot be read, which is not tried again at once.
func TestHistoryInAPIWithTrouble(t *testing.T) {
	bubble(t, []string{"SOLOIST_HISTORY=24h"}, func(t *testing.T) {
		backend := &logs{Memory: new(local.Memory)}
		p := frequent(backend)
		ticks(t, p, 5)
		t.Setenv("SOLOIST_HISTORY", "0")
		ticks(t, p, 30)
		t.Setenv("SOLOIST_HISTORY", "24h")
		ticks(t, p, 1)
		s := open(t, p)
		var gaps []int
		for i, o := range pastOf(t, s, "").Outcomes {
			if o.Gap {
				gaps = append(gaps, i)
			}
		}
		wantEqual(t, "the outcomes with a gap before them", gaps, []int{19})
		wantEqual(t, "gaps of the command", strings.Count(call(t, p, "history -n 1000").out, "before this, outcomes may be lost"), 1)
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
		got := pastOf(t, s, "")
		wantEqual(t, "source", got.Source, "log")
		wantWithin(t, "outcomes", got.Matched, 24, 36)
	})
}

// Without a log the record has the last outcomes, and the answer says so: with the setting 0, for which nothing is
// written, and where the store keeps no logs, which is warned of if a history was asked for.
func TestHistoryWithoutLog(t *testing.T) {
	for setting, note := range map[string]string{"0": "is 0", "": "keeps no logs", "24h": "keeps no logs"} {
		bubble(t, []string{"SOLOIST_HISTORY=" + setting}, func(t *testing.T) {
			backend := new(local.Memory)
			p := frequent(backend)
			if setting != "0" {
				p.Store = newGated(backend, nil)
			}
			wantEqual(t, "warned", strings.Contains(call(t, p, "tick").err, "SOLOIST_HISTORY has no effect"), setting == "24h")
			ticks(t, p, 30)
			s := open(t, p)
			got := pastOf(t, s, "?limit=5&offset=3")
			wantText(t, "note", got.Note, note)
			wantEqual(t, "source", got.Source, "record")
			wantEqual(t, "outcomes, of how many, and from which on", []int{len(got.Outcomes), got.Matched, got.Offset}, []int{5, 20, 3})
			wantEqual(t, "failures", pastOf(t, s, "?outcome=failed").Matched, 2)
			wantEqual(t, "outcomes of the command", historyOf(t, p, "-n 1000"), 20)
			wantAnswer(t, "the job", s.get("/api/v1/jobs/often"), http.StatusOK, `"history":[`, `!"log":true`)
			must(t, backend.Logs(t.Context(), "demo/often", func(name string, _ int64) bool { t.Errorf("there is the log %s", name); return true }))
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

// historyOf is how many outcomes history tells of the job, as JSON.
func historyOf(t *testing.T, p host.Program, args string) int {
	t.Helper()
	var body struct {
		Jobs []struct {
			History []struct{}
			Error   string
		}
	}
	must(t, json.Unmarshal([]byte(wantLines(t, p, "history --json "+args, 0).out), &body))
	if len(body.Jobs) != 1 || body.Jobs[0].Error != "" {
		t.Fatalf("got %+v", body)
	}
	return len(body.Jobs[0].History)
}
