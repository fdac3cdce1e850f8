package azure_test

import (
	"testing"

	"github.com/soloist-go/soloist/internal/azurite"
	"github.com/soloist-go/soloist/internal/proctest"
)

// TestMain lets more tests run at once than there are cores: those that are parallel wait
// for leases and tokens.
func TestMain(m *testing.M) { proctest.Main(m, 8) }

// TestInRealTime waits for real leases and tokens to run out, all of them at once.
func TestInRealTime(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for real leases and tokens to run out: run it without -short")
	}
	bare(t, "IDENTITY_ENDPOINT=http://"+platformHost+"/token", "IDENTITY_HEADER="+azurite.IdentityHeader)
	t.Run("token replaced in time", replacedInTime)
	t.Run("token source breaks", breaksDuringARun)
	t.Run("Azurite conforms", func(t *testing.T) {
		t.Parallel()
		azuriteConforms(t)
	})
}
