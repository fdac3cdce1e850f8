package storetest_test

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/host/storetest"
	"github.com/soloist-go/soloist/store"
)

// plain hides what a store and its leases have beyond the interfaces.
type plain struct{ store.Store }

func (s plain) Lease(name, id string) store.Lease {
	return struct{ store.Lease }{s.Store.Lease(name, id)}
}

const suiteVariable = "STORETEST_SUITES"

// TestSuite is what the processes run: one for all stores, which is five times as fast as one for each.
func TestSuite(t *testing.T) {
	if os.Getenv(suiteVariable) == "" {
		t.Skip("run by TestSuiteFails")
	}
	debug.SetGCPercent(1000)
	for name, s := range suites {
		t.Run(name, func(t *testing.T) { storetest.Test(t, s.harness) })
	}
}

// suiteOutputs runs TestSuite in a process, and returns what it printed of each store.
func suiteOutputs(t *testing.T, which ...string) map[string]string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], append(which, "-test.v=test2json")...) // each verdict comes with its test
	cmd.Env = append(os.Environ(), suiteVariable+"=all")
	out, err := cmd.CombinedOutput()
	if exit := new(exec.ExitError); !errors.As(err, &exit) || strings.Contains(string(out), "panic:") {
		t.Fatalf("got %v, want failed tests\n%s", err, out)
	}
	all := make(map[string]string)
	for part := range strings.SplitSeq(string(out), "=== RUN   TestSuite/") {
		name, _, _ := strings.Cut(part, "\n")
		name, _, _ = strings.Cut(name, "/")
		all[name] += part
	}
	return all
}

var runBroken = flag.Bool("broken", false, "run the suite on broken stores, which have to fail: seconds of a processor")

// Each broken store fails the tests that are about its fault. Together they fail
// every test of the suite: one that cannot fail shows nothing.
func TestSuiteFails(t *testing.T) {
	if !*runBroken {
		t.Skip("runs the suite on each broken store: run it with -broken")
	}
	t.Parallel()
	outputs := suiteOutputs(t, "-test.run=^TestSuite$", "-test.skip=^TestSuite$/^not_virtual$")
	maps.Copy(outputs, suiteOutputs(t, "-test.run=^TestSuite$/^not_virtual$/^Create$")) // the rest of it takes real time
	ever := make(map[string]bool)
	for name, want := range suites {
		out := outputs[strings.ReplaceAll(name, " ", "_")]
		verdicts := verdicts(out)
		for test, got := range verdicts {
			ever[test] = ever[test] || got == "FAIL" && want.says == ""
		}
		t.Run(name, func(t *testing.T) { want.compare(t, verdicts, out) })
	}
	for test, failed := range ever {
		if !failed {
			t.Errorf("%s passes on every broken store", test)
		}
	}
}

func (s suite) compare(t *testing.T, verdicts map[string]string, out string) {
	for test := range strings.FieldsSeq(s.fails) {
		if got := verdicts[test]; got != "FAIL" {
			t.Errorf("%s: got %q, want FAIL", test, got)
		}
	}
	for test := range strings.FieldsSeq(s.passes) {
		if got := verdicts[test]; got != "PASS" {
			t.Errorf("%s: got %q, want PASS", test, got)
		}
	}
	if !strings.Contains(out, s.says) {
		t.Errorf("it does not say %q\n%s", s.says, out)
	}
}

// verdicts reads the output of go test -v about one store.
func verdicts(out string) map[string]string {
	all := make(map[string]string)
	for _, m := range regexp.MustCompile(`--- (PASS|FAIL|SKIP): TestSuite/[^/\s]+/(\S+)`).FindAllStringSubmatch(out, -1) {
		all[m[2]] = m[1]
	}
	return all
}

// A store that fails exactly as listed passes; one without Break, Delete or Save
// is spared the tests that need it. The list of failures is exact, or this fails.
func TestDifferences(t *testing.T) {
	storetest.Test(t, storetest.Harness{
		New:     func(*testing.T) store.Store { return plain{creates{new(local.Memory)}} },
		Virtual: true,
		Differences: map[string]string{
			"Create/available": "a create replaces the record",
			"Create/released":  "a create replaces the record",
			"Create/leased":    "a create replaces the record",
			"Create/expired":   "a create replaces the record",
			"Race/create":      "a create replaces the record",
			"Context/create":   "a create asks no context",
		},
	})
}

// No record has two spaces in a row, so a store need not keep them.
func TestSpacesInARow(t *testing.T) {
	storetest.Test(t, virtual(func() store.Store { return squeezes{new(local.Memory)} }))
}

// A store may have one length of leases, or two that are near each other.
func TestNearLimits(t *testing.T) {
	for _, limits := range [][2]time.Duration{{30 * time.Second, 30 * time.Second}, {20 * time.Second, 21 * time.Second}, {time.Second, time.Minute}} {
		t.Run(fmt.Sprint(limits[0], " to ", limits[1]), func(t *testing.T) {
			storetest.Test(t, virtual(func() store.Store { return newLimited(limits[0], limits[1]) }))
		})
	}
}
