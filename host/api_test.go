package host_test

import (
	"cmp"
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
		got, want := listed(t, s.get("/api/v1/jobs").Body.String()), listed(t, call(t, p, "status --json").out)
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
		wantAnswer(t, path+" "+header, got, code, "!"+token, "!"+adminToken)
		if asks := got.Header().Values("WWW-Authenticate"); code == 401 && !slices.Equal(asks, []string{"Bearer"}) {
			t.Errorf("%s: got %q: a browser would ask for a password", header, asks)
		}
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
	const token = "Bearer " + readToken
	bubble(t, []string{"SOLOIST_READ_TOKEN=" + readToken}, func(t *testing.T) {
		s := open(t, host.Program{Work: work()[:2], Store: down()})
		s.tick()
		for path, code := range map[string]int{"/healthz": 200, "/readyz": 503} {
			wantAnswer(t, path, s.get(path), code, `"storage":"out of reach"`, "!"+errDown.Error())
			wantAnswer(t, path+" with the token", s.get(path, token), code, errDown.Error()+`"`)
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
		wantAnswer(t, "the list", s.get("/api/v1/jobs", token), 200, `"state":"broken"`, "the record has schema 99", `"trouble":true`)
		wantAnswer(t, "healthz with the token", s.get("/healthz", token), 503, `"overrun":{"still":"stalled: unhealthy 3 times in a row: no route`, "schema 99")
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
			says := `so nothing starts: ` + outage.Error() + `"`
			wantAnswer(t, "healthz", s.get("/healthz"), 200, `"status":"degraded"`, says)
			wantAnswer(t, "readyz", s.get("/readyz"), 503, `"status":"waiting"`, outage.Error())
			wantAnswer(t, "list", s.get("/api/v1/jobs"), 200, says, "every minute")
		}
	})
}

// One job has its outcomes, the ten ticks to come and its record.
func TestJobAsJSON(t *testing.T) {
	environment(t)
	s := open(t, host.Program{Work: work(), Now: spring, Store: claimed(t, true, stall)})
	wantAnswer(t, "job", s.get("/api/v1/jobs/beat"), 200, `"history":[{"tick":"`, `"reason":"stalled: no heartbeat for 1m0s"`,
		`"record":{"schema":1,"app":"demo","job":"beat"`, `"text":"@every 1m0s"`, `"trouble":true`, `"token":7`,
		`"ticks":[{"tick":"2026-03-28T12:01:00Z"`, `{"tick":"2026-03-28T12:10:00Z"`, `!{"tick":"2026-03-28T12:11:00Z"`)
	wantAnswer(t, "night-report", s.get("/api/v1/jobs/night-report"), 200, `"zone":"Europe/Berlin"`, `"clock":"clock goes forward on 2026-03-29"`)
}

