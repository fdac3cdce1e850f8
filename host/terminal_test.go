package host_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host"
	"github.com/soloist-go/soloist/host/azure"
	"github.com/soloist-go/soloist/host/internal/format"
	"github.com/soloist-go/soloist/host/local"
)

// widest is the width of the widest line.
func widest(text string) (most int) {
	for line := range strings.Lines(text) {
		most = max(most, format.Width(strings.TrimSuffix(line, "\n")))
	}
	return most
}

// wideName is a name of as many characters as there may be.
var wideName = strings.Repeat("night-report-", 5)[:63]

// broad is a program of which most is too wide for a terminal: a name, a reason, shards, a schedule.
func broad() host.Program {
	says := func(text string) func(context.Context, *soloist.Run) error {
		return func(context.Context, *soloist.Run) error { return errors.New(text) }
	}
	return host.Program{Store: &local.Memory{}, Work: []soloist.Work{
		soloist.Job{Name: "beat", Schedule: "@every 10m", Do: do},
		soloist.Job{Name: wideName, Schedule: "5 1 * * *", TimeZone: "Europe/Berlin", Do: says("no paper\x1b[2J\nin " + strings.Repeat("the printer ", 30))},
		soloist.Job{Name: "asia", Schedule: "7 9 * * *", TimeZone: "Asia/Tokyo", Do: says(strings.Repeat("紙がありません", 20))},
		soloist.Job{Name: "import", Schedule: "@every 10m", Shards: 3, Do: func(_ context.Context, r *soloist.Run) error {
			if strings.Contains(r.ID(), "-1@") {
				return errors.New("no route")
			}
			return nil
		}},
		soloist.Job{Name: "feed", Schedule: "@every 10m", Shards: 40, Do: do},
		soloist.Singleton{Name: "leader", Do: untilStopped},
	}}
}

// servedFor is a program that has served for a while on a replica, whose environment is another one than that of the test.
func servedFor(t *testing.T, d time.Duration, p host.Program) {
	t.Helper()
	stop := beginServing(t, p, replicaName+"replica-with-a-name-as-platforms-give-them-7c9f8d6b5-x2x4z")
	time.Sleep(d)
	stop()
	environment(t, "SOLOIST_LEASE=20s", "SOLOIST_JOB_BEAT_SCHEDULE=@every 2d")
}

// Status is no wider than what it is written to, whatever is in it. Before it was, the same program took the width of all its
// texts: 416 columns.
func TestStatusFits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := broad()
		servedFor(t, 21*time.Minute+30*time.Second, p)
		t.Setenv("COLUMNS", "100000")
		before := widest(run(t.Context(), p, "status").out)
		if before < 300 {
			t.Errorf("got %d columns, want a status that does not fit", before)
		}
		for columns, most := range map[string]int{"": 80, "80": 80, "132": 132, "40": 40, "20": 20, "1": 20, "-7": 80, "wide": 80} {
			t.Setenv("COLUMNS", columns)
			for _, command := range []string{"status", "status --locks", "status --failing", "status --tz Asia/Kathmandu", "status import " + wideName} {
				got := run(t.Context(), p, strings.Fields(command)...)
				if after := widest(got.out); after > most || got.code != 0 {
					t.Errorf("COLUMNS=%s: %s: got code %d and %d columns, want %d at most:\n%s", columns, command, got.code, after, most, got.out)
				}
				wantPlain(t, command, got.out)
				if !strings.Contains(command, wideName) {
					wantText(t, command, got.out, "night-", "…")
				}
			}
		}
		t.Setenv("COLUMNS", "")
		got := run(t.Context(), p, "status").out
		t.Logf("before: %d columns, after: %d:\n%s", before, widest(got), got)
		wantText(t, "status", got, "6 jobs, 3 in trouble\n", "  .x. shard 1 fail", "40 idle", "\n  ....")
		for above, below := range map[string]string{wideName[:8]: "beat ", "import ": "feed ", "asia": "\nbeat "} {
			if strings.Index(got, above) > strings.Index(got, below) {
				t.Errorf("got %q, which is in trouble, below %q", above, below)
			}
		}
		// Nothing is lost: what was cut is whole where one job is asked for, and in JSON.
		whole := strings.Join(strings.Fields(run(t.Context(), p, "status", wideName, "beat").out), " ")
		wantText(t, "status JOB", whole, wideName, "failed (no paper\\x1b[2J in the printer the printer", "on replica-with-a-name-as-platforms-give-them-7c9f8d6b5-x2x4z",
			"last 2000-01-01 01:05:00 +01:00", "differs schedules differ: @every 48h0m0s in this environment; @every 10m0s on replica-with")
		wantText(t, "status --json", run(t.Context(), p, "status", "--json").out, `"job": "`+wideName+`"`, `"reason": "no paper\u001b[2J\nin the printer`, `"job": "feed-39"`)
	})
}

