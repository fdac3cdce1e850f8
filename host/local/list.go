package local

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/soloist-go/soloist/store"
)

var (
	_ store.Lister = (*Memory)(nil)
	_ store.Lister = Dir{}
)

// List implements [store.Lister]. It costs a read of each entry.
func (m *Memory) List(ctx context.Context, app string, f func(name string, e store.Entry) bool) error {
	m.mu.Lock()
	names := slices.Collect(maps.Keys(m.entries))
	m.mu.Unlock()
	names = slices.DeleteFunc(names, func(name string) bool {
		return !strings.HasPrefix(name, app+"/") || strings.HasPrefix(name, app+"/.")
	})
	return m.all().list(ctx, names, f)
}

// List implements [store.Lister]. It costs a read of each entry. An entry that cannot be
// read keeps no other from being listed; the error names it.
func (d Dir) List(ctx context.Context, app string, f func(name string, e store.Entry) bool) error {
	if d.Path == "" {
		return errNoPath
	}
	names, err := d.names(app)
	if errors.Is(err, fs.ErrNotExist) {
		return ctx.Err()
	}
	if err != nil {
		return explain(err)
	}
	return update(d.update).list(ctx, names, f)
}

// names returns the names of an app's entries that have no dot after the slash.
func (d Dir) names(app string) (names []string, err error) {
	files, err := os.ReadDir(filepath.Join(d.Path, app))
	for _, file := range files {
		job, ok := strings.CutSuffix(file.Name(), suffix)
		if name := app + "/" + job; ok && !strings.HasPrefix(job, ".") && checkName(name) == nil {
			names = append(names, name)
		}
	}
	return names, err
}

// list reads entries one after the other, in the order of their names.
func (u update) list(ctx context.Context, names []string, f func(name string, e store.Entry) bool) error {
	slices.Sort(names)
	failed := ctx.Err()
	for _, name := range names {
		e, err := u.read(ctx, name)
		switch {
		case errors.Is(err, fs.ErrNotExist): // it was deleted meanwhile
		case err != nil && ctx.Err() != nil:
			return err
		case err != nil:
			failed = cmp.Or(failed, err)
		case !f(name, e):
			return failed
		}
	}
	return failed
}

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
		if names, err := d.names(app.Name()); err == nil && len(names) > 0 { // .doctor.d is not a job's
			apps = append(apps, app.Name())
		}
	}
	return apps, nil
}
