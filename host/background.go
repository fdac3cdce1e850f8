package host

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/host/internal/alert"
	"github.com/soloist-go/soloist/host/internal/app"
	"github.com/soloist-go/soloist/host/internal/format"
	"github.com/soloist-go/soloist/host/internal/presence"
	"github.com/soloist-go/soloist/host/internal/view"
	"github.com/soloist-go/soloist/host/internal/web"
	"github.com/soloist-go/soloist/internal/elapsed"
	"github.com/soloist-go/soloist/internal/history"
	"github.com/soloist-go/soloist/store"
)

// lastPings is how long pings that are on their way may take once all is to end.
const lastPings = 2 * time.Second

// startAlerts looks for what is wrong with jobs, and sends messages about it, until ctx ends
// or stop is called. Without a receiver it does nothing.
func startAlerts(ctx context.Context, a *app.App, cache *web.Cache) (stop func()) {
	documents, ok := a.Scheduler.Store.(store.Documenter)
	if a.Settings.AlertWebhook == "" || !ok {
		return func() {}
	}
	n := alert.NewNotifier(alert.Config{App: a.Scheduler.App, Replica: a.Scheduler.Replica, Store: documents, Failures: a.Settings.AlertFailures,
		Webhook: &alert.Webhook{URL: a.Settings.AlertWebhook, Secret: a.Settings.AlertSecret, Client: alert.NewClient()},
		Look:    cache.Statuses, Health: a.Scheduler.Health, Control: a.Scheduler.Control, Late: lateness(a), Now: a.Now, Elapsed: elapsed.Now, Log: a.Log})
	a.Listen(n.Hear)
	return inBackground(ctx, n.Run)
}

// lateness returns how late a tick of a job may be claimed. After the death of a replica that
// had only acquired the lease, the next one has it a lease later.
func lateness(a *app.App) func(job string) time.Duration {
	late := map[string]time.Duration{}
	for i := range a.Scheduler.Jobs {
		j := &a.Scheduler.Jobs[i]
		for _, name := range soloist.ShardNames(j.Name, j.Shards) {
			late[name] = max(j.StartingDeadline, 2*j.Lease)
		}
	}
	return func(job string) time.Duration { return late[job] }
}

// sendPings notifies the dead-man's switches of the program's jobs of what runs here. done waits
// for the last ones, not for long.
func sendPings(a *app.App) (done func()) {
	if len(a.Pings) == 0 {
		return func() {}
	}
	p := alert.NewPings(a.Scheduler.App, a.Pings, alert.NewClient(), a.Log)
	a.Listen(p.Hear)
	return func() { p.Close(lastPings) }
}

// keepHistory writes the outcomes of the jobs to logs next to their records, if
// SOLOIST_HISTORY says for how long to keep them. stop writes what waits.
func keepHistory(a *app.App) (stop func()) {
	if a.Settings.History == 0 {
		return func() {}
	}
	if a.Logs == nil {
		a.Log.Warn("SOLOIST_HISTORY has no effect: the store keeps no logs, as it does not implement store.Appender")
		return func() {}
	}
	s := struct {
		store.Store
		store.Appender
	}{a.Scheduler.Store, a.Logs}
	w := &history.Writer{Store: s, App: a.Settings.App, Keep: history.Keep{Age: a.Settings.History}, Failed: func(job string, err error) {
		a.Log.Warn("the history of a job could not be written: trying again", "job", job, "error", err)
	}}
	a.Listen(w.Take)
	return inBackground(context.Background(), w.Run)
}

// inBackground runs something until stop is called, which waits for its end.
func inBackground(ctx context.Context, run func(context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var done sync.WaitGroup
	done.Go(func() { run(ctx) })
	return func() {
		cancel()
		done.Wait()
	}
}

// newBeacon returns what writes that this replica is up; nil: SOLOIST_PRESENCE is 0, or the
// store keeps no documents.
func newBeacon(a *app.App) *presence.Beacon {
	documents, ok := a.Scheduler.Store.(store.Documenter)
	if a.Settings.Presence == 0 || !ok {
		return nil
	}
	work, _ := a.Work()
	b := presence.New(presence.Config{App: a.Scheduler.App, Replica: a.Scheduler.Replica, Store: documents, Every: a.Settings.Presence,
		Woken: app.InFunctions(), Self: a.Self, Work: work, Log: a.Log, Saw: sayPrograms(a)})
	a.Listen(func(e event.Event) {
		if replica, begun := lostBy(&e); replica != "" && replica != a.Scheduler.Replica {
			b.Lose(replica, begun)
		}
	})
	return b
}

// sayPrograms returns what logs that other programs use this app, once each time that they change.
func sayPrograms(a *app.App) func(presence.Reading) {
	said := ""
	return func(r presence.Reading) {
		text := view.Programs(a, r)
		if text != "" && text != said {
			a.Log.Warn(text, "advice", view.ProgramsAdvice)
		}
		said = text
	}
}

// lostBy returns the replica that died in a run which this one has settled, and when that run began.
func lostBy(e *event.Event) (replica string, begun time.Time) {
	switch o := &e.Outcome; {
	case e.Kind == event.TookOver && e.Note == "died":
		return e.Former.Replica, e.Former.Since
	case e.Kind == event.Settled && o.Status == store.Abandoned && strings.HasPrefix(o.Reason, "its runner died"):
		return o.Replica, o.Start
	}
	return "", time.Time{}
}

// beUp writes in the background that this replica is up; in Functions each call does. leave,
// which comes after the last run has ended, ends that, and writes that it has stopped.
func beUp(ctx context.Context, b *presence.Beacon) (leave func()) {
	if b == nil {
		return func() {}
	}
	if app.InFunctions() {
		return b.Leave
	}
	stop := inBackground(context.WithoutCancel(ctx), b.Run) // until the last run has ended
	return func() {
		stop()
		b.Leave()
	}
}

// fleetOf is what the replicas have reported; nil: that cannot be read.
func fleetOf(ctx context.Context, a *app.App, reader *presence.Reader, all []soloist.JobStatus) *view.Fleet {
	if reader == nil {
		return nil
	}
	r, err := reader.Read(ctx)
	switch {
	case errors.Is(err, presence.ErrForeign):
		return view.UnreadFleet(a, err)
	case err != nil: // the records show that, too
		return nil
	}
	return view.FleetOf(a, r, all)
}

// printReplicas shows a table of the replicas, and what differs between them.
func printReplicas(c app.Console, fleet *view.Fleet, colour bool) {
	if fleet == nil {
		return
	}
	if len(fleet.Replicas) > 0 {
		fmt.Fprintln(c.Stdout)
		w := format.Table(c.Stdout, "REPLICA\t"+format.Paint(colour, format.Normal, "STATE")+"\tVERSION\tPLATFORM\tSEEN\tSKEW")
		for _, r := range fleet.Replicas {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", format.Line(r.Name), format.Paint(colour, r.Tone(), r.StateWords()), r.VersionWords(),
				format.Join(format.Line(r.Platform)), format.Relative(r.Seen, fleet.At), r.SkewWords())
		}
		w.Flush()
	}
	for _, text := range fleet.Differs {
		fmt.Fprintf(c.Stdout, "\n%s\n", text)
	}
}
