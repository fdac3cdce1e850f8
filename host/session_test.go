package host_test

import (
	"cmp"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist/host"
	"github.com/soloist-go/soloist/host/local"
)

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
				if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Secure != secure || c.MaxAge != 12*3600 || c.Path != "/" {
					t.Errorf("over %s: got %v", proto, c)
				}
				wantNone(t, "the cookie", c.Value, token)
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
	environment(t, "SOLOIST_READ_TOKEN="+readToken)
	s := open(t, host.Program{Work: obedient(), Store: &local.Memory{}})
	d := described(t, s, "Bearer "+readToken)
	for _, test := range []struct {
		name, body, kind, site string
		code                   int
	}{
		{"wrong token", `{"token":"wrong","name":""}`, "application/json", "same-origin", 401},
		{"no token", `{"token":"","name":""}`, "application/json", "same-origin", 401},
		{"a form", "token=" + readToken, "application/x-www-form-urlencoded", "same-origin", 415},
		{"no JSON", "token", "application/json", "same-origin", 400},
		{"another field", `{"tokn":""}`, "application/json", "same-origin", 400},
		{"too long", `{"token":"` + strings.Repeat("x", 5000) + `"}`, "application/json", "same-origin", 400},
		{"another site", `{"token":"` + readToken + `","name":""}`, "application/json", "cross-site", 403},
	} {
		got := s.ask("POST", "/api/v1/session", test.body, nil, "Content-Type", test.kind, "Sec-Fetch-Site", test.site)
		wantAnswer(t, test.name, got, test.code, `{"error":"`)
		d.wantAsDescribed(t, "POST", "/api/v1/session", got)
		if len(got.Result().Cookies()) > 0 || strings.Contains(got.Body.String(), readToken) {
			t.Errorf("%s: got %v, %s", test.name, got.Result().Cookies(), got.Body)
		}
	}
	for range 30 {
		s.ask("POST", "/api/v1/session", `{"token":"wrong","name":""}`, nil)
	}
	got := s.ask("POST", "/api/v1/session", `{"token":"wrong","name":""}`, nil)
	wantAnswer(t, "guesses", got, 429)
	d.wantAsDescribed(t, "POST", "/api/v1/session", got)
	d.wantAsDescribed(t, "POST", "/api/v1/session", s.ask("POST", "/api/v1/session", `{"token":"`+readToken+`","name":""}`, nil))
	s.wait()
	environment(t)
	wantAnswer(t, "no token is set", open(t, host.Program{Work: obedient(), Store: &local.Memory{}}).ask("POST", "/api/v1/session", `{"token":"","name":""}`, nil), 403)
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
		wantNone(t, "the log tells what was offered", log.String(), adminToken)
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
	for _, test := range []struct {
		env    []string
		code   int // for another machine
		warned bool
	}{
		{nil, 403, false},
		{[]string{"SOLOIST_ADDR="}, 403, false},
		{[]string{"FUNCTIONS_CUSTOMHANDLER_PORT=34567"}, 403, false},
		{[]string{"SOLOIST_ADDR=[::1]:8080"}, 403, false},
		{[]string{"CONTAINER_APP_NAME=shop"}, 200, true},
		{[]string{"CONTAINER_APP_JOB_NAME=shop"}, 200, true},
		{[]string{"WEBSITE_SITE_NAME=shop"}, 200, true},
		{[]string{"KUBERNETES_SERVICE_HOST=10.0.0.1"}, 200, true},
		{[]string{"SOLOIST_ADDR=:8080"}, 200, true},
		{[]string{"SOLOIST_ADDR=192.0.2.9:80"}, 200, true},
		{[]string{"SOLOIST_ADDR=:8080", "SOLOIST_ADMIN_TOKEN=" + adminToken}, 200, true},
		{[]string{"SOLOIST_ADDR=:8080", "SOLOIST_READ_TOKEN=" + readToken}, 200, false},
	} {
		environment(t, append(test.env, "SOLOIST_STORAGE=memory:")...)
		s, log := logged(t, host.Program{Work: work(), Store: &local.Memory{}})
		for path, method := range map[string]string{"/healthz": http.MethodGet, "/": http.MethodGet, "/tick": http.MethodPost} {
			if method == http.MethodPost && test.code == 200 {
				continue
			}
			w, r := httptest.NewRecorder(), httptest.NewRequest(method, path, strings.NewReader("{}")) // of example.com
			r.Header.Set("Origin", "http://example.com")
			r.Header.Set("Sec-Fetch-Site", "same-origin")
			s.ServeHTTP(w, r)
			wantAnswer(t, fmt.Sprint(test.env, path), w, test.code)
		}
		wantAnswer(t, "this machine", s.get("/healthz"), 200)
		wantEqual(t, fmt.Sprint(test.env, ": logged"), strings.Contains(log.String(), `"host":"example.com"`), test.code == 403)
		warned := strings.Contains(log.String(), "can read the API and the metrics: set SOLOIST_READ_TOKEN")
		wantEqual(t, fmt.Sprint(test.env, ": warned"), warned, test.warned)
	}
}
