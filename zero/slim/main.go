// Slim copies KEDA's module from the module cache to .keda without the scalers that zero does not use, and writes
// .keda/go.mod, which has the go command take the copy:
//
//	go run ./slim && go test -modfile=.keda/go.mod ./...
//
// KEDA has all of its scalers in one package, and with it the clients of what they ask: 3,258 packages. Without them 1,180 are
// left. The files that stay are those of the module, byte for byte.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

const (
	module = "github.com/kedacore/keda/v2"
	copied = ".keda"
)

// kept are the files of package scalers that stay.
var kept = []string{"azure_queue_scaler.go", "scaler.go"}

func main() {
	if err := slim(); err != nil {
		fmt.Fprintln(os.Stderr, "slim:", err)
		os.Exit(1)
	}
}

func slim() error {
	source, err := download()
	if err != nil {
		return err
	}
	if err := os.RemoveAll(copied); err != nil {
		return err
	}
	if err := copyTo(filepath.Join(copied, "keda"), source); err != nil {
		return err
	}
	return requirements()
}

// download returns where the module is in the module cache. The go command has checked it against go.sum.
func download() (string, error) {
	cmd := exec.Command("go", "mod", "download", "-json", module)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", cmd, err, out)
	}
	var found struct{ Dir string }
	if err := json.Unmarshal(out, &found); err != nil || found.Dir == "" {
		return "", fmt.Errorf("%s: no directory in %s", cmd, out)
	}
	return found.Dir, nil
}

// copyTo copies the packages, without tests and without the other scalers.
func copyTo(dir, source string) error {
	for _, part := range []string{"go.mod", "LICENSE", "apis", "pkg", "version"} {
		err := filepath.WalkDir(filepath.Join(source, part), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			name, err := filepath.Rel(source, path)
			if err != nil || leftOut(filepath.ToSlash(name)) {
				return err
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			return write(filepath.Join(dir, name), text)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func leftOut(name string) bool {
	file, scaler := strings.CutPrefix(name, "pkg/scalers/")
	return strings.HasSuffix(name, "_test.go") || scaler && !strings.Contains(file, "/") && !slices.Contains(kept, file)
}

// requirements writes the go.mod of this module with the copy in KEDA's place, and its go.sum beside it.
func requirements() error {
	mod, err := os.ReadFile("go.mod")
	if err != nil {
		return err
	}
	sum, err := os.ReadFile("go.sum")
	if err != nil {
		return err
	}
	mod = fmt.Appendf(mod, "\nreplace %s => ./%s/keda\n", module, copied)
	return errors.Join(write(filepath.Join(copied, "go.mod"), mod), write(filepath.Join(copied, "go.sum"), sum))
}

func write(name string, text []byte) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return os.WriteFile(name, text, 0o644)
}
