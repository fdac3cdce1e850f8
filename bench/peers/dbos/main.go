// Dbos is a replica of the bench: scheduled workflows of DBOS, as its page sets them up. Each replica enqueues each tick under an
// id that there is once, and any replica runs it. There is no Conductor, which is a service of its own.
package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"slices"
	"time"

	"github.com/dbos-inc/dbos-transact-golang/dbos"

	"github.com/soloist-go/soloist/bench/internal/database"
	"github.com/soloist-go/soloist/bench/internal/replica"
)

func main() { replica.Main(serve) }

func serve(ctx context.Context, w replica.Settings) (err error) {
	app, err := open(ctx, w)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dbos.Shutdown(app, 10*time.Second)) }()
	run := func(ctx dbos.Context, in dbos.ScheduledWorkflowInput) (any, error) {
		name, err := dbos.DecodeScheduleContext[string](in)
		if err != nil {
			return nil, err
		}
		i := slices.IndexFunc(w.Jobs, func(j replica.Job) bool { return j.Name == name })
		return nil, w.Do(ctx, w.Jobs[i], in.ScheduledTime)
	}
	dbos.RegisterWorkflow(app, run)
	var schedules []dbos.ScheduleSpec
	for _, j := range w.Jobs {
		schedules = append(schedules, dbos.ScheduleSpec{
			ScheduleName: j.Name, Schedule: j.Cron(), CronTimezone: "UTC", Workflow: run, Context: j.Name})
	}
	// Before it is launched, or its replicas would learn of the jobs half a minute later.
	if err := dbos.ApplySchedules(app, schedules); err != nil {
		return err
	}
	if err := dbos.Launch(app); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

// open makes the tables if there are none, on one replica at a time, since DBOS does not.
func open(ctx context.Context, w replica.Settings) (app dbos.Context, err error) {
	pool, err := database.Open(ctx, w)
	if err != nil {
		return nil, err
	}
	defer pool.Close()
	err = database.Prepare(ctx, pool, func() (err error) {
		app, err = dbos.NewContext(context.WithoutCancel(ctx), dbos.Config{
			AppName: "bench", DatabaseURL: database.URL(w), ExecutorID: w.Name,
			Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
		})
		return err
	})
	return app, err
}
