package soloist

import (
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/internal/logqueue"
	"github.com/soloist-go/soloist/internal/queue"
)

// maxEvents is how many events wait for an Events function that blocks.
const maxEvents = 5000

// listen connects the replica, which only emits events, with the log and with Events.
func (s *Scheduler) listen() {
	s.lines, s.logs = &logqueue.Queue{Root: s.Logger.Handler()}, map[string]*slog.Logger{}
	if s.Events != nil {
		s.events = &queue.Queue[event.Event]{Take: s.guarded(), Most: maxEvents, Lost: func(n int) event.Event {
			return event.Event{Kind: event.Dropped, Time: s.replica.Clock.Best().Round(0).UTC(), Replica: s.Replica, Count: n}
		}}
	}
	s.replica.Events, s.replica.Flush = s.hear, s.lines.Wait
	s.replica.Clock.Skewed = func(by time.Duration) { s.replica.Emit(event.Event{Kind: event.Skewed, Skew: by}) }
}

// hear takes one event from the replica. It does not block.
func (s *Scheduler) hear(e event.Event) {
	s.log(&e)
	if s.events != nil {
		s.events.Add(e)
	}
}

// guarded returns Events with its panics recovered: a mistake in what only watches must
// not end the runs of the program. A panic that says the same as the last one is not logged
// again.
func (s *Scheduler) guarded() func(event.Event) {
	var last string
	return func(e event.Event) {
		defer func() {
			if p := recover(); p != nil && fmt.Sprint(p) != last {
				last = fmt.Sprint(p)
				s.lines.Logger(s.Logger).Error("the Events function panicked", "event", e.Kind, "panic", last, "stack", string(debug.Stack()))
			}
		}()
		s.Events(e)
	}
}

// flush waits until the events and lines of a call are taken, for at most five seconds. Events
// come first: their function may log.
func (s *Scheduler) flush() {
	begin := time.Now()
	if s.events != nil {
		s.events.Wait(queue.LastItems)
	}
	s.lines.Wait(queue.LastItems - time.Since(begin))
}

// eventsBlocked returns why events wait. It returns nil if none waits, or not for long yet.
func (s *Scheduler) eventsBlocked() error {
	if s.events == nil {
		return nil
	}
	since := s.events.Blocked()
	if since.IsZero() {
		return nil
	}
	return fmt.Errorf("the Events function has not returned since %s: see what it waits for, or restart the process", since.UTC().Format(time.RFC3339))
}
