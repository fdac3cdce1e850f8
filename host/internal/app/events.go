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
