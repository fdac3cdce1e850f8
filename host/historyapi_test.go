package host_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist/host"
	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/store"
)

// A pastAnswer is what a test reads of a history.
type pastAnswer struct {
	Source, Note    string
	Matched, Offset int
	Outcomes        []struct {
		ID     string
		Status store.Status
		Token  int64
		Gap    bool
	}
}

// pastOf asks for the history of the job often.
func pastOf(t *testing.T, s site, query string) (answer pastAnswer) {
	t.Helper()
	got := s.get("/api/v1/jobs/often/history" + query)
	wantAnswer(t, query, got, http.StatusOK)
	if err := json.Unmarshal(got.Body.Bytes(), &answer); err != nil {
		t.Fatal(err)
	}
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

// The API has the outcomes of the log, in pages, by time and by outcome.
func TestHistoryInAPI(t *testing.T) {
	environment(t, "SOLOIST_HISTORY=24h")
	synctest.Test(t, func(t *testing.T) {
		backend := new(local.Memory)
		p := frequent(backend)
		ticks(t, p, 240)
		s := open(t, p)
		d := described(t, s)
		all := pastOf(t, s, "")
		if all.Source != "log" || all.Note != "" || all.Matched < 238 || len(all.Outcomes) != 100 || all.Outcomes[0].ID == "" {
			t.Errorf("got %d of %d outcomes of the %s: %s", len(all.Outcomes), all.Matched, all.Source, all.Note)
		}
		seen := 0
		for offset := 0; offset < all.Matched; offset += 100 {
			page := pastOf(t, s, fmt.Sprint("?offset=", offset))
			for i, o := range page.Outcomes {
				if want := all.Outcomes[0].Token - int64(offset+i); o.Token != want || o.Gap {
					t.Fatalf("outcome %d: got %+v, want the token %d", offset+i, o, want)
				}
			}
			seen += len(page.Outcomes)
		}
		if seen != all.Matched {
			t.Errorf("the pages have %d outcomes of %d", seen, all.Matched)
		}
		failed := pastOf(t, s, "?outcome=failed,stalled")
		for _, o := range failed.Outcomes {
			if o.Status != store.Failed {
				t.Errorf("got %+v", o)
			}
		}
		if failed.Matched < 23 || failed.Matched > 24 {
			t.Errorf("got %d failures of 24", failed.Matched)
		}
		since := time.Now().Add(-30 * time.Minute).UTC().Format(time.RFC3339)
		for _, query := range []string{"?since=30m", "?since=" + url.QueryEscape(since)} {
			if got := pastOf(t, s, query); got.Matched < 88 || got.Matched > 91 {
				t.Errorf("%s: got %d outcomes, want 90", query, got.Matched)
			}
		}
		for query, want := range map[string]string{"?since=x": "since is", "?since=2999-01-01": "has passed", "?outcome=failled": "failed", "?limit=101": "limit is", "?limit=0": "limit is",
			"?offset=-1": "offset is", "?of=1": "want since, outcome, offset or limit", "?since=1h&since=2h": "2 times", "?outcome=": "want one of"} {
			got := s.get("/api/v1/jobs/often/history" + query)
			wantAnswer(t, query, got, http.StatusBadRequest, want)
			d.wantAsDescribed(t, "GET", "/api/v1/jobs/often/history", got)
		}
		d.wantAsDescribed(t, "GET", "/api/v1/jobs/often/history", s.get("/api/v1/jobs/often/history"))
		d.wantAsDescribed(t, "GET", "/api/v1/jobs/none/history", s.get("/api/v1/jobs/none/history"))
		d.wantAsDescribed(t, "GET", "/api/v1/jobs/often", s.get("/api/v1/jobs/often"))
		wantAnswer(t, "the job", s.get("/api/v1/jobs/often"), http.StatusOK, `"log":true`)
		wantMetrics(t, s, 0, `soloist_storage_call_duration_seconds_count{operation="list-logs",result="ok"} 1`, `soloist_storage_call_duration_seconds_count{operation="read-log",result="ok"} 1`)
		s.wait()
	})
}

// A log that was read to its beginning has no more, however much further back is asked for.
func TestHistoryOfEverEarlierTimesIsReadOnce(t *testing.T) {
	environment(t, "SOLOIST_HISTORY=24h")
	synctest.Test(t, func(t *testing.T) {
		backend := &logs{Memory: new(local.Memory)}
		p := frequent(backend)
		ticks(t, p, 30)
		s := open(t, p)
		backend.calls.Store(0)
		for i := range 50 {
			got := pastOf(t, s, fmt.Sprint("?since=", 60+i, "m"))
			if got.Matched < 29 || got.Source != "log" {
				t.Fatalf("got %d outcomes of the %s, want 30 of the log", got.Matched, got.Source)
			}
		}
		if n := backend.calls.Load(); n != 1 {
			t.Errorf("the log was read %d times, want once", n)
		}
		s.wait()
	})
}

// However many ask for however long, a log is read once in five minutes. What has happened
// since is there all the same.
func TestHistoryInAPICostsLittle(t *testing.T) {
	environment(t, "SOLOIST_HISTORY=24h")
	synctest.Test(t, func(t *testing.T) {
		backend := &logs{Memory: new(local.Memory)}
		p := frequent(backend)
		ticks(t, p, 60)
		s := open(t, p)
		backend.calls.Store(0)
		s.get("/api/v1/jobs")
		s.get("/api/v1/jobs/often")
		if n := backend.calls.Load(); n > 0 {
			t.Errorf("a page reads the log %d times", n)
		}
		for i := range 30 {
			s.tick()
			time.Sleep(3 * time.Second)
			for range 20 {
				got := pastOf(t, s, "")
				if want := 60 + i; got.Matched < want || got.Matched > want+1 || got.Outcomes[0].Token-got.Outcomes[len(got.Outcomes)-1].Token != int64(len(got.Outcomes)-1) {
					t.Fatalf("after %d ticks: got %d outcomes", want, got.Matched)
				}
			}
			time.Sleep(17 * time.Second)
		}
		if n := backend.calls.Load(); n != 2 {
			t.Errorf("600 requests in ten minutes read the log %d times, want 2", n)
		}
		s.wait()
	})
}

// The answer marks what may be missing. It says if the log cannot be read, which is not tried again at once.
func TestHistoryInAPIWithTrouble(t *testing.T) {
	environment(t, "SOLOIST_HISTORY=24h")
	synctest.Test(t, func(t *testing.T) {
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
				if i != 19 {
					t.Errorf("outcome %d has a gap before it, want the oldest of a record", i)
				}
			}
		}
		if gaps != 1 {
			t.Errorf("got %d gaps", gaps)
		}
		time.Sleep(10 * time.Minute)
		err := errors.New("no route to the log")
		backend.err.Store(&err)
		backend.calls.Store(0)
		for range 100 {
			if got := pastOf(t, s, ""); got.Source != "record" || len(got.Outcomes) != 20 || !strings.Contains(got.Note, "no route to the log") {
				t.Fatalf("got %+v", got)
			}
		}
		if n := backend.calls.Load(); n != 1 {
			t.Errorf("100 requests asked %d times for a log that cannot be read", n)
		}
		backend.err.Store(nil)
		time.Sleep(10 * time.Second)
		if got := pastOf(t, s, ""); got.Source != "log" || got.Matched < 24 {
			t.Errorf("got %+v", got)
		}
		s.wait()
	})
}

// Without a log the record has the last outcomes, and the answer says so.
func TestHistoryInAPIWithoutLog(t *testing.T) {
	for name, env := range map[string]string{"": "set", "24h": "keeps no logs"} {
		environment(t, "SOLOIST_HISTORY="+name)
		synctest.Test(t, func(t *testing.T) {
			p := frequent(newGated(new(local.Memory), nil))
			ticks(t, p, 30)
			s := open(t, p)
			got := pastOf(t, s, "?limit=5&offset=3")
			if got.Source != "record" || got.Matched != 20 || len(got.Outcomes) != 5 || got.Offset != 3 || !strings.Contains(got.Note, env) {
				t.Errorf("%q: got %+v", name, got)
			}
			if failed := pastOf(t, s, "?outcome=failed"); failed.Matched != 2 {
				t.Errorf("%q: got %d failures, want 2", name, failed.Matched)
			}
			wantAnswer(t, "the job", s.get("/api/v1/jobs/often"), http.StatusOK, `"history":[`)
			if strings.Contains(s.get("/api/v1/jobs/often").Body.String(), `"log":true`) {
				t.Errorf("%q: there is a log", name)
			}
			s.wait()
		})
	}
}
