package host_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host"
	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/store"
)

// unlisted is a store that cannot list the apps that it has.
type unlisted struct{ store.Store }

func (unlisted) Apps(context.Context) ([]string, error) { return nil, errors.New("no right to list") }

func TestStatusWithoutAnyRecord(t *testing.T) {
	filled, many, dir, beside := &local.Memory{}, &local.Memory{}, t.TempDir(), t.TempDir()
	put(t, filled, "shop/beat", `{"schema":1}`, false)
	put(t, filled, "bank/beat", `{"schema":1}`, false)
	for _, letter := range "abcdefghijklmnopqrstuvwxyz" {
		put(t, many, "app-"+string(letter)+"/beat", `{"schema":1}`, false)
	}
	file(t, filepath.Join(beside, "notes.json"), "")
	put(t, local.Dir{Path: beside}, "shop/.doctor", "{}", false)
	for name, test := range map[string]struct {
		store store.Store
		app   string
		want  string
	}{
		"another app's":                       {filled, "demo", "it has records of the apps bank, shop: check SOLOIST_APP, SOLOIST_CONTAINER and SOLOIST_STORAGE"},
		"a slip":                              {filled, "shpo", "it has records of the apps bank, shop: did you mean SOLOIST_APP=shop?"},
		"many apps":                           {many, "demo", "app-s, app-t and 6 more"},
		"empty":                               {&local.Memory{}, "demo", "it has no records of any app"},
		"a directory":                         {local.Dir{Path: dir}, "demo", "it has no records of any app"},
		"a directory with a file beside apps": {local.Dir{Path: beside}, "demo", "it has no records of any app"},
		"no directory":                        {local.Dir{Path: filepath.Join(dir, "gone")}, "demo", "it does not exist: check"},
		"cannot list":                         {unlisted{&local.Memory{}}, "demo", "cannot be listed (no right to list)"},
		"a store of one's own":                {struct{ store.Store }{&local.Memory{}}, "demo", "check SOLOIST_APP"},
	} {
		environment(t, "SOLOIST_APP="+test.app)
		p := host.Program{Work: work(), Store: test.store}
		for _, command := range []string{"status", "history", "history beat", "unlock beat", "unlock beat --now --yes"} {
			got := wantLines(t, p, command, 1, test.want, "replicas create the records when they start")
			if !strings.HasPrefix(got.out+got.err, `demo: no records of app "`+test.app+`" in `) {
				t.Errorf("%s: %s: got %+v", name, command, got)
			}
			var answer struct {
				Error string
				Jobs  []struct{ State string }
			}
			must(t, json.Unmarshal([]byte(wantLines(t, p, command+" --json", 1).out), &answer))
			wantText(t, command+" --json", answer.Error, test.want)
			if !strings.HasPrefix(command, "unlock") && (len(answer.Jobs) == 0 || answer.Jobs[0].State != "no record") {
				t.Errorf("%s: %s --json: got %+v", name, command, answer)
			}
		}
	}
}

// One record is enough: a job that is new has none yet, and no lease.
func TestStatusWithSomeRecords(t *testing.T) {
	environment(t)
	p := host.Program{Work: work(), Store: &local.Memory{}}
	call(t, host.Program{Work: work()[:1], Store: p.Store}, "tick")
	got := wantLines(t, p, "status", 0)
	wantEqual(t, "jobs without a record", strings.Count(got.out, " no record "), 2)
	wantLines(t, p, "unlock leader", 0, "there is no record yet")
	wantLines(t, host.Program{Work: here()[:1], Store: &local.Memory{}}, "status", 0, "each replica")
}

