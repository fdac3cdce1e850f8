package soloist_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// mapped are the directories of which docs/tests.md has a row for each source file.
var mapped = []string{".", "store", "internal/alarm", "internal/elapsed", "internal/instant", "internal/ontime", "internal/lease", "internal/logqueue", "internal/plan",
	"internal/queue", "internal/control", "internal/runner", "internal/schedule", "internal/spread", "internal/supervise", "host/azure", "host/local"}

// The page that says which test guards what names only what there is, and leaves
// out no promise of docs/correctness.md and no source file.
func TestMapOfTests(t *testing.T) {
	page := readPage(t, "docs/tests.md")
	promises, files, ok := strings.Cut(page, "\n## Source files\n")
	if !ok {
		t.Fatal("docs/tests.md has no section on source files")
	}
	tests := namesIn(t, ".", "_test.go", `(?m)^func ((?:Test|Fuzz)\w+)\(`)
	for _, name := range allMatches("`((?:Test|Fuzz)\\w+)`", page) {
		if !slices.Contains(tests, name) {
			t.Errorf("there is no test %s", name)
		}
	}
	mutants := namesIn(t, "internal/sim", "_test.go", `\{name: "([^"]+)"`)
	for _, name := range allMatches(`(?m)[|,] \*([^*]+)\*`, promises) {
		if !slices.Contains(mutants, name) {
			t.Errorf("there is no mutant %q", name)
		}
	}
	invariants := namesIn(t, "internal/sim/check", ".go", `(?m)^\s+\{"(I\d[^"]*)", `)
	told := allMatches("`(I\\d[^`]*)`", promises)
	for _, name := range told {
		if !slices.Contains(invariants, name) {
			t.Errorf("there is no invariant %q", name)
		}
	}
	for _, name := range invariants {
		if !slices.Contains(told, name) {
			t.Errorf("docs/tests.md leaves out the invariant %q", name)
		}
	}
	for _, name := range allMatches(`(?m)^\| (I\d+ [a-z ]+) \|`, readPage(t, "docs/correctness.md")) {
		if !strings.Contains(promises, "\n| "+name+" |") {
			t.Errorf("docs/tests.md leaves out the promise %s", name)
		}
	}
	checkMappedFiles(t, files)
}

// checkMappedFiles compares the rows of each section with the files of its
// directories.
func checkMappedFiles(t *testing.T, page string) {
	t.Helper()
	rows := map[string]string{} // from a directory to its section
	for _, section := range strings.Split(page, "\n### ")[1:] {
		title, text, _ := strings.Cut(section, "\n")
		for _, dir := range mapped {
			if slices.Contains(strings.FieldsFunc(title, func(r rune) bool { return r == ' ' || r == ',' }), strings.Replace(dir, ".", "soloist", 1)) {
				rows[dir] += text
			}
		}
	}
	sources := map[string]bool{}
	for _, dir := range mapped {
		all, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil || len(all) == 0 {
			t.Fatalf("%s: %d files, %v", dir, len(all), err)
		}
		for _, file := range all {
			name := filepath.Base(file)
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			sources[name] = true
			if !strings.Contains(rows[dir], "\n| `"+name+"` | ") {
				t.Errorf("docs/tests.md leaves out %s", file)
			}
		}
	}
	for _, name := range allMatches("(?m)^\\| `(\\w+\\.go)` \\|", page) {
		if !sources[name] {
			t.Errorf("there is no file %s", name)
		}
	}
}

// Each mutant's story is a test that there is: one that was renamed would be told
// by nothing but a long run.
func TestMutantsNameTheirTests(t *testing.T) {
	tests := namesIn(t, ".", "_test.go", `(?m)^func (Test\w+)\(`)
	stories := namesIn(t, "internal/sim", "_test.go", `story: "(\w+)"`)
	if len(stories) < 20 {
		t.Fatalf("found only %q", stories)
	}
	for _, story := range stories {
		if !slices.Contains(tests, story) {
			t.Errorf("a mutant is to be caught by %s, which there is not", story)
		}
	}
}

func readPage(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// namesIn returns what the pattern finds in the files below dir whose names end so.
func namesIn(t *testing.T, dir, suffix, pattern string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "node_modules" || strings.HasPrefix(d.Name(), ".") && path != "."):
			return filepath.SkipDir
		case !d.IsDir() && strings.HasSuffix(path, suffix):
			names = append(names, allMatches(pattern, readPage(t, path))...)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func allMatches(pattern, text string) (found []string) {
	for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
		found = append(found, m[1])
	}
	return found
}
