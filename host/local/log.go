package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/soloist-go/soloist/internal/filelock"
	"github.com/soloist-go/soloist/internal/safefile"
	"github.com/soloist-go/soloist/store"
)

var (
	_ store.Appender = (*Memory)(nil)
	_ store.Appender = Dir{}
)

var logNames = regexp.MustCompile(`^\.?[a-z0-9-]{1,63}/\.log/\.?[a-z0-9-]{1,63}/[a-z0-9-]{1,63}$`)

func checkLog(ctx context.Context, name string) error {
	if !logNames.MatchString(name) {
		return errors.New(`not the name of a log: want "app/.log/job/part", each part 1 to 63 lower-case letters, digits or hyphens`)
	}
	return ctx.Err()
}

func checkAppend(b []byte) error {
	if n := len(b); n < 1 || n > store.MaxAppend {
		return fmt.Errorf("an append of %d bytes: want 1 to %d", n, store.MaxAppend)
	}
	return nil
}

// Append implements [store.Appender].
func (m *Memory) Append(ctx context.Context, name string, size int64, b []byte) error {
	if err := errors.Join(checkLog(ctx, name), checkAppend(b)); err != nil {
		return fmt.Errorf("append to %q: %w", name, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if int64(len(m.logs[name])) != size {
		return fmt.Errorf("append to %q: %w", name, store.ErrChanged)
	}
	if m.logs == nil {
		m.logs = map[string][]byte{}
	}
	m.logs[name] = append(m.logs[name], b...)
	return nil
}

// ReadLog implements [store.Appender].
func (m *Memory) ReadLog(ctx context.Context, name string, offset int64, n int) ([]byte, error) {
	err := checkLog(ctx, name)
	m.mu.Lock()
	defer m.mu.Unlock()
	b, ok := m.logs[name]
	if err == nil && !ok {
		err = fs.ErrNotExist
	}
	if err != nil {
		return nil, fmt.Errorf("read log %q: %w", name, err)
	}
	b = b[min(offset, int64(len(b))):]
	return bytes.Clone(b[:min(n, len(b))]), nil
}

// Logs implements [store.Appender].
func (m *Memory) Logs(ctx context.Context, entry string, f func(name string, size int64) bool) error {
	m.mu.Lock()
	sizes := map[string]int64{}
	for name, b := range m.logs {
		if strings.HasPrefix(name, store.LogName(entry, "")) {
			sizes[name] = int64(len(b))
		}
	}
	m.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(sizes)) {
		if ctx.Err() != nil || !f(name, sizes[name]) {
			break
		}
	}
	return ctx.Err()
}

// RemoveLog implements [store.Appender].
func (m *Memory) RemoveLog(ctx context.Context, name string) error {
	err := checkLog(ctx, name)
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.logs[name]; err == nil && !ok {
		err = fs.ErrNotExist
	}
	if err != nil {
		return fmt.Errorf("remove log %q: %w", name, err)
	}
	delete(m.logs, name)
	return nil
}

// Append implements [store.Appender]. A log "app/.log/job/part" is the file
// <Path>/app/.log/job/part.log. If the machine loses power during a call, the file may end
// with a part of what was to be appended.
func (d Dir) Append(ctx context.Context, name string, size int64, b []byte) error {
	err := checkAppend(b)
	if err == nil {
		err = d.onLog(ctx, name, size == 0, func(path string) error { return appendFile(path, size, b) })
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = store.ErrChanged
	}
	if err != nil {
		return fmt.Errorf("append to %q: %w", name, explain(err))
	}
	return nil
}

// ReadLog implements [store.Appender].
func (d Dir) ReadLog(ctx context.Context, name string, offset int64, n int) ([]byte, error) {
	var b []byte
	err := d.onLog(ctx, name, false, func(path string) error {
		f, err := safefile.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		b, err = io.ReadAll(io.NewSectionReader(f, offset, int64(n)))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read log %q: %w", name, explain(err))
	}
	return b, nil
}

// Logs implements [store.Appender].
func (d Dir) Logs(ctx context.Context, entry string, f func(name string, size int64) bool) error {
	if d.Path == "" {
		return errNoPath
	}
	files, err := os.ReadDir(filepath.Join(d.Path, filepath.FromSlash(store.LogName(entry, ""))))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return explain(err)
	}
	for _, file := range files {
		part, ok := strings.CutSuffix(file.Name(), ".log")
		name := store.LogName(entry, part)
		info, err := file.Info()
		if !ok || err != nil || checkLog(ctx, name) != nil { // it was removed meanwhile, or is no log
			continue
		}
		if !f(name, info.Size()) {
			break
		}
	}
	return ctx.Err()
}

// RemoveLog implements [store.Appender].
func (d Dir) RemoveLog(ctx context.Context, name string) error {
	if err := d.onLog(ctx, name, false, os.Remove); err != nil {
		return fmt.Errorf("remove log %q: %w", name, explain(err))
	}
	return nil
}

// onLog calls f with the path of a log, for one caller of the machine at a time.
func (d Dir) onLog(ctx context.Context, name string, create bool, f func(path string) error) (err error) {
	if err := checkLog(ctx, name); err != nil {
		return err
	}
	if d.Path == "" {
		return errNoPath
	}
	path := filepath.Join(d.Path, filepath.FromSlash(name)+".log")
	dir := filepath.Dir(path)
	if create {
		if err := makeDir(dir); err != nil {
			return err
		}
	} else if _, err := os.Lstat(path); err != nil {
		return err
	}
	unlock, err := filelock.Lock(ctx, dir+".lock") // one for all logs of the entry, since it stays
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	return f(path)
}

// appendFile appends b to a file that has size bytes; it makes the file if size is zero.
// What a failed write has left goes away again.
func appendFile(path string, size int64, b []byte) error {
	if err := safefile.Regular(path); err != nil {
		return err
	}
	info, err := os.Lstat(path)
	var f *os.File
	switch {
	case errors.Is(err, fs.ErrNotExist) && size == 0:
		f, err = safefile.Create(path)
	case err == nil && info.Size() != size:
		return store.ErrChanged
	case err == nil:
		f, err = os.OpenFile(path, os.O_WRONLY|os.O_APPEND|safefile.Flags, 0)
	}
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err == nil {
		err = f.Sync()
	}
	if err != nil {
		err = errors.Join(err, f.Truncate(size))
	}
	if err = errors.Join(err, f.Close()); err == nil && size == 0 {
		err = unclear(path, syncDir(filepath.Dir(path)))
	}
	return err
}
