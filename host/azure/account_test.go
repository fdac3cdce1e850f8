package azure_test

import (
	"context"
	"crypto/rand"
	"flag"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist/host/azure"
	"github.com/soloist-go/soloist/host/storetest"
	"github.com/soloist-go/soloist/store"
)

var accountFlag = flag.String("account", "", "URL of a real account's Blob service, for TestAccount")

// TestAccount runs the doctor and the conformance suite against a real account,
// in a container of its own that is deleted afterwards. It takes about two
// minutes, costs a few cents and is skipped unless asked for:
//
//	az login
//	go test ./host/azure -v -run TestAccount -account https://NAME.blob.core.windows.net
//
// The identity, of az login or whatever else DefaultAzureCredential finds, needs
// the role "Storage Blob Data Contributor" on the account. A URL with a shared
// access signature of the account (ss=b, srt=sco, sp=rwdlac) works too. Nothing
// is excused: what the service does otherwise than the suite wants is a failure.
func TestAccount(t *testing.T) {
	if *accountFlag == "" {
		t.Skip("no account is named: go test ./host/azure -v -run TestAccount -account URL")
	}
	box := "soloist-test-" + strings.ToLower(rand.Text()[:10])
	backend := opened(t, azure.Config{ServiceURL: *accountFlag, Container: box})
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := backend.DeleteContainer(ctx); err != nil {
			t.Errorf("the container %s is left: %v", box, err)
		}
	})
	t.Run("Doctor", func(t *testing.T) {
		// A process: package host imports this one, and a test of it that imported host would compile both twice.
		doctor := exec.CommandContext(t.Context(), "go", "run", "../../jobs", "doctor")
		doctor.Env = append(os.Environ(), "SOLOIST_APP=soloist-test", "SOLOIST_STORAGE="+*accountFlag, "SOLOIST_CONTAINER="+box)
		out, err := doctor.CombinedOutput()
		if t.Logf("%s", out); err != nil {
			t.Fatalf("the doctor says %v", err)
		}
	})
	if t.Failed() {
		return
	}
	t.Run("Suite", func(t *testing.T) {
		storetest.Test(t, storetest.Harness{New: func(*testing.T) store.Store { return backend }})
	})
}
