package host_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
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

// A session may what its token may, as long as it lasts.
func TestSessionMayWhatItsTokenMay(t *testing.T) {
	environment(t, "SOLOIST_READ_TOKEN="+readToken, "SOLOIST_ADMIN_TOKEN="+adminToken)
	synctest.Test(t, func(t *testing.T) {
		s := open(t, host.Program{Work: obedient(), Store: &local.Memory{}})
		s.tick()
		for token, change := range map[string]int{readToken: 401, adminToken: 409} {
			cookies := signedIn(t, s, token)
			wantAnswer(t, "read", s.ask("GET", jobsPath, "", cookies), 200, `"signedIn":true`)
			wantAnswer(t, "change", s.ask("POST", stepDownPath, "", cookies), change)
		}
		wantAnswer(t, "no session", s.ask("GET", jobsPath, "", nil), 401)
		cookies := signedIn(t, s, adminToken)
		wantAnswer(t, "another site", s.ask("POST", stepDownPath, "", cookies, "Sec-Fetch-Site", "cross-site"), 403)
		wantAnswer(t, "another origin", s.ask("POST", stepDownPath, "", cookies, "Sec-Fetch-Site", "", "Origin", "http://evil.example"), 403)
		time.Sleep(12*time.Hour - time.Second)
		wantAnswer(t, "before its end", s.ask("GET", jobsPath, "", cookies), 200)
		time.Sleep(time.Second)
		wantAnswer(t, "after 12 h", s.ask("GET", jobsPath, "", cookies), 401)
		s.wait()
	})
}

// A session ends with the token that it was made of, and is one of this app's.
func TestSessionEndsWithItsToken(t *testing.T) {
	environment(t, "SOLOIST_READ_TOKEN="+readToken, "SOLOIST_ADMIN_TOKEN="+adminToken)
	p := host.Program{Work: obedient(), Store: &local.Memory{}}
	cookies := signedIn(t, open(t, p), adminToken)
	for _, test := range []struct {
		variable string
		code     int
	}{
		{"SOLOIST_GRACE=24s", 200}, // another replica
		{"SOLOIST_READ_TOKEN=" + readToken + "2", 200},
		{"SOLOIST_ADMIN_TOKEN=" + adminToken + "2", 401},
		{"SOLOIST_ADMIN_TOKEN=", 401},
		{"SOLOIST_APP=other", 401},
	} {
		t.Run(test.variable, func(t *testing.T) {
			name, value, _ := strings.Cut(test.variable, "=")
			t.Setenv(name, value)
			s := open(t, p)
			cookies[0].Name = strings.Replace(cookies[0].Name, "demo", map[bool]string{true: "other", false: "demo"}[value == "other"], 1)
			wantAnswer(t, test.variable, s.ask("GET", jobsPath, "", cookies), test.code)
			s.wait()
		})
	}
}

// Whoever changes a cookie has no session.
func TestForgedSessionIsNone(t *testing.T) {
	environment(t, "SOLOIST_READ_TOKEN="+readToken, "SOLOIST_ADMIN_TOKEN="+adminToken)
	s := open(t, host.Program{Work: obedient(), Store: &local.Memory{}})
	cookie := signedIn(t, s, readToken)[0]
	good := cookie.Value
	for i := range good {
		for _, c := range []byte("A.-") {
			if good[i] == c || i == len(good)-1 { // the last character has bits that count for nothing
				continue
			}
			cookie.Value = good[:i] + string(c) + good[i+1:]
			if got := s.ask("GET", "/api/v1/app", "", []*http.Cookie{cookie}); got.Code != 401 {
				t.Errorf("with %c at %d: got code %d", c, i, got.Code)
			}
		}
	}
	for _, value := range []string{"", ".", "x", good + "." + good, strings.Repeat("a", 5000)} {
		cookie.Value = value
		wantAnswer(t, value, s.ask("GET", "/api/v1/app", "", []*http.Cookie{cookie}), 401)
	}
	s.wait()
}

// The cookie is out of reach for scripts and other sites, and for plain HTTP behind TLS.
func TestSessionCookieIsGuarded(t *testing.T) {
	environment(t, "SOLOIST_READ_TOKEN="+readToken)
	s := open(t, host.Program{Work: obedient(), Store: &local.Memory{}})
	for proto, secure := range map[string]bool{"http": false, "https": true} {
		c := signedIn(t, s, readToken, "X-Forwarded-Proto", proto)[0]
		if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Secure != secure || c.MaxAge != 12*3600 || c.Path != "/" {
			t.Errorf("over %s: got %v", proto, c)
		}
		if strings.Contains(c.Value, readToken) {
			t.Error("the cookie has the token")
		}
	}
	s.wait()
}

// A browser that has signed out has no session, also one that has kept the cookie.
func TestSignOut(t *testing.T) {
	environment(t, "SOLOIST_READ_TOKEN="+readToken)
	s := open(t, host.Program{Work: obedient(), Store: &local.Memory{}})
	cookies, others := signedIn(t, s, readToken), signedIn(t, s, readToken)
	wantAnswer(t, "another site", s.ask("DELETE", "/api/v1/session", "", cookies, "Sec-Fetch-Site", "cross-site"), 403)
	wantAnswer(t, "before", s.ask("GET", "/api/v1/app", "", cookies), 200)
	got := s.ask("DELETE", "/api/v1/session", "", cookies)
	wantAnswer(t, "sign out", got, 204)
	if c := got.Result().Cookies()[0]; c.MaxAge >= 0 || c.Value != "" {
		t.Errorf("got %v, want the end of the cookie", c)
	}
	wantAnswer(t, "after", s.ask("GET", "/api/v1/app", "", cookies), 401)
	wantAnswer(t, "another session", s.ask("GET", "/api/v1/app", "", others), 200)
	wantAnswer(t, "without a session", s.ask("DELETE", "/api/v1/session", "", nil), 204)
	s.wait()
}

// After a sign-out the other replicas accept a copy of the cookie until it expires, as docs/http.md
// says: they ask no store about it. Another token ends it there at once.
func TestSignOutOnOneReplica(t *testing.T) {
	environment(t, "SOLOIST_READ_TOKEN="+readToken)
	synctest.Test(t, func(t *testing.T) {
		p := host.Program{Work: obedient(), Store: &local.Memory{}}
		one, other := open(t, p), open(t, p)
		cookies := signedIn(t, one, readToken)
		wantAnswer(t, "on another replica", other.ask("GET", "/api/v1/app", "", cookies), 200)
		wantAnswer(t, "sign out", one.ask("DELETE", "/api/v1/session", "", cookies), 204)
		wantAnswer(t, "a copy where it was ended", one.ask("GET", "/api/v1/app", "", cookies), 401)
		wantAnswer(t, "a copy elsewhere", other.ask("GET", "/api/v1/app", "", cookies), 200)
		environment(t, "SOLOIST_READ_TOKEN="+readToken+"-another")
		renewed := open(t, p)
		wantAnswer(t, "a copy after another token", renewed.ask("GET", "/api/v1/app", "", cookies), 401)
		time.Sleep(12 * time.Hour)
		wantAnswer(t, "a copy after 12 h", other.ask("GET", "/api/v1/app", "", cookies), 401)
		for _, s := range []site{one, other, renewed} {
			s.wait()
		}
	})
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
