package host

import (
	"context"

	"github.com/soloist-go/soloist/host/internal/app"
	"github.com/soloist-go/soloist/internal/history"
	"github.com/soloist-go/soloist/store"
)

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
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.Run(ctx)
	}()
	return func() {
		cancel()
		<-done
	}
}