func TestStatusTellsWhichPauseIsInForce(t *testing.T) {
	const pause, none = "SOLOIST_JOB_BEAT_PAUSED=true", "SOLOIST_JOB_BEAT_PAUSED="
	bubble(t, nil, func(t *testing.T) {
		p := host.Program{Work: work()[:1], Store: &local.Memory{}}
		call(t, p, "tick")
		for _, test := range []struct{ ticks, asks, state, differs string }{
			{none, none, " idle ", "!environment"},
			{none, pause, " idle ", "\nbeat: this environment pauses it, but"},
			{pause, none, " paused ", "\nbeat: this environment does not pause it, but"},
			{pause, pause, " paused ", "!environment"},
		} {
			environment(t, test.ticks)
			time.Sleep(time.Minute)
			call(t, p, "tick")
			environment(t, test.asks)
			wantLines(t, p, "status", 0, test.state, test.differs)
		}
	})
}

// logOf is the log of some runs.
func logOf(t *testing.T, terminal bool, env ...string) (log string) {
	t.Helper()
	bubble(t, append([]string{"TERM=xterm", "NO_COLOR="}, env...), func(t *testing.T) {
		p := host.Program{Store: &local.Memory{}, Work: []soloist.Work{lastingJob("beat", "@every 1m", 1500*time.Millisecond),
			soloist.Job{Name: "broke", Schedule: "@every 1m", Do: func(context.Context, *soloist.Run) error {
				return errors.New("no paper \x1b[2J\u202e and \\x1b[2J")
			}}}}
		if terminal {
			p = host.OnTerminal(p)
		}
		run(t.Context(), p, "tick")
		time.Sleep(time.Minute)
		log = run(t.Context(), p, "tick").err
	})
	return log
}

// A terminal has one line for each run, and colours unless they are not wanted. No text of a job moves its cursor.
func TestLogOnATerminal(t *testing.T) {
	clock := time.Date(2000, 1, 1, 0, 1, 0, 0, time.UTC).Local().Format("15:04:")
	// One second after the tick: the first run of a record waits for its token.
	want := clock + `01 WRN broke failed in 0s reason="no paper \x1b[2J\u202e and \\x1b[2J"` + "\n" + clock + "02 INF beat succeeded in 1.5s\n"
	wantEqual(t, "log", logOf(t, true, "NO_COLOR=1"), want)
	wantEqual(t, "runs that start, at level debug", strings.Count(logOf(t, true, "NO_COLOR=1", "SOLOIST_LOG_LEVEL=debug"), "run started"), 2)
	wantText(t, "colours", logOf(t, true), " \x1b[32mINF\x1b[0m \x1b[1mbeat\x1b[0m \x1b[32msucceeded\x1b[0m in 1.5s\n",
		" \x1b[1mbroke\x1b[0m \x1b[31mfailed\x1b[0m in 0s ", "!\x1b[2J", "!\u202e")
	for _, plain := range []string{logOf(t, true, "TERM=dumb"), logOf(t, false), logOf(t, false, "SOLOIST_LOG_FORMAT=text")} {
		wantText(t, "log", plain, "!\x1b")
	}
}

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
	put(t, store, "demo/beat", strings.ReplaceAll(fresh("demo"), "2026-01-01T00", "2026-03-28T12"), false)
	return store
}

func TestJobOnEachReplica(t *testing.T) {
	environment(t)
	p := host.Program{Work: here(), Store: rested(t), Now: spring}
	wantLines(t, p, "status", 0, "\nrest   each replica  -     13:00 in 1h  every hour, UTC  -\n",
		"\nbeat   idle          -     13:00 in 1h  every hour, UTC  -\n")
	wantLines(t, p, "status --json", 0, `"state": "each replica"`, `"everyReplica": true`)
	wantLines(t, p, "history", 0, "\ncache  each replica  each replica runs it: there is no record\n", "\nbeat   idle          -\n")
}

// chain is a job that takes two minutes, and one that follows it.
func chain() []soloist.Work {
	return []soloist.Work{
		lastingJob("import", "@every 10m", 2*time.Minute),
		soloist.Job{Name: "report", After: soloist.After{Jobs: []string{"import"}}, Do: do},
	}
}

