package storetest_test

import (
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/host/storetest"
	"github.com/soloist-go/soloist/store"
)

func TestMemory(t *testing.T) {
	storetest.Test(t, storetest.Harness{
		New:     func(*testing.T) store.Store { return new(local.Memory) },
		Virtual: true, // the clock of this store is time.Now, and it waits for nothing
	})
}

// The test of a store is one call:
//
//	func TestMemory(t *testing.T) {
//		storetest.Test(t, storetest.Harness{
//			New:     func(*testing.T) store.Store { return new(local.Memory) },
//			Virtual: true, // the clock of this store is time.Now, and it waits for nothing
//		})
//	}
//
// Here the program of go test runs it, as go test -run '^TestMemory$' does.
func ExampleTest() {
	err := exec.Command(os.Args[0], "-test.run=^TestMemory$").Run()
	fmt.Println("the store keeps its contract:", err == nil)
	// Output: the store keeps its contract: true
}
