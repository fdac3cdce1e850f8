package sim_test

import (
	"cmp"
	"fmt"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/soloist-go/soloist/internal/proctest"
)

// tales is the package of the stories that catch what seeds would take long for.
const tales = "../scenarios"

var (
	complaint = regexp.MustCompile(`(I[0-9]+[a-d']? [a-z ]+) at \d\d:`)
	failing   = regexp.MustCompile(`(?m)^\s*--- FAIL: TestSeeds(?:AtZero)?/seed/(\d+)`)
)

// inStory tells the mutant its story, which must not end well.
func (m mutant) inStory(t *testing.T) {
	pkg := cmp.Or(m.pkg, tales)
	out, err := tell(m.build(t, pkg), pkg, "^"+m.story+"$")
	if err == nil {
		t.Errorf("not caught by %s", m.story)
		return
	}
	if !strings.Contains(string(out), "--- FAIL: "+m.story) {
		t.Errorf("%v: %s", err, out)
	}
	t.Logf("caught by %s: %s", m.story, list(complaints(out)))
}

// tell runs stories.
func tell(program, pkg, which string) ([]byte, error) {
	run := exec.Command(program, "-test.run="+which, "-test.timeout=1m")
	run.Dir = pkg // of which one reads itself
	return run.CombinedOutput()
}

// inSeeds simulates the mutant, until some seed has caught it.
func (m mutant) inSeeds(t *testing.T) {
	program := m.build(t, ".")
	of := "TestSeeds"
	if m.zero {
		of = atZero
	}
	for first := 1; first <= mostSeeds; first += someSeeds {
		out, err := seedsOf(program, of, first, someSeeds)
		if err == nil {
			continue
		}
		what := complaints(out)
		if len(what) == 0 {
			t.Errorf("the checker says nothing: %.600s", out)
			return
		}
		var in []string
		for _, f := range failing.FindAllSubmatch(out, -1) {
			in = append(in, string(f[1]))
		}
		slices.Sort(in)
		t.Logf("caught by seeds %s of %d to %d: %s", strings.Join(in, " "), first, first+someSeeds-1, list(what))
		return
	}
	t.Errorf("not caught by %d seeds", mostSeeds)
}

const (
	mostSeeds = 12 // within which a mutant has to be caught
	someSeeds = 3  // are simulated at once
)

// atZero is the test of the seeds of clusters that scale to zero.
const atZero = "TestSeedsAtZero"

// seedsOf simulates n seeds of a test.
func seedsOf(program, of string, first, n int) ([]byte, error) {
	return exec.Command(program, "-test.run="+of+"$", "-test.timeout=5m", fmt.Sprintf("-from=%d", first),
		fmt.Sprintf("-seeds=%d", n), fmt.Sprintf("-length=%s", *length)).CombinedOutput()
}

// complaints counts what the checker says, by invariant.
func complaints(out []byte) map[string]int {
	what := map[string]int{}
	for _, c := range complaint.FindAllSubmatch(out, -1) {
		what[string(c[1])]++
	}
	return what
}

// build makes the test program of a package with the mistake.
func (m mutant) build(t *testing.T, pkg string) string {
	t.Helper()
	return proctest.Build(t, path.Join("internal/sim", pkg), true, m.edits()...)
}