// A run of hours that has just ended has not ended hours ago.
func TestLastRunIsCountedFromItsEnd(t *testing.T) {
	bubble(t, nil, func(t *testing.T) {
		s := newScene(t, nil, soloist.Job{Name: "report", Schedule: "0 1 * * *", Do: lasts(2 * time.Hour)})
		s.up("a")
		s.until("03:05:30.5") // a tick begins up to some milliseconds late
		wantLines(t, s.p, "status", 0, "  succeeded in 2h, 5m30s ago  ")
		s.end()
	})
}

// In a bubble of synctest it is midnight, 1 January 2000, UTC.
// The first run of a new record starts a second late, since its token has to be
// of a later second than any of a record of that name which was deleted: that is
// why the second and the third tick take a second each.
func TestTickAndStatus(t *testing.T) {
	bubble(t, []string{"CONTAINER_APP_REPLICA_NAME=replica-a"}, func(t *testing.T) {
		p := host.Program{Work: work(), Store: &local.Memory{}}
		time.Sleep(30 * time.Second)

		wantRun(t, p, "tick", 0, `
			JOB           TICK  DONE            NEXT
			beat          -     nothing is due  2000-01-01 00:01:00Z
			night-report  -     nothing is due  2000-01-01 01:30:00Z

			next tick 2000-01-01 00:01:00Z, in 30s
		`)

		time.Sleep(time.Minute)
		log := wantOut(t, p, "tick", 0, `
			JOB           TICK                  DONE            NEXT
			beat          2000-01-01 00:01:00Z  succeeded       2000-01-01 00:02:00Z
			night-report  -                     nothing is due  2000-01-01 01:30:00Z

			next tick 2000-01-01 00:02:00Z, in 28s
		`)
		wantText(t, "second tick", log, "run ended")

		time.Sleep(90 * time.Minute)
		wantOut(t, p, "tick", 1, `
			JOB           TICK                  DONE               NEXT
			beat          2000-01-01 01:31:00Z  succeeded          2000-01-01 01:32:00Z
			night-report  2000-01-01 01:30:00Z  failed (no paper)  2000-01-02 01:30:00Z

			next tick 2000-01-01 01:32:00Z, in 27s
		`)

		wantRun(t, p, "status", 0, `
			app demo on *local.Memory, 2000-01-01 01:31:32Z
			3 jobs, 1 in trouble

			NAME          STATE       LAST                     NEXT
			night-report  failing x1  failed 0s ago: no paper  Jan 2 01:30 in 23h
			beat          idle        succeeded, 1s ago        01:32 in 27s
			leader        no record   -                        -
		`)
	})
}

// A job runs, another is paused by the settings, a third follows the first, and two have ticks at other times.
func TestStatusOfJobs(t *testing.T) {
	bubble(t, []string{"CONTAINER_APP_REPLICA_NAME=replica-a", "SOLOIST_JOB_BEAT_PAUSED=true"}, func(t *testing.T) {
		p := host.Program{Store: &local.Memory{}, Work: append(chain(), soloist.Job{Name: "beat", Schedule: "@every 1m", Do: do},
			soloist.Job{Name: "past", Schedule: "0 9 * * *", Do: do, Days: soloist.Days{Until: time.Date(1999, 1, 5, 0, 0, 0, 0, time.UTC)}},
			soloist.Job{Name: "future", Schedule: "0 9 * * *", Do: do, Days: soloist.Days{From: time.Date(2150, 5, 1, 0, 0, 0, 0, time.UTC)}})}
		run(t.Context(), p, "tick")
		time.Sleep(10 * time.Minute)
		done := make(chan result)
		go func() { done <- run(t.Context(), p, "tick") }()
		time.Sleep(90 * time.Second)
		wantRun(t, p, "status", 0, `
			app demo on *local.Memory, 2000-01-01 00:11:30Z
			5 jobs, none in trouble

			NAME    STATE                     LAST                      NEXT
			import  running on replica-a si…  -                         00:20 in 8m30s
			report  idle                      -                         waits for import
			beat    paused                    10 skipped 1m30s ago: p…  00:11 due
			past    over since 1999-01-04     -                         -
			future  idle, begins 2150-05-01   -                         2150-05-01 in 54907d
		`)
		wantLines(t, p, "tick", 0, "runs on replica-a", "report  -     waits for import")
		got := <-done
		got.wants(t, "tick", 0, "2000-01-01 00:10:00Z  succeeded in 2m")
		wantEqual(t, "runs", strings.Count(got.out, "succeeded"), 2)
	})
}