// Of those in trouble alone, the code that a script asks for, and a zone.
func TestStatusOfSome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := broad()
		servedFor(t, 21*time.Minute+30*time.Second, p)
		environment(t, "COLUMNS=120")
		for command, want := range map[string]int{"status": 0, "status --exit-code": 1, "status beat --exit-code": 0, "status import --exit-code": 1, "status import-1 --exit-code": 1,
			"status import-0 --exit-code": 0, "status --failing": 0, "status --failing --exit-code --json": 1, "status bet": 2, "status --tz Mars/Olympus": 2, "status --watch --exit-code": 2} {
			if got := run(t.Context(), p, strings.Fields(command)...); got.code != want {
				t.Errorf("%s: got %+v, want code %d", command, got, want)
			}
		}
		wantLines(t, p, "status bet", 2, `there is no job "bet"`, "did you mean beat?")
		wantLines(t, p, "status --tz Mars/Olympus", 2, `demo: status: --tz "Mars/Olympus" is unknown`)
		failing := run(t.Context(), p, "status", "--failing").out
		wantText(t, "failing", failing, "asia", "import", wideName[:20])
		wantText(t, "failing", failing, "!beat", "!leader", "!feed", "!REPLICA")
		var answer struct{ Jobs []struct{ Job string } }
		must(t, json.Unmarshal([]byte(run(t.Context(), p, "status", "--failing", "--json").out), &answer))
		wantEqual(t, "failing in JSON", answer.Jobs, []struct{ Job string }{{wideName}, {"asia"}, {"import-1"}})
		wantLines(t, p, "status beat --failing", 0, "app demo on")
		wantLines(t, p, "status --tz Asia/Tokyo", 0, "2000-01-01 09:21:30 +09:00\n", "  09:30 in 8m30s")
		wantLines(t, p, "status asia beat", 0, "2000-01-01 09:07:00 +09:00 failed", "2000-01-01 00:20:00Z succeeded")
		wantLines(t, p, "status asia --tz UTC", 0, "2000-01-01 00:07:00Z failed")

		var healthy host.Program
		healthy.Store, healthy.Work = &local.Memory{}, work()[:1]
		run(t.Context(), healthy, "tick")
		wantLines(t, healthy, "status --failing --exit-code", 0, "1 job, none in trouble\n")
		wantLines(t, healthy, "status --failing --json", 0, `"jobs": []`)
		healthy.Store = down() // nobody knows
		wantLines(t, healthy, "status --failing", 1, "1 job, 1 in trouble\n", "beat  unknown", "\nbeat: no route to the storage\n")
	})
}

// A difference that concerns all of 500 jobs is one line, even where each has it in its own way.
func TestDifferenceOfAllIsOneLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := host.Program{Store: &local.Memory{}}
		for i := range 500 {
			p.Work = append(p.Work, soloist.Job{Name: fmt.Sprintf("job-%03d", i), Schedule: fmt.Sprintf("%d %d * * *", i%60, i/60), Do: do})
		}
		servedFor(t, 3*time.Second, p)
		environment(t, "SOLOIST_LEASE=20s")
		for i := range p.Work {
			j := p.Work[i].(soloist.Job)
			j.TimeZone = "Asia/Tokyo"
			p.Work[i] = j
		}
		got := run(t.Context(), p, "status").out
		_, notes, _ := strings.Cut(got[strings.Index(got, "REPLICA"):], "\n\n")
		goldenWant(t, "the notes", notes, `
			job-000, job-001, job-002, job-003, job-004, 495 others: this environment's
			  schedule is not the one in force, in 500 ways: see status JOB
			job-000, job-001, job-002, job-003, job-004, 495 others: schedules differ, in
			  500 ways: see status JOB
			job-000, job-001, job-002, job-003, job-004, 495 others: settings differ: Lease
			  20s in this environment; Lease 30s on
			  replica-with-a-name-as-platforms-give-them-7c9f8d6b5-x2x4z
		`)
		wantLines(t, p, "status job-007", 0, "schedules differ: CRON_TZ=Asia/Tokyo 7 0 * * * ")
	})
}

