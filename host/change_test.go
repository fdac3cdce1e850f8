package host_test

import (
	"context"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host"
	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/internal/record"
	"github.com/soloist-go/soloist/store"
)

// An operator does over HTTP what the commands do, and the orders say who it was.
func TestOrdersOverHTTP(t *testing.T) {
	bubble(t, []string{"SOLOIST_ADMIN_TOKEN=" + adminToken}, func(t *testing.T) {
		p := host.Program{Work: []soloist.Work{lastingJob("long", "@every 1m", 30*time.Second)}, Store: &local.Memory{}}
		s := open(t, p)
		defer replica(t, p, "replica-a")()
		d := described(t, s)
		cookies := signedIn(t, s, adminToken)
		time.Sleep(time.Second)
		for _, order := range []struct {
			what, body  string
			code        int
			says        string
			after, then string // ten seconds later, of the job
		}{
			{"cancel", "", 409, "nothing runs", `"state":"idle"`, ""},
			{"pause", `{"reason":"the printer is on fire","until":"2000-01-01T01:00:00Z"}`, 200, `"by":"Ada"`, `"state":"paused"`,
				`"pause":{"by":"Ada","reason":"the printer is on fire","at":"2000-01-01T00:00:11Z","until":"2000-01-01T01:00:00Z"}`},
			{"run", `{"by":"Grace"}`, 200, `"request":"ordered-`, `"state":"running"`, ""},
			{"cancel", `{"reason":"not now"}`, 200, `"kind":"cancel"`, `"state":"paused"`, `"status":"cancelled"`},
			{"resume", "", 200, `"kind":"resume"`, `"state":"idle"`, ""},
		} {
			path := "/api/v1/jobs/long"
			got := s.ask("POST", path+"/"+order.what, order.body, cookies)
			wantAnswer(t, order.what, got, order.code, order.says)
			d.wantAsDescribed(t, "POST", path+"/"+order.what, got)
			time.Sleep(10 * time.Second)
			got = s.get(path)
			wantAnswer(t, "after "+order.what, got, 200, order.after, order.then)
			d.wantAsDescribed(t, "GET", path, got)
		}
		got := s.get("/api/v1/orders")
		d.wantAsDescribed(t, "GET", "/api/v1/orders", got)
		var by []string
		for _, m := range regexp.MustCompile(`"kind":"(\w+)","job":"long","by":"(\w+)"`).FindAllStringSubmatch(got.Body.String(), -1) {
			by = append(by, m[1]+" by "+m[2])
		}
		wantEqual(t, "the orders", strings.Join(by, ", "), "resume by Ada, cancel by Ada, run by Grace, pause by Ada")
	})
}

// Each change needs the admin token, and the page of no other site can ask for it.
func TestChangesNeedAdminToken(t *testing.T) {
	environment(t, "SOLOIST_ADMIN_TOKEN="+adminToken, "SOLOIST_READ_TOKEN="+readToken)
	s := open(t, host.Program{Work: obedient(), Store: &local.Memory{}})
	reader, admin := signedIn(t, s, readToken), signedIn(t, s, adminToken)
	d := described(t, s, "Bearer "+readToken)
	for _, what := range []string{"run", "pause", "resume", "cancel", "step-down", "unlock"} {
		path := "/api/v1/jobs/beat/" + what
		want := func(name, body string, cookies []*http.Cookie, code int, header ...string) {
			t.Helper()
			got := s.ask("POST", path, body, cookies, header...)
			wantAnswer(t, what+", "+name, got, code, `{"error":"`)
			d.wantAsDescribed(t, "POST", path, got)
		}
		want("no token", "", nil, 401)
		want("the read token", "", reader, 401)
		want("another site", "", admin, 403, "Sec-Fetch-Site", "cross-site")
		want("another site of the domain", "", admin, 403, "Sec-Fetch-Site", "same-site")
		want("another origin", "", admin, 403, "Sec-Fetch-Site", "", "Origin", "http://evil.example")
		want("a form", "by=Eve", admin, 415, "Content-Type", "application/x-www-form-urlencoded")
		want("two lines", `{"reason":"a\nb"}`, admin, 400)
		want("a long name", `{"by":"`+strings.Repeat("x", 201)+`"}`, admin, 400)
		want("the past", `{"until":"1999-01-01T00:00:00Z"}`, admin, 400)
		want("another field", `{"reson":"x"}`, admin, 400)
		wantAnswer(t, "unknown job", s.ask("POST", "/api/v1/jobs/none/"+what, "", admin), 404)
	}
	wantAnswer(t, "no lease", s.ask("POST", "/api/v1/jobs/cache/cancel", "", admin), 409)
}

// A store that keeps no orders says so; a lease is ended all the same.
func TestUnlockOverHTTP(t *testing.T) {
	environment(t, "SOLOIST_ADMIN_TOKEN="+adminToken)
	s := open(t, host.Program{Work: work()[:1], Store: claimed(t, true, func(*record.Record) {}), Now: spring})
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
}

