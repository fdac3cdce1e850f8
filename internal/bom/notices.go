package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"
	"unicode"
)

// legal matches the files that a distribution has to come with.
var legal = regexp.MustCompile(`(?i)^(licen[sc]e|copying|notice|patents)(\.(txt|md))?$`)

// notices returns the legal files of Go and of each linked module. A module
// without any is an error: a binary that contains it may not be distributed.
func notices(info *debug.BuildInfo, goRoot, cache string) ([]byte, error) {
	var b bytes.Buffer
	fmt.Fprintf(&b, "Third-party software in %s\n", info.Path)
	if err := add(&b, "Go "+strings.TrimPrefix(info.GoVersion, "go"), goRoot); err != nil {
		return nil, err
	}
	for _, m := range linked(info) {
		if err := add(&b, strings.TrimSpace(m.Path+" "+m.Version), directory(cache, m)); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), nil
}

// directory is where the sources of a module are. A module that was replaced by
// a directory has no version.
func directory(cache string, m *debug.Module) string {
	if m.Version == "" {
		return m.Path
	}
	return filepath.Join(cache, escape(m.Path)+"@"+escape(m.Version))
}

// escape writes an upper-case letter as the module cache does, for file systems
// that ignore case (https://go.dev/ref/mod#module-cache).
func escape(text string) string {
	var b strings.Builder
	for _, c := range text {
		if unicode.IsUpper(c) {
			b.WriteByte('!')
		}
		b.WriteRune(unicode.ToLower(c))
	}
	return b.String()
}

// add appends the legal files in dir, under the name of what they are for.
func add(b *bytes.Buffer, name, dir string) error {
	files, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	found := false
	for _, f := range files {
		if f.IsDir() || !legal.MatchString(f.Name()) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		fmt.Fprintf(b, "\n%s\n%s: %s\n\n%s\n", strings.Repeat("=", 80), name, f.Name(), bytes.TrimSpace(text))
		found = true
	}
	if !found {
		return fmt.Errorf("%s: no licence file in %s: look for its licence, and replace the module if it has none", name, dir)
	}
	return nil
}
