package telemetry

import (
	"context"

	"github.com/soloist-go/soloist/store"
)

// Logs returns logs whose calls are counted; nil if s is nil. They are apart from the store
// that counts calls: the scheduler uses none, so its store need not have them.
func (t *Telemetry) Logs(s store.Appender) store.Appender {
	if s == nil {
		return nil
	}
	return countedAppender{s, &t.calls}
}

type countedAppender struct {
	appender store.Appender
	to       *recorder
}

func (c countedAppender) Append(ctx context.Context, name string, size int64, b []byte) error {
	return c.call(ctx, "append", func() error { return c.appender.Append(ctx, name, size, b) })
}

func (c countedAppender) ReadLog(ctx context.Context, name string, offset int64, n int) ([]byte, error) {
	return measured(ctx, c.to, nil, call{op: "read-log"}, func() ([]byte, error) { return c.appender.ReadLog(ctx, name, offset, n) })
}

func (c countedAppender) Logs(ctx context.Context, entry string, f func(name string, size int64) bool) error {
	return c.call(ctx, "list-logs", func() error { return c.appender.Logs(ctx, entry, f) })
}

func (c countedAppender) RemoveLog(ctx context.Context, name string) error {
	return c.call(ctx, "remove-log", func() error { return c.appender.RemoveLog(ctx, name) })
}

func (c countedAppender) call(ctx context.Context, op string, do func() error) error {
	_, err := measured(ctx, c.to, nil, call{op: op}, func() (struct{}, error) { return struct{}{}, do() })
	return err
}
