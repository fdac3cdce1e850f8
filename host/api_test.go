package host_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host"
	"github.com/soloist-go/soloist/host/local"
)

const (
	adminToken = "open-sesame-to-1800"
	readToken  = "read-me-and-no-more"
)

func basic(user, password string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
}

// obedient is a job and a singleton that stop when they are told.
func obedient() []soloist.Work {
	return []soloist.Work{
		soloist.Job{Name: "long", Schedule: "@every 1m", Do: untilCancelled},
		soloist.Job{Name: "beat", Schedule: "@hourly", Do: do},
		soloist.Job{Name: "cache", Schedule: "@hourly", Do: do, EveryReplica: true},
	}
}

func untilCancelled(ctx context.Context, _ *soloist.Run) error {
	<-ctx.Done()
	return ctx.Err()
}

// The list has of each job what status --json has, and more.
func TestJobsAsJSON(t *testing.T) {
	bubble(t, []string{replicaName + "replica-a", "SOLOIST_LAESE=warned of"}, func(t *testing.T) {
		p := host.Program{Work: work(), Store: &local.Memory{}}
		s := open(t, p)
		s.tick()
		time.Sleep(2 * time.Minute)
		s.tick()
		got, want := listed(t, s.get("/api/v1/jobs").Body.String()), listed(t, run(t.Context(), p, "status", "--json").out)
		for name, job := range want {
			for field, value := range job {
				wantEqual(t, name+": "+field, got[name][field], value)
			}
		}
		wantEqual(t, "jobs of the list and of the command", []int{len(got), len(want)}, []int{3, 3})
		beat := want["beat"]
		wantEqual(t, "beat",
			[]any{beat["kind"], beat["state"], beat["next"], at(beat, "last", "status"), at(beat, "counts", "succeeded")},
			[]any{"job", "idle", "2000-01-01T00:03:00Z", "succeeded", 1.0})
		wantEqual(t, "leader", want["leader"]["kind"], any("singleton"))
	})
}

// listed are the jobs of an answer, by their names.
func listed(t *testing.T, text string) map[string]map[string]any {
	t.Helper()
	var answer struct{ Jobs []map[string]any }
	if err := json.Unmarshal([]byte(text), &answer); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	jobs := map[string]map[string]any{}
	for _, job := range answer.Jobs {
		jobs[job["job"].(string)] = job
	}
	return jobs
}

// Who may read, and who may change what. No answer has a token.
func TestTokens(t *testing.T) {
	const token = "open:sesame-to-1700"
	p := host.Program{Work: obedient(), Store: &local.Memory{}}
	environment(t, "SOLOIST_READ_TOKEN="+token, "SOLOIST_ADMIN_TOKEN="+adminToken)
	want := func(s site, method, path, header string, code int) {
		t.Helper()
		got := s.send(method, path, header)
		wantAnswer(t, path+" "+header, got, code)
		if asks := got.Header().Values("WWW-Authenticate"); code == 401 && !slices.Equal(asks, []string{"Bearer"}) {
			t.Errorf("%s: got %q: a browser would ask for a password", header, asks)
		}
		wantNone(t, header, got.Body.String(), token, adminToken)
	}
	for _, path := range []string{"/api/v1/jobs", "/api/v1/jobs/beat", "/api/v1/app", "/api/v1/openapi.json", "/metrics"} {
		s := open(t, p) // a new one: 20 wrong tokens are its limit
		for _, header := range []string{"", "Bearer", "Bearer ", "Bearer wrong", "Bearer " + token + "x", token, basic(token, ""), "Basic " + token, basic("me", token)} {
			want(s, "GET", path, header, 401)
		}
		for _, header := range []string{"Bearer " + adminToken, "Bearer " + token, "bearer " + token} {
			wantAnswer(t, path+" "+header, s.get(path, header), 200)
		}
	}
	const long, right = "/api/v1/jobs/long/step-down", "Bearer " + adminToken
	s := open(t, p)
	for _, header := range []string{"", "Bearer wrong", right + "x", "Bearer " + token, basic("anybody", adminToken)} {
		want(s, "POST", long, header, 401)
	}
	want(s, "POST", long, right, 404) // it has no record yet
	want(s, "POST", "/api/v1/jobs/cache/step-down", right, 409)
	want(s, "GET", long, right, 405)
	s.wait()
	environment(t, "SOLOIST_READ_TOKEN="+token)
	want(open(t, p), "POST", long, right, 403) // there is no token for changes
}

