package alarm

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"sync"
	"time"

	"github.com/soloist-go/soloist/internal/ontime"
)

const (
	putTries = 3
	putPause = time.Second
	deleting = 16 // calls at once
)

// A mailbox is the queue as one app uses it.
type mailbox struct {
	app   string
	queue Queue
	now   func() time.Time
	log   *slog.Logger
}

// put puts a message that is visible at an instant. It tries again after a failure, since a message too many does no harm.
func (b *mailbox) put(ctx context.Context, m message, at time.Time) (r Receipt, err error) {
	for try := 1; ; try++ {
		if r, err = b.putOnce(ctx, m, at.Sub(b.now())); err == nil {
			return r, nil
		}
		if try == putTries || errors.Is(err, fs.ErrPermission) || !ontime.Sleep(ctx, time.Duration(try)*putPause) {
			return r, fmt.Errorf("the alarm for %s could not be put into the queue: %w", m.Tick.Format(time.RFC3339), err)
		}
	}
}

func (b *mailbox) putOnce(ctx context.Context, m message, hidden time.Duration) (Receipt, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return b.queue.Put(ctx, m.encode(), max(0, hidden).Truncate(time.Second)) // queues take whole seconds
}

func (b *mailbox) remove(ctx context.Context, r Receipt) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return b.queue.Delete(ctx, r)
}

// drop deletes a message that is one too many. If that fails, it wakes the app up once for nothing.
func (b *mailbox) drop(ctx context.Context, r Receipt) {
	if err := b.remove(ctx, r); err != nil {
		b.log.Debug("an alarm that is not needed any more is left in the queue", "error", err)
	}
}

// removeAll deletes messages, some at once, and returns how many. The error is one of those that it has met.
func (b *mailbox) removeAll(ctx context.Context, all []Receipt) (n int, err error) {
	var (
		mu   sync.Mutex
		wait sync.WaitGroup
		room = make(chan struct{}, deleting)
	)
	for _, r := range all {
		room <- struct{}{}
		wait.Go(func() {
			defer func() { <-room }()
			failed := b.remove(ctx, r)
			mu.Lock()
			defer mu.Unlock()
			if failed != nil {
				err = failed
				return
			}
			n++
		})
	}
	wait.Wait()
	return n, err
}
