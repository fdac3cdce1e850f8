package local

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/soloist-go/soloist/store"
)

// Append implements [store.Appender]. A log "app/.log/job/part" is the file
// <Path>/app/.log/job/part.log: what was appended, with a line before each part. If the machine loses power during a
// call, all of the part is there or nothing.
func (d Dir) Append(ctx context.Context, name string, size int64, b []byte) error {
	path, err := d.logFile(ctx, name)
	if err = cmp.Or(err, checkAppend(b)); err == nil {
		err = d.append(path, size, b)
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = store.ErrChanged
	}
	if err != nil {
		return fmt.Errorf("append to %q: %w", name, explain(err))
	}
	return nil
}

func (d Dir) append(path string, size int64, b []byte) error {
	if size == 0 {
		if err := d.createLog(path); err != nil {
			return err
		}
	}
	f, err := d.disk.extend(path)
	if err != nil {
		return err
	}
	nonce := rand.Text()
	text, err := d.disk.reread(f)
	if err == nil && unframe(text, "").size != size {
		err = store.ErrChanged
	}
	if err == nil {
		err = d.disk.append(f, frame(size, b, nonce))
	}
	if err == nil {
		text, err = d.disk.reread(f)
	}
	if err == nil && !unframe(text, nonce).won {
		err = store.ErrChanged
	}
	return errors.Join(err, f.Close())
}

// createLog makes an empty file if there is none, and the directories above it.
func (d Dir) createLog(path string) error {
	if there, err := d.disk.exists(path); there || err != nil {
		return err
	}
	dir := filepath.Dir(path)
	if err := d.makeDir(dir); err != nil {
		return err
	}
	if err := d.disk.write(path, nil); !errors.Is(err, fs.ErrExist) && err != nil {
		return err
	}
	return d.disk.sync(dir)
}

// ReadLog implements [store.Appender].
func (d Dir) ReadLog(ctx context.Context, name string, offset int64, n int) ([]byte, error) {
	path, err := d.logFile(ctx, name)
	var text []byte
	if err == nil {
		text, err = d.disk.read(path, math.MaxInt64)
	}
	if err != nil {
		return nil, fmt.Errorf("read log %q: %w", name, explain(err))
	}
	l := unframe(text, "")
	return l.bytes(offset, n), nil
}

// Logs implements [store.Appender]. It costs a read of each log.
func (d Dir) Logs(ctx context.Context, entry string, f func(name string, size int64) bool) error {
	if d.Path == "" {
		return errNoPath
	}
	dir := filepath.Join(d.Path, filepath.FromSlash(store.LogName(entry, "")))
	files, err := d.disk.list(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return explain(err)
	}
	slices.SortFunc(files, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	for _, file := range files {
		part, ok := strings.CutSuffix(file.Name(), ".log")
		name := store.LogName(entry, part)
		if !ok || checkLog(ctx, name) != nil { // it is no log
			continue
		}
		text, err := d.disk.read(filepath.Join(dir, file.Name()), math.MaxInt64)
		if err == nil && !f(name, unframe(text, "").size) {
			break
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // unless it was removed meanwhile
			return explain(err)
		}
	}
	return ctx.Err()
}

// RemoveLog implements [store.Appender].
func (d Dir) RemoveLog(ctx context.Context, name string) error {
	path, err := d.logFile(ctx, name)
	if err == nil {
		err = d.disk.unlink(path)
	}
	if err != nil {
		return fmt.Errorf("remove log %q: %w", name, explain(err))
	}
	return nil
}

// logFile returns the path of a log.
func (d Dir) logFile(ctx context.Context, name string) (string, error) {
	if err := checkLog(ctx, name); err != nil {
		return "", err
	}
	if d.Path == "" {
		return "", errNoPath
	}
	return filepath.Join(d.Path, filepath.FromSlash(name)+".log"), nil
}
