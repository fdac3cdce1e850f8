package host_test

import (
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host"
	"github.com/soloist-go/soloist/internal/azurite"
)

// The settings of the Functions host alone are enough for blobs. The clock goes
// ahead by itself: a run needs a tick, and a tick needs time.
func TestBlobs(t *testing.T) {
	server := azurite.Start(t)
	environment(t, "AzureWebJobsStorage="+server.ConnectionString(), "SOLOIST_CONTAINER=ticks", "CONTAINER_APP_NAME=shop")
	p := host.Program{Work: []soloist.Work{soloist.Job{Name: "beat", Schedule: "@every 1s", Do: do}}}
	if got := run(t.Context(), p, "validate"); got.code != 0 || !strings.Contains(got.out, "/ticks\n") {
		t.Errorf("validate: got %+v", got)
	}
	ran := false
	for deadline := time.Now().Add(20 * time.Second); !ran && time.Now().Before(deadline); {
		got := run(t.Context(), p, "tick")
		if got.code != 0 {
			t.Fatalf("tick: got %+v", got)
		}
		ran = strings.Contains(got.out, "succeeded")
	}
	got := run(t.Context(), p, "status")
	if !ran || got.code != 0 || !strings.Contains(got.out, "1 succeeded") || strings.Contains(got.out, azurite.Key) {
		t.Errorf("status: got %+v", got)
	}
}
