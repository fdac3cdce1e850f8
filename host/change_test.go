package host_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host"
	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/store"
)

// An operator does over HTTP what the commands do, and the orders say who it was.
func TestOrdersOverHTTP(t *testing.T) {
	environment(t, "SOLOIST_ADMIN_TOKEN="+adminToken)
	synctest.Test(t, func(t *testing.T) {
		cancelled := make(chan error, 1)
		long := soloist.Job{Name: "long", Schedule: "@every 1m", Do: func(ctx context.Context, _ *soloist.Run) error {
			select {
			case <-ctx.Done():
				cancelled <- context.Cause(ctx)
				return ctx.Err()
			case <-time.After(30 * time.Second):
				return nil
			}
		}}
		p := host.Program{Work: []soloist.Work{long}, Store: &local.Memory{}}
		s := open(t, p)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		replica := &soloist.Scheduler{App: "demo", Jobs: []soloist.Job{long}, Store: p.Store, Logger: slog.New(slog.DiscardHandler)}
		go func() { ended <- replica.Run(ctx) }()
		d := described(t, s)
		cookies := signedIn(t, s, adminToken)
		order := func(what, body string, code int, parts ...string) {
			t.Helper()
			path := "/api/v1/jobs/long/" + what
			got := s.ask("POST", path, body, cookies)
			wantAnswer(t, what, got, code, parts...)
			d.wantAsDescribed(t, "POST", path, got)
		}
		time.Sleep(time.Second)
		order("cancel", "", 409, "nothing runs")
		order("pause", `{"reason":"the printer is on fire","until":"2000-01-01T01:00:00Z"}`, 200, `"kind":"pause"`, `"by":"Ada"`)
		time.Sleep(10 * time.Second)
		wantAnswer(t, "paused", s.get("/api/v1/jobs"), 200, `"state":"paused"`, `"pause":{"by":"Ada","reason":"the printer is on fire","at":"2000-01-01T00:00:01Z","until":"2000-01-01T01:00:00Z"}`)
		time.Sleep(2 * time.Minute)
		wantAnswer(t, "still paused", s.get("/api/v1/jobs"), 200, `"state":"paused"`)
		order("run", `{"by":"Grace"}`, 200, `"request":"ordered-`)
		time.Sleep(10 * time.Second)
		wantAnswer(t, "running", s.get("/api/v1/jobs"), 200, `"state":"running"`)
		order("cancel", `{"reason":"not now"}`, 200, `"kind":"cancel"`)
		if err := <-cancelled; !errors.Is(err, soloist.ErrCancelled) {
			t.Errorf("the run ended with %v", err)
		}
		time.Sleep(3 * time.Second)
		order("resume", "", 200, `"kind":"resume"`)
		got := s.get("/api/v1/jobs/long")
		wantAnswer(t, "history", got, 200, `"status":"cancelled"`)
		d.wantAsDescribed(t, "GET", "/api/v1/jobs/long", got)
		if strings.Contains(got.Body.String(), `"pause":{"by"`) {
			t.Errorf("after the resume: got %s", got.Body)
		}
		got = s.get("/api/v1/orders")
		d.wantAsDescribed(t, "GET", "/api/v1/orders", got)
		wantOrders(t, got.Body.String(), "resume by Ada", "cancel by Ada", "run by Grace", "pause by Ada")
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		s.wait()
	})
}

// wantOrders wants these orders, newest first.
func wantOrders(t *testing.T, text string, want ...string) {
	t.Helper()
	var answer struct{ Orders []store.Order }
	if err := json.Unmarshal([]byte(text), &answer); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, o := range answer.Orders {
		got = append(got, string(o.Kind)+" by "+o.By)
	}
	if strings.Join(got, ", ") != strings.Join(want, ", ") {
		t.Errorf("got the orders %q, want %q", got, want)
	}
}

// Each change needs the admin token, and the page of no other site can ask for it.
func TestChangesNeedAdminToken(t *testing.T) {
	environment(t, "SOLOIST_ADMIN_TOKEN="+adminToken, "SOLOIST_READ_TOKEN="+readToken)
	s := open(t, host.Program{Work: obedient(), Store: &local.Memory{}})
	reader, admin := signedIn(t, s, readToken), signedIn(t, s, adminToken)
	d := described(t, s, "Bearer "+readToken)
	for _, what := range []string{"run", "pause", "resume", "cancel", "step-down", "unlock"} {
		path := "/api/v1/jobs/beat/" + what
		for _, test := range []struct {
			name    string
			body    string
			cookies []*http.Cookie
			header  []string
			code    int
		}{
			{"no token", "", nil, nil, 401},
			{"the read token", "", reader, nil, 401},
			{"another site", "", admin, []string{"Sec-Fetch-Site", "cross-site"}, 403},
			{"another site of the domain", "", admin, []string{"Sec-Fetch-Site", "same-site"}, 403},
			{"another origin", "", admin, []string{"Sec-Fetch-Site", "", "Origin", "http://evil.example"}, 403},
			{"a form", "by=Eve", admin, []string{"Content-Type", "application/x-www-form-urlencoded"}, 415},
			{"two lines", `{"reason":"a\nb"}`, admin, nil, 400},
			{"a long name", `{"by":"` + strings.Repeat("x", 201) + `"}`, admin, nil, 400},
			{"the past", `{"until":"1999-01-01T00:00:00Z"}`, admin, nil, 400},
			{"another field", `{"reson":"x"}`, admin, nil, 400},
		} {
			got := s.ask("POST", path, test.body, test.cookies, test.header...)
			wantAnswer(t, what+", "+test.name, got, test.code, `{"error":"`)
			d.wantAsDescribed(t, "POST", path, got)
		}
		wantAnswer(t, "unknown job", s.ask("POST", "/api/v1/jobs/none/"+what, "", admin), 404)
	}
	wantAnswer(t, "no lease", s.ask("POST", "/api/v1/jobs/cache/cancel", "", admin), 409)
	s.wait()
}

// A store that keeps no orders says so; a lease is ended all the same.
func TestUnlockOverHTTP(t *testing.T) {
	environment(t, "SOLOIST_ADMIN_TOKEN="+adminToken)
	s := open(t, host.Program{Work: work()[:1], Store: claimed(t, true, func(*store.Record) {}), Now: spring})
	d, path := described(t, s), "/api/v1/jobs/beat/unlock"
	for _, code := range []int{200, 409} {
		got := s.send("POST", path, "Bearer "+adminToken)
		wantAnswer(t, "unlock", got, code)
		d.wantAsDescribed(t, "POST", path, got)
		got = s.ask("POST", path, `{"now":true}`, nil, "Authorization", "Bearer "+adminToken)
		d.wantAsDescribed(t, "POST", path, got)
	}
	s.wait()
	plain := open(t, host.Program{Work: work()[:1], Store: struct{ store.Store }{&local.Memory{}}})
	wantAnswer(t, "no orders", plain.send("POST", "/api/v1/jobs/beat/pause", "Bearer "+adminToken), 409, "keeps no orders")
	plain.wait()
}
