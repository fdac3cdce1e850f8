package host_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host"
	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/store"
)

// withLogs is a gated store that keeps logs.
type withLogs struct {
	*gated
	store.Appender
}

// noting has the first job of a program note its runs.
func noting(p host.Program, runs *noted) host.Program {
	j := p.Work[0].(soloist.Job)
	do := j.Do
	j.Do = func(ctx context.Context, r *soloist.Run) error {
		runs.add(r.ID())
		return do(ctx, r)
	}
	p.Work = []soloist.Work{j}
	return p
}

// cutOff has a job of each 20 s run for a while, and its run ordered by a command that the store
// does not answer for ten minutes, from half a second after the order on: the record has
// forgotten the outcome by then. It returns how often it ran, what the command said and how long
// it took.
func cutOff(t *testing.T, keepsLogs bool, args ...string) (times int, got result, took time.Duration) {
	synctest.Test(t, func(t *testing.T) {
		backend := new(local.Memory)
		runs := &noted{}
		p := noting(frequent(backend), runs)
		run(t.Context(), p, "tick")
		fleet, over := p, make(chan struct{})
		go func() {
			defer close(over)
			for range 100 {
				time.Sleep(20 * time.Second)
				run(t.Context(), fleet, "tick")
			}
		}()
		time.Sleep(21 * time.Second)
		away := newGated(backend, nil)
		if p.Store = away; keepsLogs {
			p.Store = withLogs{away, backend}
		}
		time.AfterFunc(time.Second/2, func() { away.away(10 * time.Minute) })
		if args = append([]string{"run", "often", "--request", "one"}, args...); args[len(args)-1] == "--here" {
			away.set(refuse(store.ErrHeld, "acquire")) // another client is faster
		}
		begin := time.Now()
		got = run(t.Context(), p, args...)
		took = time.Since(begin)
		<-over
		times = strings.Count(strings.Join(runs.all(), " ")+" ", "often@one ")
	})
	return times, got, took
}

// A command that was cut off for so long that the record has forgotten what it ordered tells the
// outcome from the log. Without a log it says that it was begun, and neither waits on nor advises
// to run it again.
func TestRunWhoseOutcomeIsForgotten(t *testing.T) {
	environment(t, "SOLOIST_HISTORY=24h")
	times, got, took := cutOff(t, true)
	if times != 1 || got.code != 0 || !strings.HasPrefix(got.out, "often@one: succeeded ") || took > 15*time.Minute {
		t.Errorf("with a log: ran %d times, got %+v after %s", times, got, took)
	}
	for _, args := range [][]string{nil, {"--here"}} {
		times, got, took = cutOff(t, false, args...)
		if times != 1 || got.code != 1 || !strings.HasSuffix(got.err, "was begun or settled, and its outcome is not in the record any more\n") || took > 15*time.Minute {
			t.Errorf("without a log, %q: ran %d times, got %+v after %s", args, times, got, took)
		}
		wantNone(t, strings.Join(args, " "), got.err, "no replica has begun it")
	}
}

// A run whose replica has died was begun.
func TestRunWhoseReplicaHasDied(t *testing.T) {
	bubble(t, nil, func(t *testing.T) {
		runs := &noted{}
		p := steered(runs)
		run(t.Context(), p, "tick")
		dying := newGated(p.Store, nil)
		died := p
		died.Store = dying
		stop := replica(t, died, "replica-a")
		time.Sleep(10 * time.Second)
		time.AfterFunc(8*time.Second, func() { dying.set(refuse(errDown)) })
		time.AfterFunc(30*time.Second, stop)
		got := run(t.Context(), p, "run", "beat", "--request", "one", "--until", "2m")
		if got.code != 1 || strings.Contains(got.err, "no replica has begun it") || !strings.HasSuffix(got.err, "replica-a has begun it and writes no outcome: the next replica that is up does\n") {
			t.Errorf("got %+v", got)
		}
	})
}

