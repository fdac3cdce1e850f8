package azure_test

import (
	"flag"
	"os"
	"testing"

	"github.com/soloist-go/soloist/internal/azurite"
)

var tokens = flag.Bool("tokens", false, "also wait for tokens of an identity to run out, for a minute")

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

// withTokens skips a test without -tokens: it takes a minute, nearly all of it waiting.
func withTokens(test func(t *testing.T)) func(t *testing.T) {
	return func(t *testing.T) {
		if !*tokens {
			t.Skip("waits a minute for tokens to run out: run it with -tokens")
		}
		t.Parallel()
		test(t)
	}
}
