package host_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host"
	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/store"
)

// noted is what jobs have noted, such as the ids of their runs.
type noted struct {
	mu  sync.Mutex
	ids []string
}

func (l *noted) add(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ids = append(l.ids, id)
}

func (l *noted) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.ids)
}

// steered is a program whose jobs note their runs: beat is due each hour and takes ten
// seconds, sad fails.
func steered(runs *noted) host.Program {
	beat := lastingJob("beat", "@every 1h", 10*time.Second)
	takes := beat.Do
	beat.Do = func(ctx context.Context, r *soloist.Run) error { runs.add(r.ID()); return takes(ctx, r) }
	return host.Program{Store: &local.Memory{}, Work: []soloist.Work{
		beat,
		soloist.Job{Name: "sad", Schedule: "@every 1h", Do: fail},
		soloist.Job{Name: "cache", Schedule: "@every 1h", Do: do, EveryReplica: true},
		soloist.Singleton{Name: "leader", Do: untilStopped},
	}}
}

// adds is a run that notes its id.
func (l *noted) adds(_ context.Context, r *soloist.Run) error { l.add(r.ID()); return nil }

// replica runs the jobs of a program until stop is called.
func replica(t *testing.T, p host.Program, name string) (stop func()) {
	t.Helper()
	s := &soloist.Scheduler{App: "demo", Replica: name, Store: p.Store, Groups: p.Groups, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))}
	for _, w := range p.Work {
		switch w := w.(type) {
		case soloist.Job:
			s.Jobs = append(s.Jobs, w)
		case soloist.Singleton:
			s.Singletons = append(s.Singletons, w)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	return func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func TestPauseAndResume(t *testing.T) {
	bubble(t, []string{"SOLOIST_BY=ann@desk"}, func(t *testing.T) {
		runs := &noted{}
		p := steered(runs)
		// No replica is up, and none has ever been: the job has no record yet.
		wantRun(t, p, "pause beat --until 90m --reason late", 0, `
			beat: paused by ann@desk until 2000-01-01 01:30:00Z, in 1h30m: its ticks are skipped; within 8s every replica obeys; a run that is under way goes on, and demo cancel beat ends it
		`)
		stop := replica(t, p, "replica-a")
		time.Sleep(65 * time.Minute)
		wantEqual(t, "ran while paused", runs.all(), nil)
		wantRun(t, p, "resume beat --by bob", 0, "beat: resumed by bob; within 8s every replica obeys\n")
		time.Sleep(time.Hour)
		wantEqual(t, "ran", runs.all(), []string{"beat@2000-01-01T02:00:00Z"})
		stop()
		wantRun(t, p, "audit", 0, `
			app demo on *local.Memory, 2000-01-01 02:05:00Z

			AT                    BY        ORDER   JOB   UNTIL                 REQUEST  REASON
			2000-01-01 01:05:00Z  bob       resume  beat  -                     -        -
			2000-01-01 00:00:00Z  ann@desk  pause   beat  2000-01-01 01:30:00Z  -        late
		`)
		wantLines(t, p, "history beat --outcome skipped", 0, "skipped", "paused")
	})
}

func TestRunByOrder(t *testing.T) {
	bubble(t, nil, func(t *testing.T) {
		runs := &noted{}
		p := steered(runs)
		stop := replica(t, p, "replica-a")
		time.Sleep(10 * time.Second)
		wantEqual(t, "a run that succeeds", call(t, p, "run beat --request one --by ann"), result{0, "beat@one: succeeded in 10s on replica-a\n",
			"demo: run beat: ordered as beat@one by ann; waiting for its outcome, which history shows too\n"})
		wantLines(t, p, "run sad --request two", 1, "sad@two: failed (no paper) on replica-a\n")
		wantLines(t, p, "run beat --request one", 1, `"one" was used`)
		got := wantLines(t, p, "run beat --request three --no-wait --until 5m", 0, "beat: ordered as beat@three by ")
		wantEqual(t, "without waiting: on standard error", got.err, "")
		time.Sleep(time.Minute)
		got = wantLines(t, p, "run beat --request four --json", 0, `"kind": "run"`, `"request": "four"`, `"id": "beat@four"`, `"status": "succeeded"`)
		got.err += wantLines(t, p, "cancel beat --json", 1, `"error": "cancel beat: nothing runs: its last run is over"`).err
		wantEqual(t, "in JSON: on standard error", got.err, "")
		stop()
		wantEqual(t, "ran", runs.all(), []string{"beat@one", "beat@three", "beat@four"})
	})
}

// Without a replica an order waits, and is given up in the end. The command says so, tells the store's trouble once, and runs
// the job itself if it is told to; a replica that starts later does not run it again. With --here the command runs what it has
// ordered and nothing else: a tick that is due, and an older order, wait for a replica.
func TestRunByOrderWithoutReplica(t *testing.T) {
	bubble(t, []string{"CONTAINER_APP_REPLICA_NAME=laptop"}, func(t *testing.T) {
		runs := &noted{}
		p := steered(runs)
		wantLines(t, p, "run beat", 1,
			"there is no record of it in *local.Memory, so no replica has ever started it: check SOLOIST_APP (it is demo)")
		call(t, p, "tick")
		cut := p
		backend := newGated(p.Store, nil)
		cut.Store = backend
		time.AfterFunc(3*time.Second, func() { backend.away(10 * time.Second) })
		got := wantLines(t, cut, "run beat --until 20s", 1, "no replica has begun it by 2000-01-01 00:00:20Z, so it is given up\n")
		wantEqual(t, "the trouble is told", strings.Count(got.err, "no route to the storage"), 1)
		time.Sleep(31 * time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		got = run(ctx, p, "run", "beat", "--request", "one", "--until", "3h")
		const advice = "no replica has begun it yet; it is given up at 2000-01-01 03:01:00Z. If none is up, demo run beat --here runs it in its own process\n"
		got.wants(t, "without a replica", 1, "run beat: stopped waiting; the order stands until 2000-01-01 03:01:00Z, and demo history beat@one shows its outcome\n")
		wantEqual(t, "advice", strings.Count(got.err, advice), 1)
		time.Sleep(time.Hour)
		got = wantLines(t, p, "run beat --request two --here --reason by-hand", 0)
		wantEqual(t, "here", got.out, "beat@two: succeeded in 10s on laptop\n")
		wantEqual(t, "ran", runs.all(), []string{"beat@two"})
		stop := replica(t, p, "replica-a")
		time.Sleep(time.Minute)
		stop()
		wantEqual(t, "ran", runs.all(), []string{"beat@two", "beat@2000-01-01T01:00:00Z", "beat@one"})
	})
}

// Orders to the run that is under way. What becomes of it is tested with the scheduler.
func TestCancelAndStepDown(t *testing.T) {
	bubble(t, nil, func(t *testing.T) {
		p := steered(&noted{})
		p.Work = append(p.Work, lastingJob("long", "@every 1h", time.Hour))
		stop := replica(t, p, "replica-a")
		time.Sleep(time.Minute)
		for _, command := range []string{"cancel", "step-down"} {
			wantLines(t, p, command+" beat", 1, "demo: "+command+" beat: nothing runs: its last run is over\n")
		}
		time.AfterFunc(8*time.Second, func() {
			wantRun(t, p, "cancel long --by ann --reason wrong", 0, `
				long: its run is cancelled by ann: within 8s its context ends, and its tick is not run again; a run that ignores its context goes on, and status shows it
			`)
		})
		wantLines(t, p, "run long --request one", 1, "long@one: cancelled ", "ann")
		wantRun(t, p, "step-down leader --by ann", 0, `
			leader: its run is to be handed over, by ann: within 8s its replica begins to, as at a stop
		`)
		stop()
	})
}

func TestOrdersAreRefused(t *testing.T) {
	environment(t)
	p := steered(&noted{})
	p.Now = spring
	for args, want := range map[string]string{
		"run leader":             "leader is a singleton: it is not run by hand",
		"run cache":              "cache runs on each replica: it can be paused and resumed",
		"run beat --request a/b": `request is "a/b"`,
		"cancel beat":            "cancel beat: there is no record of it",
	} {
		wantLines(t, p, args, 1, "demo: "+want)
	}
	// What operators write is shown in one line, and cannot move a cursor.
	wantLines(t, p, "pause beat --by <b>ann --reason a\u202eb", 0)
	wantLines(t, p, "audit", 0, `a\u202eb`, "<b>ann")
	wantLines(t, p, "pause beat --reason a\x1b[2Jb", 1, "!\x1b")
	p.Store = down()
	for _, args := range []string{"pause beat", "audit", "pause beat --json"} {
		wantLines(t, p, args, 1, "no route to the storage")
	}
}

// While a pause is in force status tells who has ordered it, until when and why; after it the ticks that it skipped are no
// pause. A job that has paused itself says so, also where no replica is up.
func TestStatusOfPause(t *testing.T) {
	bubble(t, nil, func(t *testing.T) {
		p := steered(&noted{})
		sad := soloist.Job{Name: "sad", Schedule: "@every 1m", Do: fail, Retry: soloist.Retry{PauseAfter: 2}}
		p.Work = []soloist.Work{p.Work[0], sad}
		stop := replica(t, p, "replica-a")
		time.Sleep(5*time.Minute + 30*time.Second) // a run may begin up to a second after its tick
		call(t, p, "pause beat --by ann --reason late --until 3h")
		wantLines(t, p, "status", 0, "  paused by ann until 03:05:30, i…", "failed 3m", "s ago: no paper  ")
		wantLines(t, p, "status sad beat", 0, "  paused by ann until 2000-01-01 03:05:30Z, in 3h: late\n", "paused by itself: failures in a row, failing x2\n")
		wantLines(t, p, "status --json", 0, `"by": "ann"`)
		time.Sleep(time.Hour)
		call(t, p, "resume beat")
		time.Sleep(90 * time.Minute) // two ticks later than the pause
		call(t, p, "pause beat --until 1h")
		time.Sleep(time.Hour + 10*time.Second)
		stop()
		call(t, p, "resume sad")
		wantLines(t, p, "status", 0, "failing x2", "!paused")
	})
}

func TestPauseTellsWhatItReplaces(t *testing.T) {
	bubble(t, nil, func(t *testing.T) {
		p := steered(&noted{})
		wantLines(t, p, "pause beat --until 90m --reason disk --by ann", 0, "beat: paused by ann until 2000-01-01 01:30:00Z, in 1h30m")
		const replaced = "this takes the place of the pause by ann until 2000-01-01 01:30:00Z: disk"
		wantLines(t, p, "pause beat --by bob", 1, "pause beat: "+replaced+": if that is meant, add --yes\n")
		wantLines(t, p, "audit", 0, "disk", "!bob")
		wantLines(t, p, "pause beat --by bob --json", 1, `"error": "pause beat: `+replaced, "!bob")
		wantLines(t, p, "pause beat --by bob --yes --json", 0, replaced, `"by": "bob"`)
		wantLines(t, p, "pause beat --by eve --yes", 0, "the place of the pause by bob until a resume: no reason given")
		wantLines(t, p, "pause sad", 0, "!takes the place")
	})
}

// withLogs is a gated store that keeps logs.
type withLogs struct {
	*gated
	store.Appender
}

// A command whose store does not answer for ten minutes, from half a second after the order on, until the record has forgotten
// the outcome, tells it from the log. Without a log it says that it was begun, and neither waits on nor advises to run it again.
func TestRunWhoseOutcomeIsForgotten(t *testing.T) {
	const forgotten = "was begun or settled, and its outcome is not in the record any more\n"
	for _, test := range []struct {
		command string
		logs    bool
		code    int
		says    string
	}{
		{"run often --request one", true, 0, "often@one: succeeded "},
		{"run often --request one", false, 1, forgotten},
		{"run often --request one --here", false, 1, forgotten},
	} {
		bubble(t, []string{"SOLOIST_HISTORY=24h"}, func(t *testing.T) {
			backend, runs, over := new(local.Memory), &noted{}, make(chan struct{})
			p := host.Program{Store: backend, Work: []soloist.Work{soloist.Job{Name: "often", Schedule: "@every 20s", Do: runs.adds}}}
			go func() { defer close(over); ticks(t, p, 40) }()
			time.Sleep(21 * time.Second)
			away, cut := newGated(backend, nil), p
			if cut.Store = away; test.logs {
				cut.Store = withLogs{away, backend}
			}
			if strings.HasSuffix(test.command, "--here") {
				away.set(refuse(store.ErrHeld, "acquire")) // another client is faster
			}
			time.AfterFunc(time.Second/2, func() { away.away(10 * time.Minute) })
			begin := time.Now()
			wantLines(t, cut, test.command, test.code, test.says, "!no replica has begun it")
			wantTook(t, begin, 0, 15*time.Minute)
			<-over
			wantEqual(t, "how often it ran", strings.Count(strings.Join(runs.all(), " ")+" ", "often@one "), 1)
		})
	}
}

// A run whose replica has died was begun.
func TestRunWhoseReplicaHasDied(t *testing.T) {
	bubble(t, nil, func(t *testing.T) {
		p := steered(&noted{})
		call(t, p, "tick")
		dying, died := newGated(p.Store, nil), p
		died.Store = dying
		stop := replica(t, died, "replica-a")
		time.Sleep(10 * time.Second)
		time.AfterFunc(8*time.Second, func() { dying.set(refuse(errDown)) })
		time.AfterFunc(30*time.Second, stop)
		wantLines(t, p, "run beat --request one --until 2m", 1, "!no replica has begun it",
			"replica-a has begun it and writes no outcome: the next replica that is up does\n")
	})
}

// The command orders a backfill, which the next replica that is up carries out; status shows how far
// it is.
func TestBackfillCommand(t *testing.T) {
	bubble(t, nil, func(t *testing.T) {
		p := frequent(new(local.Memory))
		call(t, p, "tick")
		time.Sleep(21 * time.Second)
		call(t, p, "tick")
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
			got := call(t, p, "backfill often "+args)
			wantEqual(t, args+" is taken", got.code == 0, false)
			wantText(t, args, got.err, want)
		}
		const minute = "backfill often --from 1h --to 59m --all"
		wantLines(t, p, minute+" --dry-run", 0, "it would run 3 ticks again, from 1999-12-31 23:00:40",
			"\n1999-12-31 23:00:40Z\n1999-12-31 23:01:00Z\n1999-12-31 23:01:20Z\n")
		wantLines(t, p, "backfill often --from 1h --all --dry-run", 0, "it would run 180 ticks again", "to 2000-01-01 00:00:20Z\n", "\nand 80 more\n")
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

// Days are those of the job's zone; without --to the range ends with the last tick that has its outcome.
func TestBackfillOfDays(t *testing.T) {
	bubble(t, nil, func(t *testing.T) {
		job := soloist.Job{Name: "daily", Schedule: "CRON_TZ=America/Sao_Paulo 0 0,12 * * *", Do: do}
		p := host.Program{Work: []soloist.Work{job}, Store: new(local.Memory)}
		run(t.Context(), p, "tick") // 31 December, 22:00 in São Paulo
		const noon = "1999-12-31 14:00:00Z  Fri 1999-12-31 12:00:00 -02:00\n"
		for args, want := range map[string]string{
			"--from today":                      ": it would run 2 ticks again",
			"--from yesterday":                  ": it would run 4 ticks again, from 1999-12-30 02:00:00Z to 1999-12-31 14:00:00Z\n",
			"--from yesterday --to today":       "from 1999-12-30 02:00:00Z to 1999-12-31 02:00:00Z\n",
			"--from 1999-12-31":                 "from 1999-12-31 02:00:00Z to 1999-12-31 14:00:00Z\n",
			"--from 12h":                        noon,
			"--from 1999-10-03 --to 1999-10-03": "1999-10-03 03:00:00Z  Sun 1999-10-03 01:00:00 -02:00\n", // which has no midnight
		} {
			wantLines(t, p, "backfill daily --all --dry-run "+args, 0, want)
		}
		wantLines(t, p, "backfill daily --all --dry-run --json --from today", 0, `"listed": [
    "1999-12-31T02:00:00Z",
    "1999-12-31T14:00:00Z"
  ]`)
		time.Sleep(5 * time.Hour) // the tick of 02:00 has no outcome
		wantLines(t, p, "backfill daily --all --from 24h", 0, "1 tick from 1999-12-31 05:00:00Z to 2000-01-01 00:00:00Z")
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
		post("backfill", `{"to":"1999-12-31T22:00:00Z"}`, "from is missing", 409)
		post("backfill", `{"from":"1999-12-31T22:00:00Z"}`, "no tick of the range was missed", 409)
		post("backfill", minute+`,"now":true,"until":"2001-01-01T00:00:00Z"}`, "leave out until", 409)
		post("pause", `{"all":true}`, "leave out from, to, all and parallel", 409)
		post("cancel-backfill", "", "no backfill that is under way", 409)
		post("backfill", minute+`,"all":true,"parallel":-1}`, "want 1 to 16", 409)
		post("pause", `{"dryRun":true}`, "dryRun is for a backfill alone", 400)
		post("backfill", minute+`,"dryRun":true}`, "no tick of the range was missed", 409)
		post("backfill", minute+`,"all":true,"dryRun":true}`, `"status":"planned","plan":{"ticks":4,"first":"1999-12-31T22:00:00Z","last":"1999-12-31T22:01:00Z"}`, 200)
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
		soloist.Job{Name: "import", Schedule: "@every 1h", Shards: 3, Do: runs.adds},
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
		wantLines(t, p, "status import-2 feed", 0, "shard 2 of 3\n", "shard 1 of 2\n")
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
		wantEqual(t, "runs", len(runs.all()), 4)
		wantLines(t, p, "run typo --here", 2, "there is no job")
		wantLines(t, p, "history sad", 0, "failed")
	})
}