// Ten thousand jobs have a row each, and few notes.
func TestStatusOfManyJobs(t *testing.T) {
	environment(t)
	p := host.Program{Store: &local.Memory{Now: spring}, Now: spring}
	for i := range 10_000 {
		p.Work = append(p.Work, soloist.Job{Name: fmt.Sprintf("job-%04d", i), Schedule: "@hourly", Do: do})
	}
	for i := range 200 {
		put(t, p.Store, fmt.Sprintf("demo/job-%04d", i), fmt.Sprintf(`{"schema":1,"app":"other-%d","job":"x","token":1,"created":"2026-01-01T00:00:00Z","watermark":"2026-01-01T00:00:00Z","run":{"status":"idle"}}`, i), false)
	}
	got := run(t.Context(), p, "status")
	wantEqual(t, "rows", strings.Count(got.out, "\njob-"), 10_000+20)
	wantText(t, "status", got.out, "10000 jobs, 200 in trouble\n", "\nand 180 more notes: see status JOB, or status --json\n")
	wantEqual(t, "code", got.code, 1)
	if n := widest(got.out); n > 80 {
		t.Errorf("got %d columns", n)
	}
}

// Whoever starts a program at a terminal sees where it listens, what runs and when, and then a line for each run.
func TestFirstMinute(t *testing.T) {
	defer func(zone *time.Location) { time.Local = zone }(time.Local)
	time.Local = time.UTC
	bubble(t, []string{"NO_COLOR=1", "CONTAINER_APP_REPLICA_NAME=a", "COLUMNS=60", "SOLOIST_JOB_REST_PAUSED=true", "SOLOIST_JOB_NIGHT_REPORT_SCHEDULE=@every 1d"}, func(t *testing.T) {
		var log noted
		p := host.OnTerminal(host.Program{Store: &local.Memory{}, Stdout: lines{&log}, Work: append(work()[:2], chain()[1].(soloist.Job),
			soloist.Job{Name: "import", Schedule: "@every 10m", Do: do}, soloist.Job{Name: "rest", Schedule: "@hourly", Do: do},
			soloist.Job{Name: "hand", Schedule: "@manual", Do: do}, soloist.Singleton{Name: "leader", Do: untilStopped})})
		stop, code := serveOn(t, p, newPiped())
		time.Sleep(62 * time.Second)
		synctest.Wait()
		said := log.all()
		stop()
		<-code
		var got strings.Builder
		for _, line := range said {
			if at, text, _ := strings.Cut(line, " "); strings.Count(at, ":") == 2 {
				line = text
			}
			got.WriteString(line + "\n")
		}
		goldenWant(t, "the log", got.String(), `
			INF listening on http://127.0.0.1:8080/
			    app demo, replica a, records in *local.Memory
			    NAME          NEXT                SCHEDULE
			    leader        all the time        (singleton)
			    beat          00:01 in 1m         every minute, counted…
			    import        00:10 in 10m        every 10 minutes, cou…
			    rest          paused              every hour, UTC
			    night-report  Jan 2 00:00 in 24h  every day, counted fr…
			    report        after import        after import
			    hand          by hand             by hand alone
			INF beat succeeded in 0s
		`)
	})
}

// lines is a writer that keeps what is written as lines.
type lines struct{ to *noted }