// A job that has to do with others is run by hand as any is.
func TestRunOfAJobWithAGroupOrBeforeIt(t *testing.T) {
	bubble(t, nil, func(t *testing.T) {
		p := host.Program{Store: &local.Memory{}, Groups: map[string]int{"db": 1}, Work: []soloist.Work{
			soloist.Job{Name: "import", Schedule: "@every 1h", Do: do, Group: "db"},
			soloist.Job{Name: "report", After: "import", Do: do, Group: "db"},
		}}
		run(t.Context(), p, "tick")
		wantLines(t, p, "run import --here --request one", 0, "import@one: succeeded ")
		wantLines(t, p, "run report --here --request one", 0, "report@one: succeeded ")
		defer replica(t, p, "replica-a")()
		wantLines(t, p, "run import --request two", 0, "import@two: succeeded ")
		wantLines(t, p, "run report --request two", 0, "report@two: succeeded ")
	})
}

// The command orders a backfill, which the next replica that is up carries out; status shows how far
// it is.
func TestBackfillCommand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := frequent(new(local.Memory))
		run(t.Context(), p, "tick")
		time.Sleep(21 * time.Second)
		run(t.Context(), p, "tick")
		for want, args := range map[string]string{
			"--from is missing":         "--to 1h",
			"--to is \"soon\"":          "--from 2h --to soon",
			"can't be used together":    "--from 2h --to 1h --all --missed",
			"no tick of the range was":  "--from 15s --to 1s",
			"no backfill that is under": "--cancel",
			"want 1 to 16":              "--from 1h --to 59m --all --parallel 17",
			"before from":               "--from 1h --to 2h --all",
			"order it in parts":         "--from 365d --to 1h --all --dry-run",
		} {
			if got := run(t.Context(), p, strings.Fields("backfill often "+args)...); got.code == 0 ||
				!strings.Contains(got.err, want) {
				t.Errorf("%q: got %+v, want %q", args, got, want)
			}
		}
		const minute = "backfill often --from 1h --to 59m --all"
		wantLines(t, p, minute+" --dry-run", 0, "it would run 3 ticks again, from 1999-12-31 23:00:40")
		wantLines(t, p, minute+" --dry-run --json", 0, `"ticks": 3`)
		wantLines(t, p, minute+" --reason test", 0, "3 ticks from")
		wantLines(t, p, "status", 0, "waiting, 0 of 3 ticks")
		wantLines(t, p, "tick", 0)
		wantLines(t, p, "status", 0, "done, 3 of 3 ticks (3 succeeded)")
		wantLines(t, p, minute+" --parallel 2", 0, "2 at a time, in their order")
		time.Sleep(10 * time.Second)
		wantLines(t, p, "tick", 0)
		wantLines(t, p, "status", 0, "done, 3 of 3 ticks (3 succeeded)")
		wantLines(t, p, "audit", 0, "backfill")
	})
}

func TestBackfillOverHTTP(t *testing.T) {
	bubble(t, []string{"SOLOIST_ADMIN_TOKEN=" + adminToken}, func(t *testing.T) {
		s := open(t, frequent(new(local.Memory)))
		s.tick()
		const path, minute = "/api/v1/jobs/often/", `{"from":"1999-12-31T22:00:00Z","to":"1999-12-31T22:01:00Z"`
		d := described(t, s)
		post := func(name, body, want string, code int) {
			t.Helper()
			got := s.ask(http.MethodPost, path+name, body, nil, "Authorization", "Bearer "+adminToken)
			wantAnswer(t, name, got, code, want)
			d.wantAsDescribed(t, "POST", path+name, got)
		}
		post("backfill", `{"from":"1999-12-31T22:00:00Z"}`, "is missing", 409)
		post("backfill", minute+`,"now":true,"until":"2001-01-01T00:00:00Z"}`, "leave out until", 409)
		post("pause", `{"all":true}`, "leave out from, to, all and parallel", 409)
		post("cancel-backfill", "", "no backfill that is under way", 409)
		post("backfill", minute+`,"all":true,"parallel":-1}`, "want 1 to 16", 409)
		post("backfill", minute+`,"all":true}`, `"ticks":4`, 200)
		post("backfill", minute+`,"all":true}`, "is under way", 409)
		time.Sleep(10 * time.Second)
		s.tick()
		time.Sleep(10 * time.Second)
		got := s.get("/api/v1/jobs/often")
		wantAnswer(t, "job", got, 200, `"state":"done"`, `"done":4`)
		d.wantAsDescribed(t, "GET", "/api/v1/jobs/often", got)
		post("backfill", minute+`,"all":true,"parallel":4}`, `"parallel":4`, 200)
		post("cancel-backfill", "", `"kind":"cancel-backfill"`, 200)
		time.Sleep(10 * time.Second)
		wantAnswer(t, "job", s.get("/api/v1/jobs/often"), 200, `"state":"cancelled"`)
		d.wantAsDescribed(t, "GET", "/api/v1/orders", s.get("/api/v1/orders"))
	})
}

