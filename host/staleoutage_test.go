package host_test

import (
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
		for _, path := range []string{"/api/v1/jobs", "/readyz"} {
			wantAnswer(t, path+", hours after the outage", s.get(path), 200)
		}
		s.wait()
	})
}
