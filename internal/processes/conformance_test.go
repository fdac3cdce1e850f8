//go:build unix

package processes

import (
	"net/http"
	"testing"
	"time"

	"github.com/soloist-go/soloist/host/azure"
	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/host/storetest"
	"github.com/soloist-go/soloist/internal/azurite"
	"github.com/soloist-go/soloist/internal/nightly"
	"github.com/soloist-go/soloist/store"
)

// azuriteDiffers lists what Azurite 3.37.0 does otherwise than the service is
// documented to.
var azuriteDiffers = map[string]string{
	"Outcome/expired/renew-other": "renews an expired lease under any id, where the service answers 409",
	"Expiry/taken-expired":        "renews an expired lease under any id, where the service answers 409",
}

// A store may be shared by all tests of the suite, and they run at once.
func TestSharedMemoryConforms(t *testing.T) {
	inRealTime(t)
	shared := new(local.Memory)
	storetest.Test(t, storetest.Harness{New: func(*testing.T) store.Store { return shared }})
}

// A directory goes by the machine's own clocks.
func TestDirConforms(t *testing.T) {
	inRealTime(t)
	storetest.Test(t, storetest.Harness{
		New: func(t *testing.T) store.Store { return local.Dir{Path: t.TempDir()} },
		Two: func(t *testing.T) (one, other store.Store) {
			path := t.TempDir()
			return local.Dir{Path: path}, local.Dir{Path: path}
		},
	})
}

// inRealTime runs a test beside the others, each night.
func inRealTime(t *testing.T) {
	t.Helper()
	nightly.Only(t, "waits for real leases to run out")
	t.Parallel()
}

// The suite over real HTTP, signatures included, waits for real leases to run out, as the tests
// beside it do.
func TestAzuriteConforms(t *testing.T) {
	t.Parallel()
	server := azurite.Start(t)
	// Azurite closes connections that were idle for 5 s. On a busy machine it
	// does so while a request is on its way, and an unclear error is not what
	// the suite asks about.
	client := &http.Client{Transport: &http.Transport{IdleConnTimeout: 2 * time.Second, MaxIdleConnsPerHost: 32}}
	connect := func() store.Store {
		s, err := azure.Open(azure.Config{ConnectionString: server.ConnectionString(), Transport: client})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	backend, second := connect(), connect()
	storetest.Test(t, storetest.Harness{
		New:         func(*testing.T) store.Store { return backend },
		Two:         func(*testing.T) (one, other store.Store) { return backend, second },
		Differences: azuriteDiffers,
	})
}