// split is a program with a job of three shards and a singleton of two.
func split(runs *noted) host.Program {
	return host.Program{Store: &local.Memory{}, Work: []soloist.Work{
		soloist.Job{Name: "import", Schedule: "@every 1h", Shards: 3, Do: func(_ context.Context, r *soloist.Run) error { runs.add(r.ID()); return nil }},
		soloist.Singleton{Name: "feed", Shards: 2, Do: untilStopped},
	}}
}

// What is ordered for a job with shards is ordered for each of them.
func TestOrdersOfTheWhole(t *testing.T) {
	bubble(t, []string{"SOLOIST_BY=ann"}, func(t *testing.T) {
		runs := &noted{}
		p := split(runs)
		stop := replica(t, p, "replica-a")
		time.Sleep(time.Minute)
		wantLines(t, p, "pause import", 0, "import-0: paused by ann", "import-1: paused by ann", "import-2: paused by ann")
		wantLines(t, p, "resume import-1", 0, "import-1: resumed by ann")
		time.Sleep(time.Hour)
		wantEqual(t, "ran", runs.all(), []string{"import-1@2000-01-01T01:00:00Z"})
		wantLines(t, p, "run import --request again", 0, "import-0@again: succeeded", "import-1@again: succeeded", "import-2@again: succeeded")
		wantLines(t, p, "step-down feed-1", 0, "feed-1: its run is to be handed over")
		wantLines(t, p, "history import", 0, "import-0  2000-01-01 01:01:0", "import-1  2000-01-01 01:00:00Z", "import-2  2000-01-01 01:01:0")
		wantLines(t, p, "status", 0, "UTC, shard 2 of 3", "(singleton), shard 1 of 2")
		wantLines(t, p, "unlock import", 2, "demo: import is split into shards, import-0 to import-2: name one of them")
		wantLines(t, p, "next import-1", 0, "import: ")
		stop()
	})
}

// A job that has no record yet can be tried out: the record is made.
func TestRunHereMakesRecord(t *testing.T) {
	bubble(t, nil, func(t *testing.T) {
		runs := &noted{}
		p := split(runs)
		p.Work = append(p.Work, soloist.Job{Name: "sad", Schedule: "@hourly", Do: fail})
		wantLines(t, p, "run import --here --request try", 0, "import-0@try: succeeded", "import-2@try: succeeded", "there is no record of it in *local.Memory, of app demo: it is made now")
		wantLines(t, p, "run import-1 --here --json", 0, `"job": "import-1"`, `"status": "succeeded"`) // by an order, since there is a record now
		wantLines(t, p, "run sad --here", 1, "sad@here-", "failed (no paper)")
		if got := runs.all(); len(got) != 4 {
			t.Errorf("ran %q, want four", got)
		}
		wantLines(t, p, "run typo --here", 2, "there is no job")
		wantLines(t, p, "history sad", 0, "failed")
	})
}
