package app

import (
	"sync"

	"github.com/soloist-go/soloist/event"
)

// listeners receive the scheduler's events. They are added after the scheduler
// has read its fields.
type listeners struct {
	mu  sync.Mutex
	all []func(event.Event)
}

// add has f called with each event from now on.
func (l *listeners) add(f func(event.Event)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, f)
}

func (l *listeners) tell(e event.Event) {
	l.mu.Lock()
	all := l.all // which only grows
	l.mu.Unlock()
	for _, f := range all {
		f(e)
	}
}

// ends notifies its listeners that a run has ended.
type ends struct {
	mu  sync.Mutex
	all map[chan struct{}]bool
}

// listen returns a channel that has something once a run has ended since it was received from last. A stop ends that.
func (e *ends) listen() (ended <-chan struct{}, stop func()) {
	c := make(chan struct{}, 1)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.all == nil {
		e.all = map[chan struct{}]bool{}
	}
	e.all[c] = true
	return c, func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		delete(e.all, c)
	}
}

func (e *ends) hear(v event.Event) {
	if v.Kind != event.Ended && v.Kind != event.Unrecorded {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for c := range e.all {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}
