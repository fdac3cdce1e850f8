package azure_test

import (
	"context"
	"crypto/rand"
	"flag"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host"
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
		p := host.Program{Name: "soloist-test", Store: backend, Stdout: t.Output(), Stderr: t.Output(), Args: []string{"doctor"},
			Work: []soloist.Work{soloist.Job{Name: "work", Schedule: "@hourly", Do: func(context.Context, *soloist.Run) error { return nil }}}}
		if code := p.Run(t.Context()); code != 0 {
			t.Fatalf("the doctor says %d", code)
		}
	})
	if t.Failed() {
		return
	}
	t.Run("Suite", func(t *testing.T) {
		storetest.Test(t, storetest.Harness{New: func(*testing.T) store.Store { return backend }})
	})
}
