package azure_test

import (
	"flag"
	"os"
	"testing"

	"github.com/soloist-go/soloist/internal/azurite"
	"github.com/soloist-go/soloist/internal/nightly"
)

// TestMain lets more tests run at once than there are cores: those that are parallel wait
// for tokens.
func TestMain(m *testing.M) {
	flag.Parse()
	flag.Set("test.parallel", "8")
	os.Exit(m.Run())
}

// TestInRealTime waits for real tokens to run out, all of them at once.
func TestInRealTime(t *testing.T) {
	bare(t, "IDENTITY_ENDPOINT=http://"+platformHost+"/token", "IDENTITY_HEADER="+azurite.IdentityHeader)
	t.Run("token replaced in time", withTokens(replacedInTime))
	t.Run("token source breaks", withTokens(breaksDuringARun))
}

// withTokens leaves a test to the nightly run: it takes a minute, nearly all of it waiting.
func withTokens(test func(t *testing.T)) func(t *testing.T) {
	return func(t *testing.T) {
		nightly.Only(t, "waits a minute for tokens to run out")
		t.Parallel()
		test(t)
	}
}
