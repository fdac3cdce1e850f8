package app

import (
	"context"
	"errors"
	"fmt"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/store"
)

// ErrUnrung is part of the error of an order that is written, and has woken up no replica.
var ErrUnrung = errors.New("it is ordered, but no replica could be woken up: the next one that is up obeys")

// Order writes an order. With alarms it also puts a message, since the app may be asleep. If it is awake, the message has
// the platform start another replica if this one dies, and keeps the platform from ending this one as idle while it does
// what was ordered. An error of that alone is ErrUnrung.
func (a *App) Order(ctx context.Context, o soloist.Order) (store.Order, error) {
	written, err := a.Scheduler.Order(ctx, o)
	if err != nil || a.Alarm == nil {
		return written, err
	}
	if err := a.Alarm.Ring(ctx); err != nil {
		return written, fmt.Errorf("%w: %w", ErrUnrung, err)
	}
	return written, nil
}