func TestTickInJSON(t *testing.T) {
	bubble(t, []string{replicaName + "replica-a"}, func(t *testing.T) {
		p := host.Program{Work: work(), Store: &local.Memory{}}
		run(t.Context(), p, "tick")
		time.Sleep(90 * time.Minute)
		run(t.Context(), p, "tick") // the first runs, which wait for their tokens
		time.Sleep(time.Until(time.Date(2000, 1, 2, 1, 30, 30, 0, time.UTC)))
		wantJSON(t, p, "tick --json", 1, `
			{"app":"demo","store":"*local.Memory","time":"2000-01-02T01:30:30Z","jobs":[
			{"job":"beat","ran":[{"tick":"2000-01-02T01:30:00Z","status":"succeeded",
			"attempt":1,"token":946690201000001,"replica":"replica-a",
			"start":"2000-01-02T01:30:31Z","end":"2000-01-02T01:30:31Z"}],"next":"2000-01-02T01:31:00Z"},
			{"job":"night-report","ran":[{"tick":"2000-01-02T01:30:00Z","status":"failed","reason":"no\npaper",
			"attempt":1,"token":946690201000001,"replica":"replica-a",
			"start":"2000-01-02T01:30:31Z","end":"2000-01-02T01:30:31Z"}],"next":"2000-01-03T01:30:00Z"}],
			"next":"2000-01-02T01:31:00Z"}
		`)
	})
}

func TestValidateInJSON(t *testing.T) {
	environment(t, "SOLOIST_STORAGE=memory:")
	errs := wantJSON(t, host.Program{Work: work(), Now: spring}, "validate --json", 0, `
		{"ok":true,"app":"demo","store":"memory of this process","mistakes":[],"warnings":[
		"night-report: 02:30 on 2026-03-29 does not exist in Europe/Berlin, where clocks go forward: it runs at 03:00 on 2026-03-29",
		"night-report: 02:30 on 2026-10-25 occurs twice in Europe/Berlin, where clocks go back: it runs the first time only"]}
	`)
	environment(t, "SOLOIST_LAESE=1", "SOLOIST_STORAGE="+key, "SOLOIST_GRACE=x")
	errs += wantJSON(t, host.Program{Work: work()}, "validate --json", 2, `
		{"ok":false,"app":"demo","mistakes":[
		"SOLOIST_GRACE is \"x\": want a duration of zero or more, such as 25s",
		"SOLOIST_STORAGE: want memory:, dir:PATH, a blob service URL or a connection string",
		"SOLOIST_LAESE is not a setting: did you mean SOLOIST_LEASE?"],"warnings":[]}
	`)
	wantEqual(t, "standard error", errs, "")
}

func TestCommandsFailInAnOutage(t *testing.T) {
	environment(t)
	for command, says := range map[string]map[string]int{
		"status":         {"unknown": 3, "\nbeat, night-report, leader: no route to the storage\n": 1},
		"tick":           {"error: the orders of operators cannot be read, so nothing starts: no route to the storage": 2},
		"tick --json":    {`nothing starts: no route to the storage"`: 2, `"ran": []`: 2},
		"history":        {"unknown": 3, "no route to the storage": 3},
		"history --json": {"unknown": 3, "no route to the storage": 3},
	} {
		synctest.Test(t, func(t *testing.T) {
			got := wantLines(t, host.Program{Work: work(), Store: down()}, command, 1)
			for text, n := range says {
				wantEqual(t, command+": "+text, strings.Count(got.out, text), n)
			}
		})
	}
}

