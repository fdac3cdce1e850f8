package host_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host"
	"github.com/soloist-go/soloist/host/local"
)

// Nothing runs between two calls of a function. A page that could read the
// records then tells no outage that is over.
func TestReadEndsOutageInFunctions(t *testing.T) {
	environment(t, "FUNCTIONS_CUSTOMHANDLER_PORT=7071")
	synctest.Test(t, func(t *testing.T) {
		store := newGated(new(local.Memory), nil)
		s := open(t, host.Program{Store: store, Work: []soloist.Work{soloist.Job{Name: "beat", Schedule: "0 3 * * *", Do: do}}})
		s.invoke(t, "beat", "{}")
		time.Sleep(3*time.Hour + time.Minute)
		store.away(time.Minute)
		s.invoke(t, "beat", "{}")
		time.Sleep(6 * time.Hour)
		for _, path := range []string{"/api/jobs", "/readyz"} {
			w := httptest.NewRecorder()
			s.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://127.0.0.1:7071"+path, nil))
			if w.Code != http.StatusOK {
				t.Errorf("hours after the outage %s answers %d %s, want 200", path, w.Code, w.Body)
			}
		}
		s.wait()
	})
}
