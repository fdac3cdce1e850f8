package local

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Apps returns the apps that have entries, in no order.
func (m *Memory) Apps(context.Context) (apps []string, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	seen := map[string]bool{}
	for name := range m.entries {
		if app, _, _ := strings.Cut(name, "/"); !seen[app] {
			seen[app], apps = true, append(apps, app)
		}
	}
	return apps, nil
}

// Apps returns the apps that have entries, in no order. fs.ErrNotExist: there is
// no such directory.
func (d Dir) Apps(context.Context) (apps []string, err error) {
	if d.Path == "" {
		return nil, errNoPath
	}
	all, err := os.ReadDir(d.Path)
	if err != nil {
		return nil, explain(err)
	}
	for _, app := range all {
		// The pattern leaves out .doctor.json, which is not a job's.
		files, err := fs.Glob(os.DirFS(filepath.Join(d.Path, app.Name())), "[a-z]*.json")
		if err == nil && len(files) > 0 {
			apps = append(apps, app.Name())
		}
	}
	return apps, nil
}