// watching runs status --watch until end is called, which returns what it came to.
func watching(t *testing.T, p host.Program, args ...string) (end func() result) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan result, 1)
	go func() { done <- run(ctx, p, append([]string{"status", "--watch"}, args...)...) }()
	return func() result { cancel(); return <-done }
}

// A line tells each change of a job once, also while the store does not answer.
func TestWatchTellsChanges(t *testing.T) {
	bubble(t, []string{"CONTAINER_APP_REPLICA_NAME=replica-a"}, func(t *testing.T) {
		backend := newGated(&local.Memory{}, nil)
		p := host.Program{Work: []soloist.Work{lastingJob("slow", "@every 1m", 10*time.Second)}, Store: backend}
		time.Sleep(500 * time.Millisecond) // nothing else happens at the instants at which it reads
		end, endJSON := watching(t, p), watching(t, p, "--json")
		time.Sleep(time.Second)
		call(t, p, "tick")
		time.Sleep(time.Minute)
		call(t, p, "tick")
		time.Sleep(5 * time.Second)
		backend.away(30 * time.Second)
		time.Sleep(time.Minute)
		got := end().wants(t, "status --watch, at the end of its context", 0, "!demo: ")
		goldenWant(t, "status --watch", got.out, `
			2000-01-01 00:00:00Z  slow  no record
			2000-01-01 00:00:02Z  slow  idle
			2000-01-01 00:01:04Z  slow  running on replica-a since 1s
			2000-01-01 00:01:14Z  slow  idle; last 2000-01-01 00:01:00Z succeeded in 10s on replica-a, 14s ago
			2000-01-01 00:01:18Z  slow  unknown; no route to the storage
			2000-01-01 00:01:48Z  slow  idle; last 2000-01-01 00:01:00Z succeeded in 10s on replica-a, 48s ago
		`)
		var states []string
		for line := range strings.Lines(endJSON().out) {
			var answer struct{ Jobs []struct{ State string } }
			must(t, json.Unmarshal([]byte(line), &answer))
			states = append(states, fmt.Sprint(answer.Jobs))
		}
		wantEqual(t, "states in JSON", states, []string{"[{no record}]", "[{idle}]", "[{running}]", "[{idle}]", "[{unknown}]", "[{idle}]"})
	})
}

func TestWrongClockIsTold(t *testing.T) {
	for off, want := range map[time.Duration]string{
		0:                      "",
		900 * time.Millisecond: "",
		-90 * time.Second:      "this machine's clock is 1m30s behind the store's",
		90 * time.Second:       "this machine's clock is 1m30s ahead of the store's",
	} {
		bubble(t, nil, func(t *testing.T) {
			told := func(what, text, part string) {
				t.Helper()
				wantEqual(t, fmt.Sprint(what, ", with a clock that is off by ", off), strings.Contains(text, part), want != "")
			}
			time.Sleep(time.Millisecond) // a date of whole seconds could mean any time of its second
			p := host.Program{Work: work(), Store: &local.Memory{}, Now: func() time.Time { return time.Now().Add(off) }}
			told("tick", call(t, p, "tick").err, want+", by which")
			got, head := call(t, p, "status").out, "app demo on *local.Memory, "+time.Now().Add(off).UTC().Format("2006-01-02 15:04:05Z\n")
			told("status", got, "clock")
			wantText(t, "status", got, head+want)
			s := open(t, p)
			for what, out := range map[string]string{"status": call(t, p, "status --json").out,
				"list": s.get("/api/v1/jobs").Body.String(), "healthz": s.get("/healthz").Body.String()} {
				m := regexp.MustCompile(`"skew": ?([-.\d]+)`).FindStringSubmatch(out + `"skew":0`)
				wantEqual(t, "skew of "+what, m[1], fmt.Sprint(off.Seconds()))
			}
			told("app", s.get("/api/v1/app").Body.String(), `"clock":`)
			var log strings.Builder
			p.Stdout = &log
			stop, code := serveOn(t, p, newPiped())
			time.Sleep(2 * time.Second)
			stop()
			wantCode(t, <-code, 0)
			told("serve", log.String(), "by which ticks are run")
		})
	}
}

