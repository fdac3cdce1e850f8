package soloist

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/internal/logqueue"
	"github.com/soloist-go/soloist/internal/queue"
	"github.com/soloist-go/soloist/internal/runner"
)

// maxEvents is how many events wait for an Events function that blocks.
const maxEvents = 5000

// A listener takes the events of a replica, which only emits them, to the log and to Events.
type listener struct {
	replica string
	direct  *slog.Logger // the Logger of the Scheduler
	lines   *logqueue.Queue
	log     *slog.Logger              // direct, through lines
	logs    map[string]*slog.Logger   // of each job, by name, through lines
	events  *queue.Queue[event.Event] // nil: no function takes them
}

// listen connects a replica with its log and with a function that takes its events, which may be
// nil.
func listen(r *runner.Replica, logger *slog.Logger, take func(event.Event)) *listener {
	l := &listener{replica: r.Name, direct: logger, lines: &logqueue.Queue{Root: logger.Handler()}, logs: map[string]*slog.Logger{}}
	l.log = l.lines.Logger(logger)
	if take != nil {
		l.events = &queue.Queue[event.Event]{Take: l.guarded(take), Most: maxEvents, Lost: func(n int) event.Event {
			return event.Event{Kind: event.Dropped, Time: r.Clock.Best().Round(0).UTC(), Replica: r.Name, Count: n}
		}}
	}
	r.Events, r.Flush = l.hear, l.lines.Wait
	r.Clock.Skewed = func(by time.Duration) { r.Emit(event.Event{Kind: event.Skewed, Skew: by}) }
	return l
}

// job returns the logger of a job for its runs. It has no queue: a run that logs waits for the
// Logger.
func (l *listener) job(name string) *slog.Logger {
	log := ofJob(l.direct, name, l.replica)
	l.logs[name] = l.lines.Logger(log)
	return log
}

// hear receives one event from the replica. It does not block.
func (l *listener) hear(e event.Event) {
	log := l.log
	if e.Job != "" {
		log = l.logs[e.Job]
	}
	if l.events != nil || log.Enabled(context.Background(), slog.LevelError) { // else nothing would come of it
		l.tell(e)
	}
}

// tell hands an event over to the log and to the function of the program.
func (l *listener) tell(e event.Event) {
	writeLine(&e, l.log, l.logs[e.Job])
	if l.events != nil {
		l.events.Add(e)
	}
}

// guarded returns Events with its panics recovered: a mistake in what only watches must
// not end the runs of the program. A panic that says the same as the last one is not logged
// again.
func (l *listener) guarded(take func(event.Event)) func(event.Event) {
	var last string
	return func(e event.Event) {
		defer func() {
			if p := recover(); p != nil && fmt.Sprint(p) != last {
				last = fmt.Sprint(p)
				l.log.Error("the Events function panicked", "event", e.Kind, "panic", last, "stack", string(debug.Stack()))
			}
		}()
		take(e)
	}
}

// flush waits until the events and lines of a call are taken, for at most five seconds. Events
// come first: their function may log.
func (l *listener) flush() {
	begin := time.Now()
	if l.events != nil {
		l.events.Wait(queue.LastItems)
	}
	l.lines.Wait(queue.LastItems - time.Since(begin))
}

// eventsBlocked returns why events wait. It returns nil if none waits, or not for long yet.
func (l *listener) eventsBlocked() error {
	if l.events == nil {
		return nil
	}
	since := l.events.Blocked()
	if since.IsZero() {
		return nil
	}
	return fmt.Errorf("the Events function has not returned since %s: see what it waits for, or restart the process", since.UTC().Format(time.RFC3339))
}