// Parameters that cannot be read are no reason to answer as if there were none.
func TestUnreadableParametersAreRefused(t *testing.T) {
	environment(t)
	s := open(t, host.Program{Work: work(), Store: &local.Memory{}})
	over, cancel := context.WithCancel(t.Context())
	cancel() // else a stream goes on
	for _, path := range []string{"/api/v1/jobs", "/api/v1/jobs/beat/history", "/api/v1/locks", "/api/v1/stream"} {
		for _, query := range []string{"q=%zz", "limit=1;offset=2", "%q", "q=a&q=b"} {
			w, r := httptest.NewRecorder(), httptest.NewRequest("GET", "http://localhost"+path, nil).WithContext(over)
			r.URL.RawQuery = query
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

// What is wrong with a body is said without words of Go.
func TestWrongBodies(t *testing.T) {
	environment(t, "SOLOIST_ADMIN_TOKEN="+adminToken)
	s := open(t, host.Program{Work: work(), Store: &local.Memory{}})
	cookies := signedIn(t, s, adminToken)
	for body, want := range map[string]string{
		`{"until":"1m"}`:  `\"1m\" is no instant such as 2026-03-29T01:00:00Z"`,
		`{"now":"yes"}`:   `now is string: want true or false"`,
		`{"parallel":{}}`: `parallel is object: want a whole number"`,
		`{"reasn":"x"}`:   `read: unknown field \"reasn\""`,
		`{"reason":"` + strings.Repeat("x", 1<<17) + `"}`: `read: it has more than `,
	} {
		got := s.ask("POST", "/api/v1/jobs/beat/pause", body, cookies)
		wantAnswer(t, body[:10], got, 400)
		wantText(t, body[:10], got.Body.String(), want)
	}
}

// What a caller types is told to a terminal as it is, and moves no cursor.
func TestCommandsEscapeTheirArguments(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no such names of files")
	}
	environment(t)
	const red = "\x1b[31m"
	named := filepath.Join(t.TempDir(), "a"+red+"b")
	file(t, filepath.Join(named, "..", "go.mod"), "module example.org/x\n")
	p := host.Program{Work: jobs(soloist.Job{Name: "night"}), Store: &local.Memory{}}
	for i, args := range [][]string{
		{"functions", named, "--binary", stand(t)},
		{"functions", named, "--binary", named},
		{"deploy-files", "containerapp", named, "--package", "./jobs"}, // which refuses such a name
		{"status", "--" + red + "x"}, {red}, {"pause", red}, {"run", red, "--here"}, {"pause", "night", "--until", red},
	} {
		got := run(t.Context(), p, args...)
		wantEqual(t, "success of "+args[0], got.code == 0, i == 0)
		wantPlain(t, strings.Join(args, " "), got.out+got.err)
		wantText(t, strings.Join(args, " "), got.out+got.err, `\x1b[31m`)
	}
	wantText(t, "the files", strings.Join(names(tree(t, named)), " "), "host.json")
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
		tells := func(_ context.Context, run *soloist.Run) error {
			run.Heartbeat("page 1")
			time.Sleep(30 * time.Second)
			return nil
		}
		all = append(all, here()[0], soloist.Job{Name: "broken", Schedule: "@hourly", Do: do}, soloist.Job{Name: "telling", Schedule: "@every 1m", Do: tells})
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

// ask sends a request as the page in a browser does.
func (s site) ask(method, path, body string, cookies []*http.Cookie, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "http://localhost"+path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	for _, c := range cookies {
		r.AddCookie(c)
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

func signedIn(t *testing.T, s site, token string, header ...string) []*http.Cookie {
	t.Helper()
	got := s.ask("POST", "/api/v1/session", `{"token":"`+token+`","name":"Ada"}`, nil, header...)
	wantAnswer(t, "sign in", got, 200)
	return got.Result().Cookies()
}

const (
	jobsPath     = "/api/v1/jobs"
	stepDownPath = "/api/v1/jobs/beat/step-down" // of a job that does not run: 409
)

// A session may what its token may, as long as it lasts. The cookie is out of reach for scripts and other sites, and for plain
// HTTP behind TLS.
func TestSession(t *testing.T) {
	bubble(t, []string{"SOLOIST_READ_TOKEN=" + readToken, "SOLOIST_ADMIN_TOKEN=" + adminToken}, func(t *testing.T) {
		s := open(t, host.Program{Work: obedient(), Store: &local.Memory{}})
		s.tick()
		wantAnswer(t, "no session", s.ask("GET", jobsPath, "", nil), 401)
		var cookies []*http.Cookie
		for token, change := range map[string]int{readToken: 401, adminToken: 409} {
			cookies = signedIn(t, s, token)
			wantAnswer(t, "read", s.ask("GET", jobsPath, "", cookies), 200, `"signedIn":true`)
			wantAnswer(t, "change", s.ask("POST", stepDownPath, "", cookies), change)
			for proto, secure := range map[string]bool{"http": false, "https": true} {
				c := signedIn(t, s, token, "X-Forwarded-Proto", proto)[0]
				wantText(t, "the cookie", c.Value, "!"+token)
				wantEqual(t, "the cookie", http.Cookie{HttpOnly: c.HttpOnly, SameSite: c.SameSite, Secure: c.Secure, MaxAge: c.MaxAge, Path: c.Path},
					http.Cookie{HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: secure, MaxAge: 12 * 3600, Path: "/"})
			}
		}
		time.Sleep(12*time.Hour - time.Second)
		wantAnswer(t, "before its end", s.ask("GET", jobsPath, "", cookies), 200)
		time.Sleep(time.Second)
		wantAnswer(t, "after 12 h", s.ask("GET", jobsPath, "", cookies), 401)
	})
}

// A browser that has signed out has no session, also one that has kept the cookie. The other replicas accept a copy until it
// expires, as docs/http.md says: they ask no store about it. Another token ends it there at once.
func TestSignOut(t *testing.T) {
	bubble(t, []string{"SOLOIST_READ_TOKEN=" + readToken}, func(t *testing.T) {
		p := host.Program{Work: obedient(), Store: &local.Memory{}}
		one, other := open(t, p), open(t, p)
		cookies, others := signedIn(t, one, readToken), signedIn(t, one, readToken)
		read := func(what string, s site, cookies []*http.Cookie, code int) {
			t.Helper()
			wantAnswer(t, what, s.ask("GET", "/api/v1/app", "", cookies), code)
		}
		wantAnswer(t, "another site", one.ask("DELETE", "/api/v1/session", "", cookies, "Sec-Fetch-Site", "cross-site"), 403)
		read("before", one, cookies, 200)
		read("on another replica", other, cookies, 200)
		got := one.ask("DELETE", "/api/v1/session", "", cookies)
		wantAnswer(t, "sign out", got, 204)
		if c := got.Result().Cookies()[0]; c.MaxAge >= 0 || c.Value != "" {
			t.Errorf("got %v, want the end of the cookie", c)
		}
		read("after", one, cookies, 401)
		read("another session", one, others, 200)
		wantAnswer(t, "without a session", one.ask("DELETE", "/api/v1/session", "", nil), 204)
		read("a copy elsewhere", other, cookies, 200)
		time.Sleep(12 * time.Hour)
		read("a copy after 12 h", other, cookies, 401)
	})
}

// Whoever changes a cookie has no session. It ends with the token that it was made of, and is one of this app's.
func TestSessionThatDoesNotCount(t *testing.T) {
	environment(t, "SOLOIST_READ_TOKEN="+readToken, "SOLOIST_ADMIN_TOKEN="+adminToken)
	p := host.Program{Work: obedient(), Store: &local.Memory{}}
	s := open(t, p)
	cookie := signedIn(t, s, readToken)[0]
	want := func(what, value string, code int) {
		t.Helper()
		changed := *cookie
		changed.Value = value
		wantAnswer(t, what, s.ask("GET", "/api/v1/app", "", []*http.Cookie{&changed}), code)
	}
	good := cookie.Value
	for i := range good[:len(good)-1] { // the last character has bits that count for nothing
		for _, c := range []byte("A.-") {
			if good[i] != c {
				want(fmt.Sprintf("%c at %d", c, i), good[:i]+string(c)+good[i+1:], 401)
			}
		}
	}
	for _, value := range []string{"", ".", "x", good + "." + good, strings.Repeat("a", 5000)} {
		want(value, value, 401)
	}
	for _, test := range []struct {
		variable, value string
		code            int
	}{
		{"SOLOIST_GRACE", "24s", 200}, // another replica
		{"SOLOIST_ADMIN_TOKEN", adminToken + "2", 200},
		{"SOLOIST_READ_TOKEN", readToken + "2", 401},
		{"SOLOIST_READ_TOKEN", readToken, 200},
		{"SOLOIST_APP", "other", 401},
	} {
		t.Setenv(test.variable, test.value)
		cookie.Name = strings.Replace(cookie.Name, "demo", cmp.Or(os.Getenv("SOLOIST_APP"), "demo"), 1)
		s = open(t, p)
		want(test.variable, good, test.code)
	}
}

func TestSignInIsRefused(t *testing.T) {
	const path, right, wrong = "/api/v1/session", `{"token":"` + readToken + `","name":""}`, `{"token":"wrong","name":""}`
	p := host.Program{Work: obedient(), Store: &local.Memory{}}
	environment(t, "SOLOIST_READ_TOKEN="+readToken)
	s := open(t, p)
	d := described(t, s, "Bearer "+readToken)
	want := func(name, body string, code int, header ...string) {
		t.Helper()
		got := s.ask("POST", path, body, nil, header...)
		wantAnswer(t, name, got, code, `{"error":"`, "!"+readToken)
		d.wantAsDescribed(t, "POST", path, got)
		wantEqual(t, name+": cookies", len(got.Result().Cookies()), 0)
	}
	want("wrong token", wrong, 401)
	want("no token", `{"token":"","name":""}`, 401)
	want("a form", "token="+readToken, 415, "Content-Type", "application/x-www-form-urlencoded")
	want("no JSON", "token", 400)
	want("another field", `{"tokn":""}`, 400)
	want("too long", `{"token":"`+strings.Repeat("x", 5000)+`"}`, 400)
	want("another site", right, 403, "Sec-Fetch-Site", "cross-site")
	for range 30 {
		s.ask("POST", path, wrong, nil)
	}
	want("guesses", wrong, 429)
	d.wantAsDescribed(t, "POST", path, s.ask("POST", path, right, nil))
	s.wait()
	environment(t)
	wantAnswer(t, "no token is set", open(t, p).ask("POST", path, `{"token":"","name":""}`, nil), 403)
}

// A guesser gets few answers and few lines of the log, and keeps out nobody
// else, though all share the address of a proxy.
func TestGuesserIsLimitedAndLogged(t *testing.T) {
	bubble(t, []string{"SOLOIST_ADMIN_TOKEN=" + adminToken, "SOLOIST_READ_TOKEN=" + readToken}, func(t *testing.T) {
		s, log := logged(t, host.Program{Work: obedient(), Store: &local.Memory{}})
		codes := map[int]int{}
		guess := func() *httptest.ResponseRecorder {
			got := s.send(http.MethodPost, "/api/v1/jobs/beat/step-down", "Bearer wrong-"+adminToken)
			codes[got.Code]++
			return got
		}
		for range 100 {
			guess()
			wantAnswer(t, "the right token", s.send(http.MethodPost, "/api/v1/jobs/cache/step-down", "Bearer "+adminToken), 409)
			wantAnswer(t, "the right token to read", s.get("/api/v1/jobs", "Bearer "+readToken), 200)
			wantAnswer(t, "no token", s.get("/api/v1/jobs"), 401)
		}
		wantEqual(t, "codes of guesses", codes, map[int]int{401: 20, 429: 80})
		if got := guess(); got.Header().Get("Retry-After") != "10" || got.Header().Get("Connection") != "close" || got.Header().Get("WWW-Authenticate") != "" {
			t.Errorf("got %v, want the time to wait", got.Header())
		}
		wantAnswer(t, "a wrong token at a probe", s.get("/healthz", "Bearer wrong"), 200) // which is no guess: it would get nothing for it
		time.Sleep(10 * time.Second)
		wantAnswer(t, "after a while", guess(), 401)
		s.wait()
		wantEqual(t, "lines of the log", strings.Count(log.String(), "request refused: wrong token"), 21)
		lines := strings.Split(strings.TrimSpace(log.String()), "\n")
		wantText(t, "the last one", lines[len(lines)-1], `"remote":"192.0.2.1:1234"`, `"unlogged":81`, `"level":"WARN"`)
		wantText(t, "the log tells what was offered", log.String(), "!"+adminToken)
	})
}

func TestStepDownIsLoggedWithCaller(t *testing.T) {
	environment(t, "SOLOIST_ADMIN_TOKEN="+adminToken)
	s, log := logged(t, host.Program{Work: obedient(), Store: &local.Memory{}})
	s.ask("POST", stepDownPath, "", nil, "Authorization", "Bearer "+adminToken, "X-Forwarded-For", "198.51.100.7,\x1b[2J")
	wantText(t, "log", log.String(), `"msg":"order over HTTP refused","order":"step-down","job":"beat","by":"admin over HTTP","remote":"192.0.2.1:1234",`+
		`"forwarded":"198.51.100.7,\\x1b[2J"`)
}

// On somebody's own machine others see nothing unless it is asked for, and no page whose site has made a name of its own lead to
// this machine: the browser takes that for its own site. A program that other machines reach says so, unless a token keeps them
// out.
func TestDefaultAddress(t *testing.T) {
	for env, test := range map[string]struct {
		code   int // for another machine
		warned bool
	}{
		"": {403, false}, "SOLOIST_ADDR=": {403, false}, "FUNCTIONS_CUSTOMHANDLER_PORT=34567": {403, false}, "SOLOIST_ADDR=[::1]:8080": {403, false},
		"CONTAINER_APP_NAME=shop": {200, true}, "CONTAINER_APP_JOB_NAME=shop": {200, true}, "WEBSITE_SITE_NAME=shop": {200, true},
		"KUBERNETES_SERVICE_HOST=10.0.0.1": {200, true}, "SOLOIST_ADDR=:8080": {200, true}, "SOLOIST_ADDR=192.0.2.9:80": {200, true},
		"SOLOIST_ADDR=:8080 SOLOIST_ADMIN_TOKEN=" + adminToken: {200, true},
		"SOLOIST_ADDR=:8080 SOLOIST_READ_TOKEN=" + readToken:   {200, false},
	} {
		environment(t, append(strings.Fields(env), "SOLOIST_STORAGE=memory:")...)
		s, log := logged(t, host.Program{Work: work(), Store: &local.Memory{}})
		for path, method := range map[string]string{"/healthz": http.MethodGet, "/": http.MethodGet, "/tick": http.MethodPost} {
			if method == http.MethodPost && test.code == 200 {
				continue
			}
			w, r := httptest.NewRecorder(), httptest.NewRequest(method, path, strings.NewReader("{}")) // of example.com
			r.Header.Set("Origin", "http://example.com")
			r.Header.Set("Sec-Fetch-Site", "same-origin")
			s.ServeHTTP(w, r)
			wantAnswer(t, env+path, w, test.code)
		}
		wantAnswer(t, "this machine", s.get("/healthz"), 200)
		wantEqual(t, env+": logged", strings.Contains(log.String(), `"host":"example.com"`), test.code == 403)
		warned := strings.Contains(log.String(), "can read the API and the metrics: set SOLOIST_READ_TOKEN")
		wantEqual(t, env+": warned", warned, test.warned)
	}
}