// Probes have no token. What errors say is for those who have it.
func TestProbesTellNoErrorTexts(t *testing.T) {
	bubble(t, []string{"SOLOIST_READ_TOKEN=" + readToken}, func(t *testing.T) {
		s := open(t, host.Program{Work: work()[:2], Store: down()})
		s.tick()
		for _, path := range []string{"/healthz", "/readyz"} {
			got := s.get(path)
			wantAnswer(t, path, got, map[string]int{"/healthz": 200, "/readyz": 503}[path], `"storage":"out of reach"`)
			wantNone(t, path, got.Body.String(), errDown.Error())
			wantAnswer(t, path+" with the token", s.get(path, "Bearer "+readToken), got.Code, errDown.Error()+`"`)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		backend := &local.Memory{}
		put(t, backend, "demo/broken", `{"schema":99}`, false)
		release := make(chan struct{})
		j := still(release)
		j.HealthCheck.Interval, j.HealthCheck.Check = 100*time.Millisecond, func(context.Context) error { return errDown }
		s := open(t, host.Program{Work: []soloist.Work{j, soloist.Job{Name: "broken", Schedule: "@hourly", Do: do}}, Store: backend})
		s.underway(20 * time.Second)
		wantAnswer(t, "healthz", s.get("/healthz"), 503, `"overrun":{"still":"stalled"}`, `"broken":{"broken":"left alone: the log tells why"}`)
		wantAnswer(t, "a record that cannot be read", s.get("/readyz"), 200)
		wantAnswer(t, "the list", s.get("/api/v1/jobs", "Bearer "+readToken), 200, `"state":"broken"`, "the record has schema 99",
			`"trouble":true`)
		wantAnswer(t, "healthz with the token", s.get("/healthz", "Bearer "+readToken), 503, `"overrun":{"still":"stalled: unhealthy 3 times in a row: no route`, "schema 99")
		close(release)
	})
}

// A replica is ready once the store has answered, and not in an outage, at its start or later. A job on each replica is no
// answer of the store, and needs none.
func TestReadyOnceStoreAnswers(t *testing.T) {
	bubble(t, nil, func(t *testing.T) {
		wantAnswer(t, "at once", open(t, host.Program{Work: work(), Store: &local.Memory{}}).get("/readyz"), 200, `"status":"ready"`)
		wantAnswer(t, "no need", open(t, host.Program{Work: here()[:2], Store: down()}).get("/readyz"), 200, `"status":"ready"`)
		store := down()
		s := open(t, host.Program{Work: work()[:1], Store: store})
		wantAnswer(t, "healthz before", s.get("/healthz"), 200, `"status":"ok"`)
		wantAnswer(t, "readyz before", s.get("/readyz"), 503, "it has not answered yet")
		s.tick()
		wantAnswer(t, "list before", s.get("/api/v1/jobs"), 200, "every minute", `"state":"unknown"`)
		for _, outage := range []error{errDown, nil, errDown, nil, errors.New("again")} {
			store.set(refuse(outage))
			time.Sleep(time.Hour)
			s.tick()
			if outage == nil {
				wantAnswer(t, "readyz", s.get("/readyz"), 200, `"status":"ready"`)
				wantAnswer(t, "list", s.get("/api/v1/jobs"), 200) // which reads the records too
				continue
			}
			wantAnswer(t, "healthz", s.get("/healthz"), 200, `"status":"degraded"`, `so nothing starts: `+outage.Error()+`"`)
			wantAnswer(t, "readyz", s.get("/readyz"), 503, `"status":"waiting"`, outage.Error())
			wantAnswer(t, "list", s.get("/api/v1/jobs"), 200, `so nothing starts: `+outage.Error()+`"`, "every minute")
		}
	})
}

// One job has its outcomes, the ticks to come and its record.
func TestJobAsJSON(t *testing.T) {
	environment(t)
	s := open(t, host.Program{Work: work(), Now: spring, Store: claimed(t, true, stall)})
	got := s.get("/api/v1/jobs/beat")
	wantAnswer(t, "job", got, 200, `"history":[{"tick":"`, `"reason":"stalled: no heartbeat for 1m0s"`, `"record":{"schema":1,"app":"demo","job":"beat"`,
		`"text":"@every 1m0s"`, `"trouble":true`, `"token":7`)
	wantAnswer(t, "ten ticks", got, 200, `"ticks":[{"tick":"2026-03-28T12:01:00Z"`, `{"tick":"2026-03-28T12:10:00Z"`)
	wantNone(t, "ten ticks", got.Body.String(), `{"tick":"2026-03-28T12:11:00Z"`)
	wantAnswer(t, "night-report", s.get("/api/v1/jobs/night-report"), 200, `"zone":"Europe/Berlin"`, `"clock":"clock goes forward on 2026-03-29"`)
}

// Parameters that cannot be read are no reason to answer as if there were none.
func TestUnreadableParametersAreRefused(t *testing.T) {
	environment(t)
	s := open(t, host.Program{Work: work(), Store: &local.Memory{}})
	over, cancel := context.WithCancel(t.Context())
	cancel() // else a stream goes on
	for _, path := range []string{"/api/v1/jobs", "/api/v1/jobs/beat/history", "/api/v1/locks", "/api/v1/stream"} {
		for _, query := range []string{"?q=%zz", "?limit=1;offset=2", "?%q", "?q=a&q=b"} {
			w, r := httptest.NewRecorder(), httptest.NewRequest("GET", "http://localhost"+path, nil).WithContext(over)
			r.URL.RawQuery = strings.TrimPrefix(query, "?")
			s.ServeHTTP(w, r)
			wantAnswer(t, path+query, w, 400, `"error":`)
		}
	}
}

// What follows the JSON of a body may be what the caller meant.
func TestBodyIsOneJSONValue(t *testing.T) {
	environment(t, "SOLOIST_ADMIN_TOKEN="+adminToken)
	s := open(t, host.Program{Work: work(), Store: &local.Memory{}})
	cookies := signedIn(t, s, adminToken)
	for body, code := range map[string]int{`{"reason":"a"}{"reason":"b"}`: 400, `{} x`: 400, `{}]`: 400, "{}\n ": 200, "": 200} {
		wantAnswer(t, body, s.ask("POST", "/api/v1/jobs/beat/pause", body, cookies), code)
	}
	for _, body := range []string{`{"token":"` + adminToken + `"} {}`, `{"token":"` + adminToken + `"}]`} {
		wantAnswer(t, "sign in", s.ask("POST", "/api/v1/session", body, nil), 400)
	}
}

// What a caller types is told to a terminal as it is, and moves no cursor.
func TestCommandsEscapeTheirArguments(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no such names of files")
	}
	environment(t)
	dir := t.TempDir()
	file(t, filepath.Join(dir, "go.mod"), "module example.org/x\n")
	named := filepath.Join(dir, "a\x1b[31mb")
	p := host.Program{Work: jobs(soloist.Job{Name: "night"}), Store: &local.Memory{}}
	for i, args := range [][]string{
		{"functions", named, "--binary", stand(t)},
		{"functions", named, "--binary", named},
		{"deploy-files", "containerapp", named, "--package", "./jobs"}, // which refuses such a name
		{"status", "--\x1b[31mx"}, {"\x1b[31m"}, {"pause", "\x1b[31m"}, {"run", "\x1b[31m", "--here"}, {"pause", "night", "--until", "\x1b[31m"},
	} {
		got := run(t.Context(), p, args...)
		if (i == 0) != (got.code == 0) {
			t.Errorf("%q: got %+v", args, got)
		}
		if wantPlain(t, strings.Join(args, " "), got.out+got.err); !strings.Contains(got.out+got.err, `\x1b[31m`) {
			t.Errorf("%q: got %+v, want the name escaped", args, got)
		}
	}
	if _, err := os.Stat(filepath.Join(named, "host.json")); err != nil {
		t.Error(err)
	}
}

