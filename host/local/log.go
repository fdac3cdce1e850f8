package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"strings"

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
