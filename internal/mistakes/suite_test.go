package mistakes_test

import (
	"flag"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/soloist-go/soloist/internal/proctest"
)

var suiteFlag = flag.Bool("suite", false, "demand that each test of the conformance suite of stores fails with one of its mistakes")

// TestSuiteFails makes each mistake that a test of the suite notices. Together they fail every test of the suite: one that cannot
// fail shows nothing. Those that need two instances of a store fail in TestTwoInstancesThatRemember of the suite's package.
func TestSuiteFails(t *testing.T) {
	if !*suiteFlag {
		t.Skip("takes a minute of a processor: go test ./internal/mistakes -run TestSuiteFails -suite")
	}
	all, err := read()
	if err != nil {
		t.Fatal(err)
	}
	var some []mistake
	for _, m := range all {
		if m.pkg == "host/local" && strings.HasPrefix(m.test, "TestMemory/") {
			some = append(some, m)
		}
	}
	p, err := plant(some)
	if err != nil {
		t.Fatal(err)
	}
	program, err := proctest.BuildOver(t.TempDir(), "host/local", true, p.sources())
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	ever := map[string]bool{}
	t.Run("mistakes", func(t *testing.T) {
		for _, m := range some {
			t.Run(m.name, func(t *testing.T) {
				t.Parallel()
				out, _ := run(program, m.pkg, m.name, "-test.run=^TestMemory$", "-test.v") // it has to fail
				mu.Lock()
				defer mu.Unlock()
				for _, verdict := range verdicts.FindAllStringSubmatch(string(out), -1) {
					ever[verdict[2]] = ever[verdict[2]] || verdict[1] == "FAIL"
				}
			})
		}
	})
	for test, failed := range ever {
		if !failed {
			t.Errorf("%s passes with every mistake", test)
		}
	}
}

var verdicts = regexp.MustCompile(`--- (PASS|FAIL): TestMemory/(\S+)`)
