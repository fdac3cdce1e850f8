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
