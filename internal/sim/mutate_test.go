package sim_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// tales is the package of the stories that catch what seeds would take long for.
const tales = "../scenarios"

var (
	complaint = regexp.MustCompile(`(I[0-9]+[a-d']? [a-z ]+) at \d\d:`)
	failing   = regexp.MustCompile(`(?m)^\s*--- FAIL: TestSeeds/seed/(\d+)`)
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

// inSeeds simulates the mutant.
func (m mutant) inSeeds(t *testing.T) {
	out, err := seedsOf(m.build(t, "."))
	if err == nil {
		t.Errorf("not caught by %d seeds", firstSeeds)
		return
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
	t.Logf("caught by seeds %s of %d: %s", strings.Join(in, " "), firstSeeds, list(what))
}

// firstSeeds are those within which a mutant has to be caught.
const firstSeeds = 12

// seedsOf simulates the first seeds.
func seedsOf(program string) ([]byte, error) {
	return exec.Command(program, "-test.run=TestSeeds$", "-test.timeout=2m",
		fmt.Sprintf("-seeds=%d", firstSeeds), fmt.Sprintf("-length=%s", *length)).CombinedOutput()
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
