package soloist

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"strconv"
	"time"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/internal/logqueue"
	"github.com/soloist-go/soloist/internal/plan"
	"github.com/soloist-go/soloist/internal/queue"
	"github.com/soloist-go/soloist/internal/runner"
	"github.com/soloist-go/soloist/store"
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
				l.log.Error("the Events function panicked", "kind", e.Kind, "panic", last, "stack", string(debug.Stack()))
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

// A telling is how events of a kind are logged: the name of the kind, as the attribute event, and the line of one.
type telling struct {
	name logqueue.EventName
	line func(*event.Event) line
}

// A line is how an event is logged.
type line struct {
	level slog.Level
	text  string
	args  []any
}

// The lines of events, by what their attributes name in addition to the line's. An event whose kind is in no table is not logged.
var (
	runLines = map[event.Kind]telling{ // job and run
		event.Started:    {"run.started", func(e *event.Event) line { return info("run started", "try", e.Run.Try) }},
		event.NotStarted: {"run.not-started", notStartedLine},
		event.TryFailed:  {"run.try-failed", tryFailedLine},
		event.Unhealthy: {"run.unhealthy", func(e *event.Event) line {
			return warn("the run is not healthy", "failure", e.Count, "of", e.Of, "error", e.Err)
		}},
		event.Panicked: {"run.panicked", func(e *event.Event) line {
			return failed("panicked", "panic", e.Err.Error(), "stack", e.Stack)
		}},
		event.NoProgress: {"run.stalled", func(e *event.Event) line {
			return failed("the run has stalled", "error", e.Err, "goroutines", e.Stack)
		}},
		event.TimedOut: {"run.timed-out", func(e *event.Event) line {
			return warn("the context of the run has ended", "cause", e.Err)
		}},
		event.Overrun: {"run.overrun", func(e *event.Event) line { return failed(e.Note, "cause", e.Err) }},
		event.Ended:   {"run.ended", endedLine},
		event.Unrecorded: {"run.unrecorded", func(e *event.Event) line {
			return failed(e.Note, "outcome", e.Outcome.Status, "error", e.Err)
		}},
		event.TakenBack: {"run.taken-back", takenBackLine},
		event.Detail:    {"job.detail", detailLine}, // about no run, it names none
	}
	jobLines = map[event.Kind]telling{ // the job
		event.Settled: {"tick.settled", settledLine},
		event.Late: {"tick.late", func(e *event.Event) line {
			return warn("the tick has not succeeded in time", append(tickArgs(e.Run.Tick), "late", e.Count, "why", e.Note)...)
		}},
		event.NotClaimed: {"tick.not-claimed", func(e *event.Event) line {
			return warn("the claim was not confirmed, so nothing runs", append(tickArgs(e.Run.Tick), "error", e.Err)...)
		}},
		event.HoldOff: {"job.hold-off", func(e *event.Event) line {
			return warn("the last runner's lease did not run out by itself: waiting until it must have given up", "wait", e.Wait)
		}},
		event.ScheduleChanged: {"job.schedule-changed", func(*event.Event) line { return info("the schedule has changed") }},
		event.Inherited: {"job.inherited", func(e *event.Event) line {
			return warn("no replica with the definition in force has answered: this one takes the job back", "since", e.Former.Since, "waited", e.Took)
		}},
		event.LeftAlone: {"job.left-alone", leftAloneLine},
		event.TakenUp:   {"job.taken-up", func(*event.Event) line { return info("the job is looked after again") }},
	}
	replicaLines = map[event.Kind]telling{ // nothing: the line concerns all jobs
		event.StoreTrouble: {"store.trouble", func(e *event.Event) line {
			return warn("a call to the store failed: trying again", "first", e.Note, "error", e.Err)
		}},
		event.StoreBack: {"store.back", storeBackLine},
	}
)

// writeLine writes the line of an event to the log of the replica or of the job.
func writeLine(e *event.Event, replica, job *slog.Logger) {
	if of, ok := replicaLines[e.Kind]; ok {
		of.line(e).write(replica, of.name)
	} else if of, ok := jobLines[e.Kind]; ok {
		of.line(e).write(job, of.name)
	} else if of, ok := runLines[e.Kind]; ok {
		if l := of.line(e); job.Enabled(context.Background(), l.level) { // else what names the run is not needed
			l.write(ofRun(job, e.Run), of.name)
		}
	}
}

// ofJob returns a logger whose lines name a job and this replica.
func ofJob(l *slog.Logger, job, replica string) *slog.Logger {
	return l.With("job", job, "replica", replica)
}

