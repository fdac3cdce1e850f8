package host_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/soloist-go/soloist/host"
	"github.com/soloist-go/soloist/host/local"
)

// On a public address a caller without the token neither fills the log nor hears
// the names of the jobs.
func TestStrangerFillsNoLogAndHearsNoJobs(t *testing.T) {
	const token = "0123456789abcdef"
	environment(t, "FUNCTIONS_CUSTOMHANDLER_PORT=7071", "SOLOIST_ADDR=:7071", "SOLOIST_ADMIN_TOKEN="+token)
	s, log := logged(t, host.Program{Store: new(local.Memory), Work: work()})
	log.Reset()
	post := func(path, token string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodPost, "http://203.0.113.7:7071"+path, nil)
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		return w
	}
	for _, given := range []string{"", token} {
		for range 1000 {
			post("/"+strings.Repeat("x", 20000), given)
		}
		if log.Len() > 20000 {
			t.Errorf("1000 calls with the token %q wrote %d bytes of log, want 20 KB at most", given, log.Len())
		}
		log.Reset()
	}
	if w := post("/nosuch", ""); w.Code != http.StatusUnauthorized && w.Code != http.StatusTooManyRequests || strings.Contains(w.Body.String(), "night-report") {
		t.Errorf("without a token: got %d %s, want a refusal that names no job", w.Code, w.Body)
	}
	if w := post("/nosuch", token); w.Code != http.StatusNotFound || !strings.Contains(w.Body.String(), "night-report") {
		t.Errorf("with the token: got %d %s, want 404 and the jobs", w.Code, w.Body)
	}
	s.wait()
}
