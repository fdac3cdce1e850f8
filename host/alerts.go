package host

import (
	"context"
	"sync"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host/internal/alert"
	"github.com/soloist-go/soloist/host/internal/app"
	"github.com/soloist-go/soloist/host/internal/web"
	"github.com/soloist-go/soloist/internal/elapsed"
	"github.com/soloist-go/soloist/store"
)

// lastPings is how long pings that are on their way may take once all is to end.
const lastPings = 2 * time.Second

// startAlerts looks for what is wrong with jobs, and sends messages about it, until ctx ends.
// It waits for the end of that. Without a receiver it does nothing.
func startAlerts(ctx context.Context, a *app.App, cache *web.Cache) (wait func()) {
	var all sync.WaitGroup
	documents, ok := a.Scheduler.Store.(store.Documenter)
	if a.Settings.AlertWebhook == "" || !ok {
		return all.Wait
	}
	n := alert.NewNotifier(alert.Config{App: a.Scheduler.App, Replica: a.Scheduler.Replica, Store: documents, Failures: a.Settings.AlertFailures,
		Webhook: &alert.Webhook{URL: a.Settings.AlertWebhook, Secret: a.Settings.AlertSecret, Client: alert.NewClient()},
		Look:    cache.Statuses, Health: a.Scheduler.Health, Control: a.Scheduler.Control, Late: lateness(a), Now: a.Now, Elapsed: elapsed.Now, Log: a.Log})
	a.Listen(n.Hear)
	all.Go(func() { n.Run(ctx) })
	return all.Wait
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
