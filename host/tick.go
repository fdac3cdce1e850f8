package host

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/host/internal/app"
	"github.com/soloist-go/soloist/host/internal/format"
	"github.com/soloist-go/soloist/host/internal/view"
	"github.com/soloist-go/soloist/host/internal/watch"
)

// tickCommand runs what is due and prints what was done.
type tickCommand struct{ jsonFlag }

func (*tickCommand) mode() mode { return mode{runs: true, ticks: true} }

func (c *tickCommand) do(ctx context.Context, a *app.App) int {
	ctx, cancel := a.InTime(ctx)
	defer cancel()
	a.FitLead(a.Patience())
	if err := a.Before.Run(ctx); err != nil { // no job may start
		body := view.Ticks(a, soloist.Report{})
		body.Error = format.Error(err)
		return c.answer(a, exitFail, body, func() { a.Console.Tell("tick: %s", body.Error) })
	}
	report, err := pass(ctx, a)
	watch.NewClock(a.Log, a.Skew, nil).Look(ctx)
	code := exitOK
	if err != nil || slices.ContainsFunc(report.Jobs, view.Failed) {
		code = exitFail
	}
	body := view.Ticks(a, report)
	return c.answer(a, code, body, func() { printTicked(a, report) })
}

func printTicked(a *app.App, report soloist.Report) {
	w := format.Table(a.Console.Stdout, "JOB\tTICK\tDONE\tNEXT")
	for _, j := range report.Jobs {
		if len(j.Ran) == 0 {
			fmt.Fprintf(w, "%s\t-\t%s\t%s\n", j.Job, idleWords(j), format.Stamp(j.Next))
		}
		for _, f := range j.Ran {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", j.Job, format.Stamp(f.Tick), format.Outcome(&f), format.Stamp(j.Next))
		}
	}
	w.Flush()
	if !report.Next.IsZero() {
		fmt.Fprintf(a.Console.Stdout, "\nnext tick %s, %s\n", format.Stamp(report.Next), format.Ahead(report.Next, a.Now()))
	}
}

// pass does what is due, in the time that the platform gives. With an alarm it waits for the ticks of the next minutes, and
// hands over to the alarm. An error that is not in the report is logged.
func pass(ctx context.Context, a *app.App) (all soloist.Report, err error) {
	if a.Alarm == nil {
		return a.Scheduler.RunDue(ctx, soloist.Wake{})
	}
	all, err = a.Passes(ctx, a.Patience(), func() soloist.Report {
		report, _ := a.Scheduler.RunDue(ctx, soloist.Wake{})
		return report
	})
	if err != nil {
		a.Log.Error(format.Error(err))
	}
	for _, j := range all.Jobs {
		err = errors.Join(err, j.Err)
	}
	return all, err
}

// idleWords says why nothing was run.
func idleWords(j soloist.JobReport) string {
	switch {
	case j.Err != nil:
		return "error: " + format.Brief(j.Err.Error())
	case j.Replica != "":
		return "runs on " + format.Line(j.Replica)
	case j.Awaits != "":
		return view.AwaitWords(j.Awaits)
	}
	return "nothing is due"
}

// A stay is the part of a replica that serves, while alarms are on: it leaves the next tick to the alarm when nothing is to
// be done for a while, and ends the replica.
type stay struct {
	app   *app.App
	end   func()          // ends the replica; nil: it stays
	alone map[string]bool // singletons and jobs of EveryReplica, which no alarm is set for

	mu    sync.Mutex
	quiet time.Time // since then no run has begun or ended here
}

// How often it looks whether runs go on, which costs nothing; after which time it tries again what has failed,
// and after which time it clears messages while it stays.
const (
	stayPace  = time.Second
	stayAgain = 30 * time.Second
	stayClear = 5 * time.Minute
)

// keepAlarm sets the alarm, and hands over to it when nothing is to be done. end ends the replica, unless it has a singleton
// or SOLOIST_STAY is zero. settle ends that, and sets the alarm for the last time.
func keepAlarm(ctx context.Context, a *app.App, end func()) (settle func() error) {
	if a.Alarm == nil {
		return func() error { return nil }
	}
	s := newStay(a, end)
	stop := inBackground(ctx, s.run)
	return func() error {
		stop()
		return a.SetAlarm(ctx)
	}
}

func newStay(a *app.App, end func()) *stay {
	s := &stay{app: a, end: end, alone: map[string]bool{}, quiet: time.Now()}
	for _, g := range a.Scheduler.Singletons {
		for _, name := range soloist.ShardNames(g.Name, g.Shards) {
			s.alone[name] = true
		}
		a.Log.Info("this replica does not end by itself, since it has a singleton, which runs only while a replica is up", "singleton", g.Name)
		s.end = nil
	}
	for _, j := range a.Scheduler.Jobs {
		if j.EveryReplica {
			s.alone[j.Name] = true
		}
	}
	if a.Settings.Stay == 0 {
		s.end = nil
	}
	a.Listen(s.hear)
	return s
}

