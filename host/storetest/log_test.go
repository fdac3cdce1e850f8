package storetest_test

import (
	"bytes"
	"context"
	"errors"
	"sync"

	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/host/storetest"
	"github.com/soloist-go/soloist/store"
)

// journal is a Memory whose logs have a fault. Nil: no fault.
type journal struct {
	*local.Memory
	append func(ctx context.Context, m *local.Memory, name string, size int64, b []byte) error
	read   func(ctx context.Context, m *local.Memory, name string, offset int64, n int) ([]byte, error)
	logs   func(ctx context.Context, m *local.Memory, entry string, f func(string, int64) bool) error
	remove func(ctx context.Context, m *local.Memory, name string) error
}

func (j journal) Append(ctx context.Context, name string, size int64, b []byte) error {
	if j.append == nil {
		return j.Memory.Append(ctx, name, size, b)
	}
	return j.append(ctx, j.Memory, name, size, b)
}

func (j journal) ReadLog(ctx context.Context, name string, offset int64, n int) ([]byte, error) {
	if j.read == nil {
		return j.Memory.ReadLog(ctx, name, offset, n)
	}
	return j.read(ctx, j.Memory, name, offset, n)
}

func (j journal) Logs(ctx context.Context, entry string, f func(string, int64) bool) error {
	if j.logs == nil {
		return j.Memory.Logs(ctx, entry, f)
	}
	return j.logs(ctx, j.Memory, entry, f)
}

func (j journal) RemoveLog(ctx context.Context, name string) error {
	if j.remove == nil {
		return j.Memory.RemoveLog(ctx, name)
	}
	return j.remove(ctx, j.Memory, name)
}

// journals is a harness for a store with such a fault.
func journals(j journal) storetest.Harness {
	return virtual(func() store.Store { j.Memory = new(local.Memory); return j })
}

// atTheEnd appends whatever size is named.
func atTheEnd(ctx context.Context, m *local.Memory, name string, size int64, b []byte) error {
	for {
		err := m.Append(ctx, name, size, b)
		if !errors.Is(err, store.ErrChanged) {
			return err
		}
		size = 0
		_ = m.Logs(ctx, entryOf(name), func(log string, n int64) bool {
			if log == name {
				size = n
			}
			return true
		})
	}
}

// entryOf is "app/job" of "app/.log/job/part".
func entryOf(name string) string {
	parts := bytes.Split([]byte(name), []byte("/"))
	return string(parts[0]) + "/" + string(parts[2])
}

// inParts appends what fits.
func inParts(ctx context.Context, m *local.Memory, name string, size int64, b []byte) error {
	return m.Append(ctx, name, size, b[:min(len(b), store.MaxAppend)])
}

// asLines appends text.
func asLines(ctx context.Context, m *local.Memory, name string, size int64, b []byte) error {
	return m.Append(ctx, name, size, bytes.ReplaceAll(b, []byte{0}, []byte(" ")))
}

// allLogs lists the logs of a similar entry too.
func allLogs(ctx context.Context, m *local.Memory, entry string, f func(string, int64) bool) error {
	return errors.Join(m.Logs(ctx, entry, f), m.Logs(ctx, entry+"-2", f))
}

// recalls remembers what it has read of a log.
func recalls(m *local.Memory) store.Store {
	var seen sync.Map
	return journal{Memory: m, read: func(ctx context.Context, m *local.Memory, name string, offset int64, n int) ([]byte, error) {
		b, err := m.ReadLog(ctx, name, offset, n)
		old, _ := seen.LoadOrStore(name, b)
		return old.([]byte), err
	}, append: func(ctx context.Context, m *local.Memory, name string, size int64, b []byte) error {
		seen.Delete(name)
		return m.Append(ctx, name, size, b)
	}}
}

var logSuites = map[string]suite{
	"appends at any size": {harness: journals(journal{append: atTheEnd}),
		fails: "Log/size Log/race Log/missing Log/remove", passes: "Log/kept"},
	"long appends are cut": {harness: journals(journal{append: inParts}),
		fails: "Log/limits", passes: "Log/kept Log/full"},
	"logs are text": {harness: journals(journal{append: asLines}),
		fails: "Log/kept", passes: "Log/size"},
	"logs of others are listed": {harness: journals(journal{logs: allLogs}),
		fails: "Log/list", passes: "Log/kept"},
	"an instance remembers a log": {harness: twoOf(recalls),
		fails: "Log/twins", passes: "Log/kept"},
}