// ofRun returns a logger whose lines name a run.
func ofRun(l *slog.Logger, run event.Run) *slog.Logger {
	args := make([]any, 0, 8)
	if !run.Tick.IsZero() {
		args = append(args, "tick", run.Tick.Format(time.RFC3339), "attempt", run.Attempt)
	}
	if run.Token != 0 {
		args = append(args, "token", run.Token)
	}
	if run.Request != "" {
		args = append(args, "request", run.Request)
	}
	return l.With(args...)
}

func (l line) write(to *slog.Logger, name logqueue.EventName) {
	to.Log(context.Background(), l.level, l.text, append([]any{"event", name}, l.args...)...)
}

func info(text string, args ...any) line   { return line{slog.LevelInfo, text, args} }
func warn(text string, args ...any) line   { return line{slog.LevelWarn, text, args} }
func failed(text string, args ...any) line { return line{slog.LevelError, text, args} }

func tryFailedLine(e *event.Event) line {
	if e.Wait == 0 {
		return warn("try failed, and this call has no time for another one", "try", e.Run.Try, "of", e.Of, "error", e.Err.Error())
	}
	return warn("try failed", "try", e.Run.Try, "of", e.Of, "error", e.Err.Error(), "next", e.Wait.Round(time.Millisecond))
}

// endedLine is no warning for an abandoned singleton: a stop always ends one so.
func endedLine(e *event.Event) line {
	o := &e.Outcome
	l := info("run ended", "outcome", o.Status, "took", e.Took, "took_ms", e.Took.Milliseconds())
	if o.Status == event.Failed || o.Status == event.Stalled || o.Status == event.Abandoned && !e.Run.Tick.IsZero() {
		l.level = slog.LevelWarn
	}
	if o.Reason != "" {
		l.args = append(l.args, "reason", o.Reason)
	}
	return l
}

func notStartedLine(e *event.Event) line {
	if errors.Is(e.Err, store.ErrLost) {
		return warn("the lease was lost before the run began: not run", "try", e.Run.Try)
	}
	return warn("the run may not begin: not run", "try", e.Run.Try, "error", e.Err)
}

func takenBackLine(e *event.Event) line {
	if e.Err != nil {
		return failed(e.Note+" before the run began, and the claim was not taken back: the tick counts as one whose runner died", "error", e.Err)
	}
	return info(e.Note + " before the run began: the claim was taken back")
}

func settledLine(e *event.Event) line {
	o := &e.Outcome
	args := append(tickArgs(o.Tick), "outcome", o.Status, "reason", o.Reason)
	if o.Count > 0 {
		args = append(args, "after", o.From.Format(time.RFC3339), "ticks", counted(o))
	}
	if o.Token != 0 {
		args = append(args, "runner", o.Replica, "token", o.Token, "attempt", o.Attempt)
	}
	l := warn("not run to its end", args...)
	switch {
	case e.Note != "": // the line of the run says enough
		l.level = slog.LevelDebug
	case o.Status == event.Skipped && o.Reason == plan.Paused: // on purpose
		l.level = slog.LevelInfo
	}
	return l
}

// counted returns the number of ticks of a range.
func counted(o *event.Outcome) string {
	if o.AtLeast {
		return fmt.Sprintf("at least %d", o.Count)
	}
	return strconv.Itoa(o.Count)
}

// tickArgs names a tick. A singleton has no tick.
func tickArgs(tick time.Time) []any {
	if tick.IsZero() {
		return nil
	}
	return []any{"tick", tick.Format(time.RFC3339)}
}

func leftAloneLine(e *event.Event) line {
	l := failed("the job is left alone", "error", e.Err)
	if e.Note != "" { // it may end without a person
		l.level = slog.LevelWarn
	}
	return l
}

func storeBackLine(e *event.Event) line {
	l := info("the store answers again", "after", e.Took)
	if e.Note != "" {
		l.level, l.text = slog.LevelDebug, e.Note
	}
	return l
}

func detailLine(e *event.Event) line {
	l := line{level: slog.LevelDebug, text: e.Note}
	if e.Err != nil {
		l.args = []any{"error", e.Err}
	}
	return l
}

// troubles are the events of a lock that are logged. A lock may be taken many times a second, so what
// goes well is not.
var troubles = []event.Kind{event.Panicked, event.Overrun, event.Unrecorded, event.Settled, event.NotClaimed, event.HoldOff,
	event.LeftAlone, event.TakenUp, event.StoreTrouble, event.StoreBack}

// hearTrouble has a replica that only takes locks log its trouble, and returns a logger of the same
// queue: a log that blocks must not delay who waits for a lock.
func hearTrouble(r *runner.Replica, log *slog.Logger) *slog.Logger {
	lines := &logqueue.Queue{Root: log.Handler()}
	queued := lines.Logger(log)
	r.Events, r.Flush = func(e event.Event) {
		if slices.Contains(troubles, e.Kind) {
			writeLine(&e, queued, queued)
		}
	}, lines.Wait
	return queued
}
