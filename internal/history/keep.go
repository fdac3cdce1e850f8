package history

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"github.com/soloist-go/soloist/store"
)

// A Keep says what of a job's logs is kept. A log is removed as a whole, and not while it
// is written: what is older than Age stays as long as something in its log is not.
type Keep struct {
	Age   time.Duration // zero: forever
	Bytes int64         // of all logs of one job; zero: any number
}

// tidy removes the oldest logs as long as they are too old or too many.
func (k Keep) tidy(ctx context.Context, s store.Appender, e *end, now time.Time) error {
	total := int64(0)
	for _, p := range e.parts {
		total += p.size
	}
	for len(e.parts) > 1 {
		if k.Bytes == 0 || total <= k.Bytes { // else it goes however old it is
			if old, err := k.old(ctx, s, e.parts[1], now); err != nil || !old {
				return err
			}
		}
		if err := s.RemoveLog(ctx, e.parts[0].name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		total -= e.parts[0].size
		e.parts = e.parts[1:]
	}
	return nil
}

// old reports whether all that is before a log is too old: its first line is.
func (k Keep) old(ctx context.Context, s store.Appender, p extent, now time.Time) (bool, error) {
	if k.Age == 0 {
		return false, nil
	}
	b, err := s.ReadLog(ctx, p.name, 0, store.MaxAppend)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	lines := decode(b)
	return len(lines) > 0 && lines[0].At().Before(now.Add(-k.Age)), err
}
