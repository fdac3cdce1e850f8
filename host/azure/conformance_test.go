package azure_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/soloist-go/soloist/host/azure"
	"github.com/soloist-go/soloist/host/storetest"
	"github.com/soloist-go/soloist/internal/azurite"
	"github.com/soloist-go/soloist/internal/blobtest"
	"github.com/soloist-go/soloist/store"
)

// TestDocumentedService runs the suite over the service as it is documented.
func TestDocumentedService(t *testing.T) {
	storetest.Test(t, storetest.Harness{
		New: func(t *testing.T) store.Store { return open(t, new(blobtest.Blob)) },
		Two: func(t *testing.T) (one, other store.Store) {
			blob := new(blobtest.Blob)
			return open(t, blob), open(t, blob)
		},
		Virtual: true,
	})
}

// azuriteDiffers lists what Azurite 3.37.0 does otherwise than the service is
// documented to.
var azuriteDiffers = map[string]string{
	"Outcome/expired/renew-other": "renews an expired lease under any id, where the service answers 409",
	"Expiry/taken-expired":        "renews an expired lease under any id, where the service answers 409",
}

// azuriteConforms runs the suite over real HTTP, signatures included.
func azuriteConforms(t *testing.T) {
	server := azurite.Start(t)
	// Azurite closes connections that were idle for 5 s. On a busy machine it
	// does so while a request is on its way, and an unclear error is not what
	// the suite asks about.
	client := &http.Client{Transport: &http.Transport{IdleConnTimeout: 2 * time.Second, MaxIdleConnsPerHost: 32}}
	connect := func() store.Store {
		return opened(t, azure.Config{ConnectionString: server.ConnectionString(), Transport: client})
	}
	backend, second := connect(), connect()
	storetest.Test(t, storetest.Harness{
		New:         func(*testing.T) store.Store { return backend },
		Two:         func(*testing.T) (one, other store.Store) { return backend, second },
		Differences: azuriteDiffers,
	})
}