// The answer to a resume says that the settings pause the job too: it stays paused.
func TestResumeOfJobPausedBySettings(t *testing.T) {
	bubble(t, []string{"SOLOIST_ADMIN_TOKEN=" + adminToken, "SOLOIST_JOB_BEAT_PAUSED=true"}, func(t *testing.T) {
		s := open(t, host.Program{Store: &local.Memory{}, Work: work()})
		s.tick()
		for job, paused := range map[string]bool{"beat": true, "night-report": false} {
			got := s.send("POST", "/api/v1/jobs/"+job+"/resume", "Bearer "+adminToken)
			wantAnswer(t, "resume", got, 200, `"kind":"resume"`)
			wantEqual(t, "told", strings.Contains(got.Body.String(), "the settings of this replica pause "+job+" too"), paused)
		}
		time.Sleep(time.Minute)
		wantAnswer(t, "after the resume", s.get("/api/v1/jobs/beat"), 200, `"state":"paused"`)
	})
}

// A run that ends while the order to hand it over is written is no reason to call the order
// refused. Nor is one that does not return.
func TestStepDownOfRunThatEnds(t *testing.T) {
	for ends, parts := range map[bool][]string{
		true:  {`"status":"ordered"`, `"kind":"step-down"`, `"note":"its run is over"`},
		false: {`{"job":"late","status":"stopping"`, `"note":"its run has not returned after 1m25s"`},
	} {
		bubble(t, []string{"SOLOIST_ADMIN_TOKEN=" + adminToken}, func(t *testing.T) {
			backend, release := newGated(&local.Memory{}, nil), make(chan struct{})
			p := host.Program{Work: late(release), Store: backend}
			if ends {
				p.Work = []soloist.Work{lastingJob("late", "@every 1m", 6*time.Second)}
			}
			s := open(t, p)
			ended := s.underway(5 * time.Second)
			backend.set(func(op, _ string) error {
				if op == "write document" {
					time.Sleep(2 * time.Second)
				}
				return nil
			})
			wantAnswer(t, "step down", s.send(http.MethodPost, "/api/v1/jobs/late/step-down", "Bearer "+adminToken), 202, parts...)
			close(release)
			ended()
		})
	}
}

// In an outage a run that goes on without its lease is told as trouble, though the store tells
// nothing new of its job.
func TestOverrunInOutageIsTrouble(t *testing.T) {
	bubble(t, nil, func(t *testing.T) {
		release := make(chan struct{})
		deaf := soloist.Job{Name: "deaf", Schedule: "@every 1m", Do: func(context.Context, *soloist.Run) error { <-release; return nil }}
		backend := newGated(&local.Memory{}, nil)
		s := open(t, host.Program{Work: []soloist.Work{deaf}, Store: backend})
		ended := s.underway(5 * time.Second)
		wantAnswer(t, "before", s.get("/api/v1/jobs"), 200, `"trouble":0`)
		backend.set(refuse(errDown))
		time.Sleep(2 * time.Minute)
		wantAnswer(t, "healthz", s.get("/healthz"), 503, `"status":"overrun"`)
		s.get("/api/v1/jobs") // has the records read
		time.Sleep(5 * time.Second)
		wantAnswer(t, "in the outage", s.get("/api/v1/jobs"), 200, `"trouble":1`, `"trouble":true`)
		backend.set(nil)
		close(release)
		ended()
	})
}

// A step-down is answered after the grace, which is longer than other answers may take. The lease is free by then.
func TestStepDown(t *testing.T) {
	bubble(t, []string{"SOLOIST_ADMIN_TOKEN=" + adminToken, "CONTAINER_APP_REPLICA_NAME=replica-a"}, func(t *testing.T) {
		backend := &local.Memory{}
		c, run := connected(t, backend, obedient()[:1])
		want := func(code int, parts ...string) {
			t.Helper()
			got, body, err := c.post("/api/v1/jobs/long/step-down", "Content-Type: application/json\r\nAuthorization: Bearer "+adminToken+"\r\n")
			must(t, err)
			wantEqual(t, "code", got, code)
			wantText(t, "step down", body, parts...)
		}
		var all sync.WaitGroup
		all.Go(run)
		time.Sleep(time.Second)
		begin := time.Now()
		want(200, `{"job":"long","status":"handed over"`, `"kind":"step-down","job":"long","by":"admin over HTTP"`)
		synctest.Wait() // the answer comes at the end of the run; its outcome and the release follow
		e, err := backend.Read(t.Context(), "demo/long")
		must(t, err)
		wantEqual(t, "the lease is live", e.State.Live(), false)
		wantTook(t, begin, 24*time.Second, 26*time.Second)
		all.Wait()
		want(409, "nothing runs")
	})
}
