package host_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host"
	"github.com/soloist-go/soloist/host/local"
)

// here is two jobs of each replica's own and one of all of them.
func here() []soloist.Work {
	return []soloist.Work{
		soloist.Job{Name: "cache", Schedule: "@hourly", Do: do, EveryReplica: true},
		soloist.Job{Name: "rest", Schedule: "@hourly", Do: do, EveryReplica: true, Paused: true},
		soloist.Job{Name: "beat", Schedule: "@hourly", Do: do},
	}
}

// rested is a store with the record of the job that has one.
func rested(t *testing.T) *local.Memory {
	t.Helper()
	store := &local.Memory{Now: spring}
	put(t, store, "demo/beat", `{"schema":1,"app":"demo","job":"beat","token":1,"created":"2026-03-28T11:30:00Z","watermark":"2026-03-28T12:00:00Z","run":{"status":"idle"}}`, false)
	return store
}

func TestStatusOfJobOnEachReplica(t *testing.T) {
	environment(t)
	p := host.Program{Work: here(), Store: rested(t), Now: spring}
	wantRun(t, p, "status", 0, `
		app demo on *local.Memory, 2026-03-28 12:00:00Z

		NAME   SCHEDULE         STATE         LAST  NEXT                        COUNTS
		cache  every hour, UTC  each replica  -     2026-03-28 13:00:00Z in 1h  -
		rest   every hour, UTC  each replica  -     2026-03-28 13:00:00Z in 1h  -
		beat   every hour, UTC  idle          -     2026-03-28 13:00:00Z in 1h  -
	`)
	got := run(t.Context(), p, "status", "--json")
	if want := `"state": "each replica"`; got.code != 0 || !strings.Contains(got.out, want) || strings.Count(got.out, `"everyReplica": true`) != 2 {
		t.Errorf("got %+v, want %s", got, want)
	}
}

func TestHistoryOfJobOnEachReplica(t *testing.T) {
	environment(t)
	wantRun(t, host.Program{Work: here(), Store: rested(t), Now: spring}, "history", 0, `
		app demo on *local.Memory, 2026-03-28 12:00:00Z

		JOB    STATE         COUNTS
		cache  each replica  each replica runs it: there is no record
		rest   each replica  each replica runs it: there is no record
		beat   idle          -
	`)
}

func TestNextOfJobOnEachReplica(t *testing.T) {
	environment(t)
	wantRun(t, host.Program{Work: here(), Now: spring}, "next cache -n 1", 0, `
		cache: every hour, UTC
		text: CRON_TZ=UTC 0 * * * *
		each replica runs it

		TICK                  FROM NOW
		2026-03-28 13:00:00Z  in 1h
	`)
}

func TestListOfJobOnEachReplica(t *testing.T) {
	environment(t)
	synctest.Test(t, func(t *testing.T) {
		slow := soloist.Job{Name: "slow", Schedule: "@every 1m", EveryReplica: true, Do: func(context.Context, *soloist.Run) error {
			time.Sleep(20 * time.Second)
			return nil
		}}
		s := open(t, host.Program{Work: append(here(), slow), Store: &local.Memory{}})
		s.tick()
		wantAnswer(t, "list", s.get("/api/v1/jobs"), 200, `"state":"each replica"`, `"state":"paused"`)
		time.Sleep(time.Minute)
		var all sync.WaitGroup
		all.Go(s.tick)
		time.Sleep(10 * time.Second)
		wantAnswer(t, "list", s.get("/api/v1/jobs?q=slow"), 200, `"state":"running"`, `"here":true`)
		all.Wait()
	})
}
