package alarm

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"time"
)

const (
	putTries = 3
	putPause = time.Second
	deleting = 16 // calls at once
)

// put puts a message that is visible at an instant, by the clock of now. It tries again after a failure, since a message too
// many does no harm.
func put(ctx context.Context, q Queue, m message, at time.Time, now func() time.Time) (r Receipt, err error) {
	for try := 1; ; try++ {
		if r, err = putOnce(ctx, q, m, at.Sub(now())); err == nil {
			return r, nil
		}
		if try == putTries || errors.Is(err, fs.ErrPermission) || !sleep(ctx, time.Duration(try)*putPause) {
			return r, fmt.Errorf("the alarm for %s could not be put into the queue: %w", m.Tick.Format(time.RFC3339), err)
		}
	}
}

func putOnce(ctx context.Context, q Queue, m message, hidden time.Duration) (Receipt, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return q.Put(ctx, m.encode(), max(0, hidden).Truncate(time.Second)) // queues take whole seconds
}

func receive(ctx context.Context, q Queue, most int, hide time.Duration) ([]Message, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return q.Receive(ctx, most, hide)
}

func remove(ctx context.Context, q Queue, r Receipt) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return q.Delete(ctx, r)
}

// removeAll deletes messages, some at once, and returns how many. The error is one of those that it has met.
func removeAll(ctx context.Context, q Queue, all []Receipt) (n int, err error) {
	var (
		mu   sync.Mutex
		wait sync.WaitGroup
		room = make(chan struct{}, deleting)
	)
	for _, r := range all {
		room <- struct{}{}
		wait.Go(func() {
			defer func() { <-room }()
			failed := remove(ctx, q, r)
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

// sleep waits, and reports whether ctx has not ended.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