// hear notes when a run has begun or ended.
func (s *stay) hear(e event.Event) {
	if s.alone[e.Job] || !slices.Contains([]event.Kind{event.Claimed, event.Started, event.Ended, event.Unrecorded, event.TakenBack}, e.Kind) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.quiet = time.Now()
}

// since returns since when nothing runs here, and whether that is so.
func (s *stay) since() (quiet time.Time, idle bool) {
	running := slices.ContainsFunc(s.app.Scheduler.Health().Running, func(job string) bool { return !s.alone[job] })
	s.mu.Lock()
	defer s.mu.Unlock()
	if running {
		s.quiet = time.Now()
	}
	return s.quiet, !running
}

// run looks until ctx ends, or the replica is to end.
func (s *stay) run(ctx context.Context) {
	if err := s.app.RenewAlarm(ctx); err != nil && ctx.Err() == nil {
		s.app.Log.Error(format.Error(err))
	}
	var answered, next time.Time // the beginning of the quiet that was answered; when to look again anyway
	var handed time.Time         // when the alarm was set last
	leaves := false              // since then the replica ends as soon as nothing at all runs
	for look := time.Tick(stayPace); ; {
		select {
		case <-ctx.Done():
			return
		case <-look:
		}
		quiet, idle := s.since()
		if leaves = leaves && idle && quiet.Equal(answered); leaves {
			if len(s.app.Scheduler.Health().Running) > 0 {
				continue // a run of a job of EveryReplica
			}
			if time.Since(handed) <= stayAgain {
				s.app.Log.Info("this replica ends: nothing runs, and nothing is due for SOLOIST_STAY", "stay", s.app.Settings.Stay)
				s.end()
				return
			}
			leaves, answered = false, time.Time{} // a tick may be near by now
		}
		now := time.Now()
		if !idle || now.Sub(quiet) < s.app.Settings.Stay || now.Before(next) && quiet.Equal(answered) {
			continue
		}
		due, done, err := s.app.HandOver(ctx, s.app.Settings.Patience())
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			s.app.Log.Error(format.Error(err))
			next = now.Add(stayAgain)
		case !done: // it is waited for here
			next = now.Add(min(max(due.Sub(s.app.Alarm.Now()), 5*stayPace), stayAgain))
		case s.end != nil:
			leaves, handed = true, now
		default: // it stays
			next = now.Add(wake(due, s.app.Alarm.Now(), s.app.Settings.Patience()))
		}
		answered = quiet
	}
}

// wake is how long nothing is due within the patience, and no longer than an unanswered message may keep the app up: a message
// of an order, or a message too young to be cleared.
func wake(due, now time.Time, patience time.Duration) time.Duration {
	if due.IsZero() {
		return stayClear
	}
	return min(max(due.Sub(now)-patience, stayAgain), stayClear)
}

// wakeCommand has the platform start a replica, where alarms are on: after a deployment, whose schedules the pending alarm
// does not know.
type wakeCommand struct{ jsonFlag }

// A woke is what wake prints in JSON.
type woke struct {
	App   string `json:"app"`
	Queue string `json:"queue"`
	Error string `json:"error,omitempty"`
}

func (c *wakeCommand) do(ctx context.Context, a *app.App) int {
	body, code := woke{App: a.Settings.App, Queue: a.Settings.AlarmQueue}, exitOK
	ctx, cancel := context.WithTimeout(ctx, statusTime)
	defer cancel()
	if a.Alarm == nil {
		body.Error, code = "there is no queue of alarms: set SOLOIST_ALARM=queue, as for the program that is to be woken up", exitUsage
	} else if err := a.Alarm.Wake(ctx); err != nil {
		body.Error, code = format.Error(err), exitFail
	}
	return c.answer(a, code, body, func() {
		if code != exitOK {
			a.Console.Tell("wake: %s", body.Error)
			return
		}
		fmt.Fprintf(a.Console.Stdout, "a message is in the queue %s: the platform starts a replica when it looks there next, which sets the alarm for the next tick\n", body.Queue)
	})
}

// printAlarm prints when the app is woken up next, where alarms are on.
func printAlarm(ctx context.Context, a *app.App, clock format.Clock) {
	if a.Alarm == nil {
		return
	}
	note, err := a.Alarm.Pending(ctx)
	text := ""
	clock.Now = a.Alarm.Now()
	switch {
	case err != nil:
		text = format.Error(err)
	case note.ID == "":
		text = "none is set yet"
	case a.Alarm.Elsewhere(note):
		text = "none is set in this queue: the last one is in " + format.Line(note.Queue)
	case note.At.After(clock.Now):
		text = fmt.Sprintf("%s, for the tick of %s", clock.Both("at "+clock.Stamp(note.At)+",", clock.Relative(note.At)), clock.Stamp(note.Tick))
	default:
		text = fmt.Sprintf("the last one was at %s: a replica answers it, and sets the next one", clock.Date(note.At))
	}
	fmt.Fprintln(a.Console.Stdout)
	format.Wrapped(a.Console.Stdout, "alarm: "+text, a.Console.Width())
}
