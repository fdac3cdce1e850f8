// Package nightly keeps long tests out of go test ./...: those that start processes and wait for
// real leases run each night, and whenever somebody sets the variable.
package nightly

import (
	"os"
	"testing"
)

// Variable is what runs them: SOLOIST_NIGHTLY=1 go test ./...
const Variable = "SOLOIST_NIGHTLY"

// Runs reports whether long tests run.
func Runs() bool { return os.Getenv(Variable) == "1" }

// Only skips a test in all other runs, and says how to run it. What says why the test takes long,
// such as "starts processes".
func Only(t testing.TB, what string) {
	t.Helper()
	if !Runs() {
		t.Skipf("%s: run it with %s=1", what, Variable)
	}
}
