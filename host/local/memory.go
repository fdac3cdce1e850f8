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
	"sync"
	"time"

	"github.com/soloist-go/soloist/store"
)

// Memory is a [store.Store] in memory. The zero value is an empty store,
// ready for use. It must not be copied.
type Memory struct {
	// Now is the clock of the store: it judges when a lease ends, and gives
	// the Date. Nil: time.Now. Set it before the first call.
	Now func() time.Time

	mu      sync.Mutex
	entries map[string]entry
	logs    map[string][]byte
}

var (
	_ store.Store              = (*Memory)(nil)
	_ store.LeaseBreaker       = (*Memory)(nil)
	_ store.ConditionalBreaker = (*Memory)(nil)
	_ store.Remover            = (*Memory)(nil)
)

// Create implements [store.Store].
func (m *Memory) Create(ctx context.Context, name string, record []byte) (store.Entry, error) {
	return m.all().create(ctx, name, record)
}

// Read implements [store.Store].
func (m *Memory) Read(ctx context.Context, name string) (store.Entry, error) {
	return m.all().read(ctx, name)
}

// Lease implements [store.Store].
func (m *Memory) Lease(name, id string) store.Lease {
	return handle{update: m.update, name: name, id: id}
}

// Limits returns [Shortest] and [Longest].
func (m *Memory) Limits() (shortest, longest time.Duration) { return Shortest, Longest }

// Break implements [store.LeaseBreaker], for a period of any length. An expired
// lease cannot be renewed any more.
func (m *Memory) Break(ctx context.Context, name string, period time.Duration) error {
	return m.all().end(ctx, name, period, always)
}

// BreakUnchanged implements [store.ConditionalBreaker].
func (m *Memory) BreakUnchanged(ctx context.Context, name, etag string) error {
	return m.all().end(ctx, name, 0, only(etag))
}

// Delete removes an entry. [store.ErrLost]: it is leased, and a delete
// carries no lease id; fs.ErrNotExist.
func (m *Memory) Delete(ctx context.Context, name string) error {
	return m.all().remove(ctx, name, always)
}

// Remove implements [store.Remover].
func (m *Memory) Remove(ctx context.Context, name, etag string) error {
	return m.all().remove(ctx, name, only(etag))
}

func (m *Memory) all() update { return m.update }

// update has no I/O: there is nothing to wait for, so ctx plays no part here.
func (m *Memory) update(_ context.Context, name string, f change) (entry, time.Time, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := clock(m.Now)
	was := m.entries[name]
	e := was
	err := e.apply(f, now)
	switch {
	case e == was: // most calls are reads
	case !e.exists():
		delete(m.entries, name)
	case m.entries == nil:
		m.entries = map[string]entry{name: e}
	default:
		m.entries[name] = e
	}
	return e, now, err
}

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
