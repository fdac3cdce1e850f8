package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
)

// place makes a file in a stand-in for the module cache or GOROOT.
func place(t *testing.T, content string, path ...string) {
	t.Helper()
	name := filepath.Join(path...)
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestNotices(t *testing.T) {
	root, cache, local := t.TempDir(), t.TempDir(), t.TempDir()
	place(t, "of Go", root, "LICENSE")
	place(t, "of big", cache, "example.com/!big@v1.0.0-!r!c1", "LICENSE.txt")
	place(t, "mentioned too", cache, "example.com/!big@v1.0.0-!r!c1", "NOTICE")
	place(t, "package big", cache, "example.com/!big@v1.0.0-!r!c1", "license.go")
	place(t, "of the fork", local, "COPYING")
	info := &debug.BuildInfo{GoVersion: "go1.26.8", Path: "example.com/program", Deps: []*debug.Module{
		{Path: "example.com/Big", Version: "v1.0.0-RC1"},
		{Path: "example.com/forked", Version: "v1.0.0", Replace: &debug.Module{Path: local}},
	}}
	b, err := notices(info, root, cache)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"\nGo 1.26.8: LICENSE\n\nof Go\n", "\nexample.com/Big v1.0.0-RC1: LICENSE.txt\n\nof big\n",
		"\nexample.com/Big v1.0.0-RC1: NOTICE\n\nmentioned too\n", "\n" + local + ": COPYING\n\nof the fork\n"} {
		if !bytes.Contains(b, []byte(want)) {
			t.Errorf("no %q in %s", want, b)
		}
	}
	if bytes.Contains(b, []byte("package big")) {
		t.Error("a source file counts as a licence")
	}
	place(t, "read me", cache, "example.com/none@v1.0.0", "README.md")
	for _, path := range []string{"example.com/none", "example.com/absent"} {
		info.Deps = []*debug.Module{{Path: path, Version: "v1.0.0"}}
		if b, err := notices(info, root, cache); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: got %q, %v", path, b, err)
		}
	}
}

func TestBillOfMaterials(t *testing.T) {
	b, err := billOfMaterials(&debug.BuildInfo{GoVersion: "go1.26.8", Path: "example.com/program",
		Main:     debug.Module{Path: "example.com", Version: "(devel)"},
		Settings: []debug.BuildSetting{{Key: "GOOS", Value: "linux"}},
		Deps:     []*debug.Module{{Path: "example.com/old", Version: "v2.0.0+incompatible", Sum: "h1:x="}}})
	if err != nil {
		t.Fatal(err)
	}
	var got document
	if err := json.Unmarshal(b, &got); err != nil {
		t.Fatal(err)
	}
	if got.Format != "CycloneDX" || got.Metadata.Component.PURL != "pkg:golang/example.com/program" || len(got.Components) != 2 ||
		got.Components[0].PURL != "pkg:golang/std@1.26.8" || got.Components[1].PURL != "pkg:golang/example.com/old@v2.0.0%2Bincompatible" ||
		got.Components[1].Properties[0] != (property{"go:sum", "h1:x="}) || len(got.Dependencies[0].DependsOn) != 2 {
		t.Errorf("got %s", b)
	}
}
