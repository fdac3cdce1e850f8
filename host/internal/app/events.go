package app

import (
	"sync"

	"github.com/soloist-go/soloist/event"
)

// listeners are what hears of the scheduler's events. They are added after the scheduler
// has read its fields.
type listeners struct {
	mu  sync.Mutex
	all []func(event.Event)
}

// Listen has f called with each event of the scheduler from now on, where the program runs
// jobs. It must return soon: events wait for it, and are dropped if too many do.
func (a *App) Listen(f func(event.Event)) {
	a.listeners.mu.Lock()
	defer a.listeners.mu.Unlock()
	a.listeners.all = append(a.listeners.all, f)
}

func (l *listeners) tell(e event.Event) {
	l.mu.Lock()
	all := l.all // which only grows
	l.mu.Unlock()
	for _, f := range all {
		f(e)
	}
}

// hear passes the scheduler's events on to the listeners, too.
func (a *App) hear() {
	first := a.Scheduler.Events
	a.Scheduler.Events = func(e event.Event) {
		if first != nil {
			first(e)
		}
		a.listeners.tell(e)
	}
}
