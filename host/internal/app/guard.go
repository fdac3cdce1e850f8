package app

import (
	"context"
	"time"
)

// guardSpan is how long after the death of this process a message wakes the app up. It is about as long as a lease, which
// has to end before another replica takes over.
const guardSpan = 45 * time.Second

// guard keeps a message pending while this process works, which wakes the app up if the process dies: the platform may have
// started it without a message, or may hide that message, and has none for a manual run.
func (a *App) guard(ctx context.Context) (release func(done bool)) {
	return a.Alarm.Guard(ctx, guardSpan)
}

// Guarded calls do, whose work is found if this process dies meanwhile, and sets the alarm for what is left of it.
func (a *App) Guarded(ctx context.Context, do func()) error {
	release := a.guard(ctx)
	do()
	err := a.SetAlarm(ctx)
	release(err == nil)
	return err
}