func (l lines) Write(b []byte) (int, error) {
	for line := range strings.Lines(string(b)) {
		l.to.add(strings.TrimSuffix(line, "\n"))
	}
	return len(b), nil
}

// A host of the storage that there is not is told at once, whoever asks, and no command waits for long.
func TestHostOfStorageThatThereIsNot(t *testing.T) {
	for name, test := range map[string]struct {
		look func(context.Context) azure.Finding
		want string
	}{
		"a slip": {func(context.Context) azure.Finding {
			return azure.Finding{Fails: true, Text: "shpostore.example cannot be looked up: no such\x1b host", Advice: "check the name of the account"}
		}, "shpostore.example cannot be looked up: no such"},
		"no answer": {func(ctx context.Context) azure.Finding { time.Sleep(time.Minute); return azure.Finding{Fails: true} },
			"the host of "},
		"it is there": {func(context.Context) azure.Finding { return azure.Finding{Text: "fine"} }, ""},
	} {
		bubble(t, []string{"SOLOIST_LOG_FORMAT=text"}, func(t *testing.T) {
			later := func(context.Context) azure.Finding { t.Error("more is asked for"); return azure.Finding{} }
			p := host.Program{Work: work()[:1], Store: examined{deletes{newGated(&local.Memory{}, nil)}, []azure.Check{{Name: "dns", Do: test.look}, {Name: "service", Do: later}}}}
			for _, command := range []string{"tick", "status", "pause beat"} {
				begin := time.Now()
				got := run(t.Context(), p, strings.Fields(command)...)
				if told := test.want != ""; strings.Count(got.err, test.want) != 1 && told || !told && strings.Contains(got.err, "host") {
					t.Errorf("%s: %s: got %+v, want %q once", name, command, got, test.want)
				}
				wantPlain(t, command, got.err)
				wantTook(t, begin, 0, 5*time.Second)
			}
			time.Sleep(time.Minute)
		})
	}
}

// Days can be said wherever a span is.
func TestDaysInSpans(t *testing.T) {
	bubble(t, []string{"SOLOIST_HISTORY=1d12h", "SOLOIST_SWEEP=30d", "SOLOIST_JOB_BEAT_SCHEDULE=@every 1d12h"}, func(t *testing.T) {
		p := host.Program{Work: work()[:1], Store: &local.Memory{}}
		run(t.Context(), p, "tick")
		wantLines(t, p, "next beat -n 1", 0, "text: @every 36h0m0s\n")
		for _, command := range []string{"validate", "history --since 1d12h", "sweep --unused 1d12h", "audit --since 2d1h"} {
			wantLines(t, p, command, 0)
		}
		wantLines(t, p, "pause beat --until 1d12h", 0, "until 2000-01-02 12:00:00Z")
		t.Setenv("SOLOIST_HISTORY", "1.5d")
		wantLines(t, p, "validate", 2, "SOLOIST_HISTORY is \"1.5d\": want ")
	})
}

// Of what is watched and in trouble, its end is told too, and nothing of the others.
func TestWatchOfFailing(t *testing.T) {
	bubble(t, []string{"CONTAINER_APP_REPLICA_NAME=a"}, func(t *testing.T) {
		runs := 0
		once := soloist.Job{Name: "once", Schedule: "@every 1m", Do: func(context.Context, *soloist.Run) error {
			if runs++; runs == 1 {
				return errors.New("no paper")
			}
			return nil
		}}
		p := host.Program{Store: &local.Memory{}, Work: []soloist.Work{once, soloist.Job{Name: "beat", Schedule: "@every 1m", Do: do}}}
		time.Sleep(500 * time.Millisecond)
		end := watching(t, p, "--failing", "--tz", "Asia/Tokyo")
		for range 4 {
			run(t.Context(), p, "tick")
			time.Sleep(time.Minute)
		}
		goldenWant(t, "status --watch --failing", end().out, `
			2000-01-01 09:01:02 +09:00  once  failing x1; last 2000-01-01 09:01:00 +09:00 failed (no paper) on a, 2s ago
			2000-01-01 09:02:02 +09:00  once  idle; last 2000-01-01 09:02:00 +09:00 succeeded on a, 2s ago
		`)
	})
}