// A schemas holds answers against the description that the server gives of itself. That an answer has the fields described, and
// of which types, is tested beside the description.
type schemas struct {
	paths map[string]any
	enums map[string][]any // by the name of a property: the values of all properties with that name
}

func described(t *testing.T, s site, header ...string) schemas {
	t.Helper()
	var all map[string]any
	must(t, json.Unmarshal(s.get("/api/v1/openapi.json", header...).Body.Bytes(), &all))
	d := schemas{all["paths"].(map[string]any), map[string][]any{}}
	for _, schema := range at(all, "components", "schemas").(map[string]any) {
		properties, _ := at(schema, "properties").(map[string]any)
		for name, property := range properties {
			if values, ok := at(property, "enum").([]any); ok {
				d.enums[name] = append(d.enums[name], values...)
			}
		}
	}
	return d
}

// wantAsDescribed wants an answer in JSON, of a code that the description has for its path and method, with states that it has.
func (d schemas) wantAsDescribed(t *testing.T, method, path string, got *httptest.ResponseRecorder) {
	t.Helper()
	path, _, _ = strings.Cut(strings.TrimPrefix(path, "/api/v1"), "?")
	if parts := strings.Split(path, "/"); len(parts) > 2 && parts[1] == "jobs" {
		parts[2] = "{job}"
		path = strings.Join(parts, "/")
	}
	answer := at(d.paths, path, strings.ToLower(method), "responses", fmt.Sprint(got.Code), "content", "application/json")
	if answer == nil || !json.Valid(got.Body.Bytes()) {
		t.Errorf("%s %s: the code %d is not described, or without JSON: %s", method, path, got.Code, got.Body)
	}
	wantEqual(t, method+" "+path, got.Header().Get("Content-Type"), "application/json")
	own, _, _ := strings.Cut(got.Body.String(), `"record":`) // which is as the store has it
	for _, m := range regexp.MustCompile(`"(\w+)":"([\w -]*)"`).FindAllStringSubmatch(own, -1) {
		if values := d.enums[m[1]]; values != nil && !slices.Contains(values, any(m[2])) {
			t.Errorf("%s %s: %s is %q, want one of %v", method, path, m[1], m[2], values)
		}
	}
}