// diverted is the default transport of this process. Requests to hooks.example go to the receiver of a test. It stays there after
// the test, since goroutines of earlier ones may be about to use it.
type diverted struct{ others http.RoundTripper }

var hooks atomic.Pointer[piped]

func init() { http.DefaultTransport = diverted{http.DefaultTransport} }

func (d diverted) RoundTrip(r *http.Request) (*http.Response, error) {
	if ln := hooks.Load(); ln != nil && r.URL.Hostname() == "hooks.example" {
		return ln.web().Transport.RoundTrip(r)
	}
	return d.others.RoundTrip(r)
}

// receive answers the requests to hooks.example.
func receive(t *testing.T, f http.HandlerFunc) {
	t.Helper()
	ln, server := newPiped(), &http.Server{Handler: f}
	go server.Serve(ln)
	hooks.Store(&ln)
	t.Cleanup(func() { server.Close() })
}

// A job that fails is red wherever one looks, and one alert is sent; after a success all is green again, and one message says
// so. The switch of the job gets each run, and how it ended.
func TestFailingJobIsTold(t *testing.T) {
	const hooks = "=http://hooks.example/"
	settings := []string{"SOLOIST_ALERT_WEBHOOK" + hooks + "alerts?key=secret", "SOLOIST_ALERT_SECRET=" + key, "SOLOIST_JOB_REPORT_PING" + hooks + "ping"}
	bubble(t, settings, func(t *testing.T) {
		var alerts, pings noted
		receive(t, func(_ http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/alerts" {
				pings.add(r.URL.Path)
				return
			}
			var m struct{ Kind, Event string }
			err := json.NewDecoder(r.Body).Decode(&m)
			wantEqual(t, "error and beginning of the signature", fmt.Sprintf("%v %.2s", err, r.Header.Get("Soloist-Signature")), "<nil> t=")
			alerts.add(m.Kind + " " + m.Event)
		})
		var runs atomic.Int64
		report := func(context.Context, *soloist.Run) error {
			if runs.Add(1) <= 2 {
				return errors.New("no paper")
			}
			return nil
		}
		p := host.Program{Store: new(local.Memory), Work: []soloist.Work{soloist.Job{Name: "report", Schedule: "@every 20s", Do: report}}}
		ln := newPiped()
		stop, code := serveOn(t, p, ln)
		for _, want := range []struct {
			runs, failures, trouble int
			state, shown, alerts    string
		}{
			{2, 2, 1, "failing", "  failing x2  ", "failures alert"},
			{3, 0, 0, "idle", "  idle  ", "failures alert, failures recovered"},
		} {
			for runs.Load() < int64(want.runs) {
				time.Sleep(time.Second)
			}
			time.Sleep(10 * time.Second)
			wantAnswer(t, "list", ln.get(t, "/api/v1/jobs"), 200, fmt.Sprintf(`"trouble":%d`, want.trouble), `"state":"`+want.state+`"`)
			wantAnswer(t, "red jobs", ln.get(t, "/api/v1/jobs?trouble=true"), 200, fmt.Sprintf(`"matched":%d`, want.trouble))
			wantAnswer(t, "metrics", ln.get(t, "/metrics"), 200, fmt.Sprintf("\nsoloist_job_failures{job_name=\"report\"} %d\n", want.failures))
			wantLines(t, p, "status", 0, want.shown)
			wantLines(t, p, "history", 0, want.shown)
			wantEqual(t, "the alerts", strings.Join(alerts.all(), ", "), want.alerts)
		}
		stop()
		wantCode(t, <-code, 0)
		runs.Store(1)
		for range 2 {
			time.Sleep(20 * time.Second)
			call(t, p, "tick")
		}
		wantEqual(t, "the pings", strings.Join(pings.all(), " "), "/ping/start /ping/fail /ping/start /ping")
	})
}
