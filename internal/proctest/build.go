package proctest

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
)

// An Edit is a change of a source file: a mistake that tests have to find.
type Edit struct {
	File     string // from the root of the repository
	Old, New string // Old is there once
}

// Edited returns the text of the files with the edits made, by path.
func Edited(edits ...Edit) (all map[string][]byte, err error) {
	all = map[string][]byte{}
	for _, e := range edits {
		file := source(e.File)
		if all[file] == nil {
			if all[file], err = os.ReadFile(file); err != nil {
				return nil, err
			}
		}
		if n := bytes.Count(all[file], []byte(e.Old)); n != 1 {
			return nil, fmt.Errorf("%s has %q %d times: adapt the edit", e.File, e.Old, n)
		}
		all[file] = bytes.Replace(all[file], []byte(e.Old), []byte(e.New), 1)
	}
	return all, nil
}

// Build makes the program of a package, or with test its test program, with the
// edits made; the sources stay as they are. The program goes with the test.
func Build(t testing.TB, pkg string, test bool, edits ...Edit) (program string) {
	t.Helper()
	edited, err := Edited(edits...)
	if err == nil {
		program, err = BuildOver(t.TempDir(), pkg, test, edited)
	}
	if err != nil {
		t.Fatal(err)
	}
	return program
}

// BuildOver is Build with these texts in place of the files of those paths; the program goes with the directory.
func BuildOver(dir, pkg string, test bool, edited map[string][]byte) (program string, err error) {
	overlay, err := Overlay(dir, edited)
	if err != nil {
		return "", err
	}
	args := []string{"build"}
	if test {
		args = []string{"test", "-c", "-vet=off"}
	}
	program = filepath.Join(dir, path.Base(path.Join("soloist", pkg)))
	cmd := exec.Command("go", append(args, "-ldflags=-s -w", "-overlay", overlay, "-o", program, ".")...) // without what a debugger needs
	cmd.Dir = source(pkg)                                                                                 // it may be of another module
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s: %w\n%s", cmd, err, out)
	}
	return program, nil
}

// Overlay writes the file that has the go command take these texts for the real
// files of those paths.
func Overlay(dir string, all map[string][]byte) (_ string, err error) {
	replace := map[string]string{}
	for i, file := range slices.Sorted(maps.Keys(all)) {
		replace[file] = filepath.Join(dir, fmt.Sprintf("%d-%s", i, filepath.Base(file)))
		err = errors.Join(err, os.WriteFile(replace[file], all[file], 0o600))
	}
	text, _ := json.Marshal(map[string]any{"Replace": replace}) // of texts
	name := filepath.Join(dir, "overlay.json")
	return name, errors.Join(err, os.WriteFile(name, text, 0o600))
}

// source is a path in the repository: found from this file, because a test runs
// in the directory of its own package.
func source(name string) string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(file), "..", "..", filepath.FromSlash(name))
}

// Main runs the tests of a package, so many at once: their processes wait nearly
// all the time.
func Main(m *testing.M, parallel int) {
	flag.Parse()
	flag.Set("test.parallel", fmt.Sprint(parallel))
	os.Exit(m.Run())
}