// at follows names into nested objects.
func at(value any, names ...string) any {
	for _, name := range names {
		object, ok := value.(map[string]any)
		if !ok {
			return nil
		}
		value = object[name]
	}
	return value
}

// Answers are as the server describes them: of jobs in all kinds of states, and of
// requests that are refused.
func TestAnswersAreAsDescribed(t *testing.T) {
	environment(t, "SOLOIST_ADMIN_TOKEN="+adminToken, "SOLOIST_READ_TOKEN="+readToken, "CONTAINER_APP_REVISION=demo--1", "SOLOIST_JOB_BEAT_PAUSED=true")
	synctest.Test(t, func(t *testing.T) {
		backend := &local.Memory{}
		put(t, backend, "demo/broken", `{"schema":99}`, false)
		var all []soloist.Work
		all = append(all, work()...)
		all = append(all, here()[0], soloist.Job{Name: "broken", Schedule: "@hourly", Do: do}, soloist.Job{Name: "telling", Schedule: "@every 1m", Do: func(_ context.Context, run *soloist.Run) error {
			run.Heartbeat("page 1")
			time.Sleep(30 * time.Second)
			return nil
		}})
		s := open(t, host.Program{Work: all, Store: backend, Now: func() time.Time { return time.Now().Add(time.Minute) }})
		s.tick()
		time.Sleep(2 * time.Hour)
		ended := s.underway(10 * time.Second)
		const read, admin = "Bearer " + readToken, "Bearer " + adminToken
		d := described(t, s, read)
		for _, request := range [][3]string{
			{"GET", "/api/v1/openapi.json", read}, {"GET", "/api/v1/app", read}, {"GET", "/api/v1/app", admin}, {"GET", "/api/v1/app", ""}, {"GET", "/api/v1/jobs", read},
			{"GET", "/api/v1/jobs?sort=-took&limit=1", read}, {"GET", "/api/v1/jobs?sort=x", read}, {"GET", "/api/v1/jobs?srt=name", read}, {"GET", "/api/v1/jobs?limit=101", read},
			{"GET", "/api/v1/jobs/none", read}, {"POST", "/api/v1/jobs/none/step-down", admin}, {"POST", "/api/v1/jobs/beat/step-down", ""}, {"POST", "/api/v1/jobs/beat/step-down", admin},
			{"POST", "/api/v1/jobs/telling/step-down", admin},
		} {
			d.wantAsDescribed(t, request[0], request[1], s.send(request[0], request[1], request[2]))
		}
		for _, name := range []string{"beat", "night-report", "leader", "cache", "broken", "telling"} {
			path := "/api/v1/jobs/" + name
			got := s.get(path, read)
			wantAnswer(t, path, got, http.StatusOK)
			d.wantAsDescribed(t, "GET", path, got)
		}
		ended()
	})
}
