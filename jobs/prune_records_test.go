package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The records of the scheduler are no old files to delete, wherever they are.
func TestPruneRefusesADirectoryWithRecords(t *testing.T) {
	home := t.TempDir()
	t.Chdir(home)
	for setting, records := range map[string]string{"": ".soloist", "dir:records": "records"} {
		if err := os.MkdirAll(filepath.Join(home, records, "demo"), 0o755); err != nil {
			t.Fatal(err)
		}
		for _, dir := range []string{home, filepath.Join(home, records)} {
			root, err := openPruneDir(dir, environment("SOLOIST_STORAGE", setting))
			if err == nil || !strings.Contains(err.Error(), "want a directory of its own") {
				t.Errorf("%q, %s: got %v, want a refusal", setting, dir, err)
			}
			if root != nil {
				root.Close()
			}
		}
	}
}
