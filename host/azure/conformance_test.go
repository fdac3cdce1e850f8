package azure_test

import (
	"testing"

	"github.com/soloist-go/soloist/host/storetest"
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
