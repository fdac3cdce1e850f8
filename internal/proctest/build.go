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
	"sync"
	"testing"
)

// An Edit is a change of a source file: a mistake that tests have to find.
type Edit struct {
	File     string // from the root of the repository
	Old, New string // Old is there once
}

// Edited returns the text of the files with the edits made, by path.
func Edited(edits ...Edit) (map[string][]byte, error) {
	root, err := root()
	all := map[string][]byte{}
	for _, e := range edits {
		file := filepath.Join(root, filepath.FromSlash(e.File))
		if all[file] == nil && err == nil {
			all[file], err = os.ReadFile(file)
		}
		if n := bytes.Count(all[file], []byte(e.Old)); n != 1 && err == nil {
			err = fmt.Errorf("%s has %q %d times: adapt the edit", e.File, e.Old, n)
		}
		all[file] = bytes.Replace(all[file], []byte(e.Old), []byte(e.New), 1)
	}
	return all, err
}

// Build makes the program of a package in dir, or with test its test program,
// with the edits made; the sources stay as they are. It returns the program.
func Build(dir, pkg string, test bool, edits ...Edit) (program string, err error) {
	overlay, err := overlay(dir, edits)
	if err != nil {
		return "", err
	}
	root, err := root()
	if err != nil {
		return "", err
	}
	args := []string{"build"}
	if test {
		args = []string{"test", "-c", "-vet=off"}
	}
	program = filepath.Join(dir, path.Base(pkg))
	cmd := exec.Command("go", append(args, "-ldflags=-s -w", "-overlay", overlay, "-o", program, ".")...)
	cmd.Dir = filepath.Join(root, filepath.FromSlash(pkg)) // it may be of another module
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s: %w\n%s", cmd, err, out)
	}
	return program, nil
}

// overlay writes the file that has the go command take edited files for the
// real ones.
func overlay(dir string, edits []Edit) (string, error) {
	replace := map[string]string{}
	all, err := Edited(edits...)
	for i, file := range slices.Sorted(maps.Keys(all)) {
		replace[file] = filepath.Join(dir, fmt.Sprintf("%d-%s", i, filepath.Base(file)))
		err = errors.Join(err, os.WriteFile(replace[file], all[file], 0o600))
	}
	text, _ := json.Marshal(map[string]any{"Replace": replace}) // of texts
	name := filepath.Join(dir, "overlay.json")
	return name, errors.Join(err, os.WriteFile(name, text, 0o600))
}

// root is that of the repository: found from this file, because a test runs in
// the directory of its own package.
func root() (string, error) {
	_, file, _, ok := runtime.Caller(0)
	if !ok {
		return "", errors.New("proctest: no source path")
	}
	root := filepath.Join(filepath.Dir(file), "..", "..")
	_, err := os.Stat(filepath.Join(root, "go.mod"))
	return root, err
}

// Main runs the tests of a package, so many at once: their processes wait nearly
// all the time.
func Main(m *testing.M, parallel int) {
	flag.Parse()
	flag.Set("test.parallel", fmt.Sprint(parallel))
	code := m.Run()
	for _, dir := range programs.dirs {
		os.RemoveAll(dir)
	}
	os.Exit(code)
}

// programs are those of [Program].
var programs struct {
	sync.Mutex
	made map[string]func() (string, error)
	dirs []string
}

// Program is [Build] of a program that several tests use: it is made once. It
// needs [Main], which removes it.
func Program(t testing.TB, pkg string, edits ...Edit) string {
	t.Helper()
	key := fmt.Sprintf("%q %q", pkg, edits)
	programs.Lock()
	if programs.made == nil {
		programs.made = map[string]func() (string, error){}
	}
	if programs.made[key] == nil {
		dir, err := os.MkdirTemp("", "soloist-program-")
		programs.dirs = append(programs.dirs, dir)
		programs.made[key] = sync.OnceValues(func() (string, error) {
			if err != nil {
				return "", err
			}
			return Build(dir, pkg, false, edits...)
		})
	}
	made := programs.made[key]
	programs.Unlock()
	program, err := made()
	if err != nil {
		t.Fatal(err)
	}
	return program
}
