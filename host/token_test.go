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

// A guesser gets few answers and few lines of the log, and keeps out nobody
// else, though all share the address of a proxy.
func TestGuesserIsLimitedAndLogged(t *testing.T) {
	environment(t, "SOLOIST_ADMIN_TOKEN="+adminToken, "SOLOIST_READ_TOKEN="+readToken)
	synctest.Test(t, func(t *testing.T) {
		s, log := logged(t, host.Program{Work: obedient(), Store: &local.Memory{}})
		codes := map[int]int{}
		guess := func() *httptest.ResponseRecorder {
			got := s.send(http.MethodPost, "/api/v1/jobs/beat/step-down", "Bearer wrong-"+adminToken)
			codes[got.Code]++
			return got
		}
		for range 1000 {
			guess()
			wantAnswer(t, "the right token", s.send(http.MethodPost, "/api/v1/jobs/cache/step-down", "Bearer "+adminToken), 409)
			wantAnswer(t, "the right token to read", s.get("/api/v1/jobs", "Bearer "+readToken), 200)
			wantAnswer(t, "no token", s.get("/api/v1/jobs"), 401)
		}
		if codes[401] != 20 || codes[429] != 980 {
			t.Errorf("got the codes %v, want 401 for 20 guesses and 429 for the others", codes)
		}
		if got := guess(); got.Header().Get("Retry-After") != "10" || got.Header().Get("Connection") != "close" || got.Header().Get("WWW-Authenticate") != "" {
			t.Errorf("got %v, want the time to wait", got.Header())
		}
		wantAnswer(t, "a wrong token at a probe", s.get("/healthz", "Bearer wrong"), 200) // which is no guess: it would get nothing for it
		time.Sleep(10 * time.Second)
		wantAnswer(t, "after a while", guess(), 401)
		s.wait()
		lines := strings.Split(strings.TrimSpace(log.String()), "\n")
		var told int
		for _, line := range lines {
			if strings.Contains(line, "request refused: wrong token") {
				told++
			}
		}
		if last := lines[len(lines)-1]; told != 21 || !strings.Contains(last, `"remote":"192.0.2.1:1234"`) || !strings.Contains(last, `"unlogged":981`) || !strings.Contains(last, `"level":"WARN"`) {
			t.Errorf("got %d lines, the last is %s, want 21 with the address, and what was not logged", told, last)
		}
		if strings.Contains(log.String(), adminToken) {
			t.Error("the log tells what was offered")
		}
	})
}

func TestStepDownIsLoggedWithCaller(t *testing.T) {
	environment(t, "SOLOIST_ADMIN_TOKEN="+adminToken)
	s, log := logged(t, host.Program{Work: obedient(), Store: &local.Memory{}})
	r := httptest.NewRequest(http.MethodPost, "http://localhost/api/v1/jobs/beat/step-down", nil)
	r.Header.Set("Authorization", "Bearer "+adminToken)
	r.Header.Set("X-Forwarded-For", "198.51.100.7,\x1b[2J")
	s.ServeHTTP(httptest.NewRecorder(), r)
	if want := `"msg":"order over HTTP refused","order":"step-down","job":"beat","by":"admin over HTTP","remote":"192.0.2.1:1234","forwarded":"198.51.100.7,\\x1b[2J"`; !strings.Contains(log.String(), want) {
		t.Errorf("got %s, want %s", log, want)
	}
}

// A page whose site has made a name of its own lead to this machine is told
// nothing.
func TestForeignHostNamesAreRefused(t *testing.T) {
	for addr, foreign := range map[string]int{"": 403, "localhost:8080": 403, "[::1]:8080": 403, ":8080": 200, "192.0.2.9:80": 200} {
		environment(t, "SOLOIST_ADDR="+addr)
		s, log := logged(t, host.Program{Work: work(), Store: &local.Memory{}})
		for name, want := range map[string]int{"127.0.0.1:8080": 200, "localhost": 200, "LOCALHOST:1": 200, "[::1]:8080": 200, "[::1]": 200, "::1": 200,
			"evil.example:8080": foreign, "evil.example": foreign, "127.0.0.1.evil.example": foreign, "localhost.evil.example:80": foreign,
			"192.0.2.9": foreign, "0.0.0.0:8080": foreign, "": foreign} {
			for _, path := range []string{"/", "/healthz"} {
				r := httptest.NewRequest(http.MethodGet, path, nil)
				r.Host = name
				w := httptest.NewRecorder()
				s.ServeHTTP(w, r)
				wantAnswer(t, addr+", "+name+path, w, want)
			}
		}
		if told := strings.Contains(log.String(), `"host":"evil.example"`); told != (foreign == 403) {
			t.Errorf("%s: got the log %s", addr, log)
		}
		s.wait()
	}
}

// On somebody's own machine others see nothing unless it is asked for.
func TestDefaultAddress(t *testing.T) {
	for variable, want := range map[string]int{
		"NONE=":                              403,
		"SOLOIST_ADDR=":                      403,
		"CONTAINER_APP_NAME=shop":            200,
		"CONTAINER_APP_JOB_NAME=shop":        200,
		"WEBSITE_SITE_NAME=shop":             200,
		"KUBERNETES_SERVICE_HOST=10.0.0.1":   200,
		"FUNCTIONS_CUSTOMHANDLER_PORT=34567": 403,
	} {
		environment(t, variable)
		s := open(t, host.Program{Work: work(), Store: &local.Memory{}})
		r := httptest.NewRequest(http.MethodGet, "/healthz", nil) // of example.com
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		wantAnswer(t, variable, w, want)
	}
}

// A program that other machines reach says so, unless a token keeps them out.
func TestOpenAddressIsWarnedOf(t *testing.T) {
	for _, test := range []struct {
		env  []string
		want bool
	}{
		{nil, false},
		{[]string{"SOLOIST_ADDR=:8080"}, true},
		{[]string{"SOLOIST_ADDR=192.0.2.9:80"}, true},
		{[]string{"CONTAINER_APP_NAME=demo"}, true},
		{[]string{"SOLOIST_ADDR=:8080", "SOLOIST_READ_TOKEN=" + readToken}, false},
		{[]string{"SOLOIST_ADDR=:8080", "SOLOIST_ADMIN_TOKEN=" + adminToken}, true},
		{[]string{"SOLOIST_ADDR=[::1]:8080"}, false},
	} {
		environment(t, append(test.env, "SOLOIST_STORAGE=memory:")...)
		_, log := logged(t, host.Program{Work: work(), Store: &local.Memory{}})
		if got := strings.Contains(log.String(), "can read the API and the metrics: set SOLOIST_READ_TOKEN"); got != test.want {
			t.Errorf("%q: warned is %t: %s", test.env, got, log)
		}
	}
}
