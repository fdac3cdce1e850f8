package host_test

import (
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist/internal/azurite"
)

// The settings of the Functions host alone are enough for blobs. The clock goes
// ahead by itself: a run needs a tick, and a tick needs time.
func TestBlobs(t *testing.T) {
	t.Parallel()
	server := azurite.Shared(t)
	env := []string{"AzureWebJobsStorage=" + server.ConnectionString(), "SOLOIST_CONTAINER=ticks", "CONTAINER_APP_NAME=shop"}
	if got := child(t, env, "validate"); got.code != 0 || !strings.Contains(got.out, "/ticks\n") {
		t.Errorf("validate: got %+v", got)
	}
	ticked(t, env)
	got := child(t, env, "status")
	if got.code != 0 || !strings.Contains(got.out, " succeeded") || strings.Contains(got.out, azurite.Key) {
		t.Errorf("status: got %+v", got)
	}
	env[0] = strings.ReplaceAll(env[0], azurite.Key, hiddenKey)
	got = child(t, env, "doctor")
	if got.code != 1 || strings.Count(got.out, "FAIL") != 1 || !strings.Contains(got.out, "FAIL  container ") || !strings.Contains(got.out, "emulator says this of a wrong key") {
		t.Errorf("doctor, with a wrong key: got %+v", got)
	}
	secretless(t, got.out+got.err)
}

// ticked calls the program until a tick has been run, a second after the other,
// and returns what that call came to.
func ticked(t *testing.T, env []string) result {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Second) {
		got := child(t, env, "tick", "--json")
		if got.code != 0 || time.Now().After(deadline) {
			t.Fatalf("tick: got %+v", got)
		}
		if strings.Contains(got.out, "succeeded") {
			return got
		}
	}
}
