// Command bom lists what a Go binary is made of:
//
//	go run ./internal/bom BINARY DIRECTORY
//
// It writes two files into the directory: NOTICES, with the licence of each
// module that is linked into the binary and of Go itself, and sbom.cdx.json, a
// bill of materials (https://cyclonedx.org/docs/1.6/json/). Both follow from the
// build info in the binary and from the module cache, so the same binary makes
// the same files.
package main

import (
	"debug/buildinfo"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: bom BINARY DIRECTORY")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "bom:", err)
		os.Exit(1)
	}
}

func run(binary, dir string) error {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return err
	}
	out, err := exec.Command("go", "env", "GOROOT", "GOMODCACHE").Output()
	if err != nil {
		return fmt.Errorf("go env: %w", err)
	}
	goRoot, cache, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	notices, err := notices(info, goRoot, cache)
	if err != nil {
		return err
	}
	bom, err := billOfMaterials(info)
	if err != nil {
		return err
	}
	return write(dir, map[string][]byte{"NOTICES": notices, "sbom.cdx.json": bom})
}

func write(dir string, files map[string][]byte) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// linked returns the modules in the binary besides the main one, in the order
// of the build info, which is sorted by path. If go.mod replaces a module, it
// returns the replacement: that is what was linked.
func linked(info *debug.BuildInfo) (modules []*debug.Module) {
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		modules = append(modules, m)
	}
	return modules
}
