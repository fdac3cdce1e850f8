package sim_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// tales is the package of the stories that catch what seeds would take long for.
const tales = "../interleavings"

var (
	complaint = regexp.MustCompile(`(I[0-9]+[a-d']? [a-z ]+) at \d\d:`)
	failing   = regexp.MustCompile(`(?m)^\s*--- FAIL: TestSeeds/seed/(\d+)`)
)

// inStory tells the mutant its story, which must not end well.
func (m mutant) inStory(t *testing.T) {
	out, err := tell(m.build(t, tales), "^"+m.story+"$")
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
func tell(program, which string) ([]byte, error) {
	run := exec.Command(program, "-test.run="+which, "-test.timeout=1m")
	run.Dir = tales // of which one reads itself
	return run.CombinedOutput()
}

// inSeeds simulates the mutant. Seeds with which the program itself fails prove
// nothing.
func (m mutant) inSeeds(t *testing.T) {
	out, err := seedsOf(m.build(t, "."), 1, m.seeds)
	if err == nil {
		t.Errorf("not caught by %d seeds", m.seeds)
		return
	}
	what := complaints(out)
	if len(what) == 0 {
		t.Errorf("the checker says nothing: %.600s", out)
		return
	}
	var in []string
	for _, f := range failing.FindAllSubmatch(out, -1) {
		s, _ := strconv.Atoi(string(f[1]))
		if out, err := seedsOf(os.Args[0], s, 1); err != nil {
			t.Errorf("the program itself fails: %s", out)
			continue
		}
		in = append(in, string(f[1]))
	}
	slices.Sort(in)
	if len(in) == 0 {
		t.Errorf("not caught: %s", out)
	}
	t.Logf("caught by seeds %s of %d: %s", strings.Join(in, " "), m.seeds, list(what))
}

func seedsOf(program string, first, n int) ([]byte, error) {
	return exec.Command(program, "-test.run=TestSeeds$", "-test.timeout=2m", fmt.Sprintf("-from=%d", first),
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

// build makes the test program of a package from the mutant's source.
func (m mutant) build(t *testing.T, pkg string) string {
	t.Helper()
	path, source := m.source(t)
	dir := t.TempDir()
	mutated := filepath.Join(dir, filepath.Base(m.file))
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{path: mutated}})
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string][]byte{
		mutated:                            source,
		filepath.Join(dir, "overlay.json"): overlay,
	} {
		if err := os.WriteFile(name, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return compile(t, dir, pkg, "-overlay", filepath.Join(dir, "overlay.json"))
}

// compile makes the test program of a package, without what a debugger needs.
func compile(t *testing.T, dir, pkg string, args ...string) string {
	t.Helper()
	program := filepath.Join(dir, "program")
	args = append([]string{"test", "-c", "-vet=off", "-ldflags=-s -w", "-o", program}, args...)
	build := exec.Command("go", append(args, pkg)...)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", build, err, out)
	}
	return program
}
