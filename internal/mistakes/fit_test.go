package mistakes_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
)

// Each mistake can still be made: its text is in the source once, the result compiles, and its test exists.
func TestMistakesFit(t *testing.T) {
	all, err := read()
	if err != nil {
		t.Fatal(err)
	}
	p, err := plant(all)
	if err != nil {
		t.Fatal(err)
	}
	if err := compiles(p.sources()); err != nil {
		t.Error(err)
	}
	names := map[string]bool{}
	for _, m := range all {
		if names[m.name] {
			t.Errorf("two mistakes are called %q", m.name)
		}
		names[m.name] = true
		if m.testFile() == "" {
			t.Errorf("%s: there is no %s in %s", m.name, m.test, m.pkg)
		}
	}
}

// testFile is the file with the test that is to notice the mistake, from the root of the repository.
func (m mistake) testFile() string {
	files, _ := filepath.Glob(filepath.Join(root, m.pkg, "*_test.go")) // the pattern is right
	head := regexp.MustCompile(`(?m)^func ` + m.function() + `\(`)
	i := slices.IndexFunc(files, func(file string) bool {
		text, err := os.ReadFile(file)
		return err == nil && head.Match(text)
	})
	if i < 0 {
		return ""
	}
	return filepath.Join(m.pkg, filepath.Base(files[i]))
}

// A listed package is what go list says of it.
type listed struct {
	ImportPath, Dir, Export string
	GoFiles                 []string
}

// compiles checks the types of the packages with these sources: a build of all of them and of what is built
// on them would take a minute.
func compiles(sources map[string][]byte) (err error) {
	var dirs []string
	for path := range sources {
		dirs = append(dirs, filepath.Dir(path))
	}
	slices.Sort(dirs)
	packages, err := list(slices.Compact(dirs))
	if err != nil {
		return err
	}
	fset := token.NewFileSet()
	exports := importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(packages[path].Export) })
	for _, p := range packages {
		if !slices.Contains(dirs, p.Dir) {
			continue
		}
		files := slices.Collect(maps.Keys(sources))
		files = slices.DeleteFunc(files, func(path string) bool { return filepath.Dir(path) != p.Dir })
		for _, name := range p.GoFiles {
			if path := filepath.Join(p.Dir, name); sources[path] == nil {
				files = append(files, path)
			}
		}
		err = errors.Join(err, check(fset, exports, p.ImportPath, files, sources))
	}
	return err
}

// list returns the packages in these directories, and all that they import, by import path.
func list(dirs []string) (map[string]listed, error) {
	cmd := exec.Command("go", append([]string{"list", "-deps", "-export", "-json=ImportPath,Dir,Export,GoFiles"}, dirs...)...)
	cmd.Dir, cmd.Stderr = root, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", cmd, err)
	}
	all := map[string]listed{}
	for d := json.NewDecoder(bytes.NewReader(out)); d.More(); {
		var p listed
		if err := d.Decode(&p); err != nil {
			return nil, err
		}
		all[p.ImportPath] = p
	}
	return all, nil
}

// check checks the types of one package.
func check(fset *token.FileSet, imports types.Importer, pkg string, paths []string, sources map[string][]byte) (errs error) {
	var files []*ast.File
	for _, path := range paths {
		var source any // nil: the file
		if text := sources[path]; text != nil {
			source = text
		}
		f, err := parser.ParseFile(fset, path, source, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		files = append(files, f)
	}
	c := types.Config{Importer: imports, Error: func(err error) { errs = errors.Join(errs, err) }}
	c.Check(pkg, fset, files, nil)
	return errs
}
