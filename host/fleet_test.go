package host_test

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host"
	"github.com/soloist-go/soloist/host/local"
)

// beginServing starts a replica with these settings. stop stops it in an orderly way.
func beginServing(t *testing.T, p host.Program, settings ...string) (stop func()) {
	t.Helper()
	environment(t, settings...)
	cancel, code := serveOn(t, p, newPiped())
	synctest.Wait() // it has read its settings
	return func() { cancel(); wantCode(t, <-code, 0) }
}

const replicaName = "CONTAINER_APP_REPLICA_NAME="

// fleetOf are the states of the replicas and what differs, as status --json tells them.
func fleetOf(t *testing.T, p host.Program) (states, differs []string) {
	t.Helper()
	var answer struct {
		Replicas []struct{ Replica, State, Health string }
		Differs  []string
		Jobs     []struct {
			Job, State string
			Differs    []string
		}
	}
	must(t, json.Unmarshal([]byte(call(t, p, "status --json").out), &answer))
	for _, r := range answer.Replicas {
		states = append(states, r.Replica+" "+r.State+" "+r.Health)
	}
	differs = answer.Differs
	for _, j := range answer.Jobs {
		for _, text := range j.Differs {
			differs = append(differs, j.Job+" "+j.State+": "+text)
		}
	}
	return states, differs
}

func TestStatusShowsReplicas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := host.Program{Work: here()[:1], Store: &local.Memory{}}
		stopA := beginServing(t, p, replicaName+"a", "CONTAINER_APP_NAME=demo", "CONTAINER_APP_REVISION=demo--1")
		time.Sleep(2 * time.Second) // two that write at one instant would do so in any order
		stopB := beginServing(t, p, replicaName+"b", "KUBERNETES_SERVICE_HOST=10.0.0.1")
		time.Sleep(60 * time.Second)
		stopB()
		time.Sleep(8 * time.Second)
		environment(t)
		wantRun(t, p, "status", 0, `
			app demo on *local.Memory, 2000-01-01 00:01:10Z
			1 job, none in trouble

			NAME   STATE         LAST  NEXT          SCHEDULE         COUNTS
			cache  each replica  -     01:00 in 58m  every hour, UTC  -

			REPLICA  STATE  VERSION  PLATFORM        SEEN      SKEW
			a        up     demo--1  Container Apps  1m9s ago  -
			b        left   -        Kubernetes      8s ago    -
		`)
		stopA()
		time.Sleep(24 * time.Hour)
		states, _ := fleetOf(t, p)
		wantEqual(t, "with no replica up", states, []string{"a left ok", "b left ok"})
	})
}

// An operator's environment, and replicas among each other, may have other settings.
func TestStatusComparesReplicas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := host.Program{Work: work()[:2], Store: &local.Memory{}}
		// want wants these differences to be told in an environment with these settings.
		want := func(what string, p host.Program, settings []string, want ...string) {
			t.Helper()
			environment(t, settings...)
			_, differs := fleetOf(t, p)
			wantEqual(t, what, differs, want)
		}
		stopA := beginServing(t, p, replicaName+"a")
		time.Sleep(3 * time.Second)
		want("the same", p, nil)
		want("another schedule", p, []string{"SOLOIST_JOB_BEAT_SCHEDULE=*/5 * * * *", "SOLOIST_LEASE=20s"},
			"beat idle: this environment's schedule is not the one in force: every 5 minutes, UTC here; the next tick of that is 2000-01-01 00:01:00Z",
			"beat idle: schedules differ: CRON_TZ=UTC */5 * * * * in this environment; @every 1m0s on a",
			"beat idle: settings differ: Lease 20s in this environment; Lease 30s on a",
			"night-report idle: settings differ: Lease 20s in this environment; Lease 30s on a")
		wantLines(t, p, "status", 0, "in 57s    (differs)\n")
		want("a pause that is not in force", p, []string{"SOLOIST_JOB_BEAT_PAUSED=true"}, "beat idle: paused by settings: true in this environment; false on a")

		more := host.Program{Work: append(work()[:2], soloist.Job{Name: "extra", Schedule: "@hourly", Do: do}), Store: p.Store}
		stopB := beginServing(t, more, replicaName+"b", "SOLOIST_JOB_BEAT_PAUSED=true")
		time.Sleep(3 * time.Second)
		want("another program", p, nil, "jobs differ: extra known on b, and not in this environment and on a",
			"beat paused: paused by settings: false in this environment and on a; true on b")
		want("another program, from the other side", more, nil,
			"beat paused: paused by settings: false in this environment and on a; true on b", "extra idle: not known on a")
		stopA()
		want("a replica that has left does not count", more, []string{"SOLOIST_JOB_BEAT_PAUSED=true"})
		time.Sleep(time.Second)
		stopB()
		want("the last one counts", p, nil, "jobs differ: extra known on b, and not in this environment",
			"beat paused: paused by settings: false in this environment; true on b")
	})
}

// Without a receiver of alerts, and with a presence of 0, no document of them is read or written.
func TestDocumentsThatAreOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		backend := newGated(&local.Memory{}, func(op, name string) error {
			if strings.HasSuffix(name, "/.replicas") || strings.Contains(name, "alerts") {
				t.Errorf("%s of %s", op, name)
			}
			return nil
		})
		p := host.Program{Work: append(work(), soloist.Job{Name: "sad", Schedule: "@every 1m", Do: fail}), Store: backend}
		stop := beginServing(t, p, "SOLOIST_PRESENCE=0")
		time.Sleep(10 * time.Minute)
		run(t.Context(), p, "status")
		stop()
	})
}

// foreign is a store in which a replica of another program has written what it is and its jobs.
func foreign(t *testing.T, backend *local.Memory, replicas, work map[string]any) *local.Memory {
	t.Helper()
	body, err := json.Marshal(map[string]any{"schema": 1, "app": "demo", "replicas": replicas, "work": work})
	must(t, err)
	_, err = backend.WriteDocument(t.Context(), "demo/.replicas", "", body)
	must(t, err)
	return backend
}

// What replicas say of themselves moves no cursor, and reaches the page as text.
func TestReplicasAreEscaped(t *testing.T) {
	environment(t)
	now := spring().UTC().Format(time.RFC3339)
	one := func(health string) map[string]any {
		return map[string]any{"id": hostile, "started": now, "seen": now, "every": 120, "health": health, "reasons": []string{hostile},
			"version": hostile, "revision": hostile, "platform": hostile, "work": hostile}
	}
	p := host.Program{Work: work(), Store: foreign(t, rested(t), map[string]any{hostile: one(hostile), "a": one("ok")},
		map[string]any{hostile: map[string]any{hostile: map[string]any{"schedule": hostile}, "beat": map[string]any{"schedule": hostile, "other": hostile}}})}
	wantLines(t, p, "status --json", 0, "schedules differ")
	wantPlain(t, "status", wantLines(t, p, "status", 0, "schedules differ").out)
	s := open(t, p)
	described := described(t, s)
	for _, path := range []string{"/api/v1/replicas", "/api/v1/jobs", "/api/v1/jobs/beat", "/api/v1/app"} {
		got := s.get(path)
		described.wantAsDescribed(t, "GET", path, got)
		wantAnswer(t, path, got, 200, `"replica":"a","state":"up","health":"ok"`, "!<", "!>", "!\x1b")
		// Elsewhere each write of a replica would be news.
		wantEqual(t, path+" tells when they wrote", strings.Contains(got.Body.String(), `"seen":`), path == "/api/v1/replicas")
	}
}

// A document that is none is told and not overwritten, and hinders nothing.
func TestDocumentThatHasNoReplicas(t *testing.T) {
	bubble(t, nil, func(t *testing.T) {
		backend := &local.Memory{}
		_, err := backend.WriteDocument(t.Context(), "demo/.replicas", "", []byte("<html>\x1b"))
		must(t, err)
		p := host.Program{Work: work()[:1], Store: backend}
		defer beginServing(t, p)()
		time.Sleep(61 * time.Second)
		wantPlain(t, "status", wantLines(t, p, "status", 0, "correct or delete demo/.replicas", "succeeded, 0s ago").out)
		s := open(t, p)
		wantAnswer(t, "page", s.get("/api/v1/jobs"), 200, `"replicas":[]`, "the replicas cannot be shown: correct or delete demo/.replicas: ")
		wantAnswer(t, "replicas", s.get("/api/v1/replicas"), 200, `"replicas":[]}`)
	})
}

// A difference between replicas is printed once, however many jobs have it. For a job with shards it is one of each shard,
// and makes none of them unknown.
func TestDifferencesAreToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := split(&noted{})
		for i := range 30 {
			p.Work = append(p.Work, soloist.Job{Name: fmt.Sprintf("job-%02d", i), Schedule: "@hourly", Do: do})
		}
		defer beginServing(t, p, replicaName+"a")()
		time.Sleep(3 * time.Second)
		environment(t, "SOLOIST_LEASE=20s", "SOLOIST_JOB_IMPORT_PAUSED=true", "COLUMNS=200")
		got := wantLines(t, p, "status", 0, "!not known on", "!  paused  ",
			"\nimport: paused by settings: true in this environment; false on a\n",
			"\nimport: settings differ: Lease 20s, Shards 3 in this environment; Lease 30s, Shards 3 on a\n",
			"\nfeed: settings differ: singleton, Shards 2, Lease 20s in this environment; singleton, Shards 2, Lease 30s on a\n",
			"\njob-00, job-01, job-02, job-03, job-04, 25 others: settings differ: Lease 20s in this environment; Lease 30s on a\n")
		wantEqual(t, "differences", strings.Count(got.out, "in this environment;"), 4)
		wantAnswer(t, "the list", open(t, p).get("/api/v1/jobs?limit=1"), 200, `"jobs":35`, `"matched":35`)
	})
}

// Rules of time zones change: whoever asks about ticks in a zone sees how old the rules are.
func TestZoneDataAreTold(t *testing.T) {
	dir := t.TempDir()
	file(t, filepath.Join(dir, "+VERSION"), "2024b\n")
	environment(t, "ZONEINFO="+dir)
	p := host.Program{Work: work(), Store: &local.Memory{}, Now: spring}
	call(t, p, "tick")
	want := "zone data 2024b, 2 years old, in " + dir
	for _, command := range []string{"status", "next", "next night-report", "next beat --tz Asia/Tokyo", "doctor", "status --json", "next --json"} {
		wantEqual(t, command, strings.Count(call(t, p, command).out, want), 1)
	}
	p.Work = work()[:1]
	for _, command := range []string{"status", "next", "next --json"} {
		wantLines(t, p, command, 0, "!"+dir) // of jobs in UTC
	}
}

// A run that goes on after its time-out is in trouble while it does, and both facts are in its outcome.
func TestRunOverItsTimeout(t *testing.T) {
	bubble(t, nil, func(t *testing.T) {
		t.Setenv("COLUMNS", "200")
		deaf := soloist.Job{Name: "deaf", Schedule: "@every 1h", Timeout: 10 * time.Second, Do: func(context.Context, *soloist.Run) error { time.Sleep(100 * time.Second); return nil }}
		tries := soloist.Job{Name: "tries", Schedule: "@every 1h", Timeout: 10 * time.Second, Retry: soloist.Retry{MaxTries: 3}, Do: deaf.Do}
		p := host.Program{Store: &local.Memory{}, Work: []soloist.Work{deaf, tries}}
		defer replica(t, p, "replica-a")()
		matches := func(patterns ...string) { // a run begins at its tick or in the second after that
			t.Helper()
			for _, pattern := range patterns {
				if got := run(t.Context(), p, "status").out; !regexp.MustCompile(pattern).MatchString(got) {
					t.Errorf("got no %s in %s", pattern, got)
				}
			}
		}
		time.Sleep(time.Hour + 9*time.Second)
		matches("running on replica-a since [89]s  ")
		time.Sleep(82 * time.Second)
		matches("running on replica-a since 1m3[01]s, over its time-out by 1m2[01]s  ", "running on replica-a since 1m3[01]s  ")
		s := open(t, p)
		wantAnswer(t, "the list", s.get("/api/v1/jobs?trouble=true"), 200, `"matched":1`, `"job":"deaf"`, `"timesOut":"2000-01-01T01:00:1`)
		s.wait()
		time.Sleep(time.Minute)
		wantLines(t, p, "status deaf", 0, "succeeded in 1m40s (after the end of its context: timed out after 10s) on replica-a")
	})
}

// A replica whose run was interrupted is not up until it writes again.
func TestReplicaOfInterruptedRunIsLost(t *testing.T) {
	for _, test := range []struct {
		interrupted soloist.InterruptedPolicy
		other       bool // another replica is up
	}{{"", true}, {soloist.Rerun, true}, {"", false}} {
		synctest.Test(t, func(t *testing.T) {
			mine := newGated(&local.Memory{}, nil)
			long := soloist.Job{Name: "long", Schedule: "@every 1h", Interrupted: test.interrupted, Do: untilStopped}
			p := host.Program{Store: mine.Store, Work: []soloist.Work{long}}
			defer beginServing(t, host.Program{Store: mine, Work: p.Work}, replicaName+"a")()
			time.Sleep(time.Hour + 5*time.Second)
			if test.other {
				defer beginServing(t, p, replicaName+"b")()
			}
			environment(t)
			time.Sleep(8 * time.Minute)
			wantLines(t, p, "status", 0, "running on a since 8m", "a        up ")
			mine.set(refuse(errDown))
			time.Sleep(50 * time.Second)
			got := wantLines(t, p, "status", 0, "a        lost ").out
			if !test.other {
				if !regexp.MustCompile(`interrupted since (\d+s|[12]m(\d+s)?) `).MatchString(got) {
					t.Errorf("got %s, want it since the last sign of the replica", got)
				}
				wantAnswer(t, "replicas", open(t, p).get("/api/v1/replicas"), 200, `"replica":"a","state":"lost"`)
			}
			mine.set(nil)
			time.Sleep(2 * time.Minute)
			wantLines(t, p, "status", 0, "a        up ")
		})
	}
}

// Two programs under one name of an app take each other's ticks of a job that both have: log, doctor, status and page say it.
// Another version of this program has the same path, and is meant; doctor says what differs in it.
func TestProgramsWithOneApp(t *testing.T) {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Path == "" {
		t.Fatal("the path of this program is not known")
	}
	const says = "several programs use this app and take each other's ticks of "
	for _, test := range []struct{ program, job, want string }{
		{"example.com/billing", "beat", says + "beat: "},
		{"example.com/billing", "invoice", "!" + says},
		{"example.com/billing", "cache", "!" + says}, // which each replica runs for itself
		{info.Path, "beat", "!" + says},
		{"", "beat", "!" + says},
	} {
		bubble(t, []string{replicaName + "a", "SOLOIST_PRESENCE=10s", "COLUMNS=300"}, func(t *testing.T) {
			now, minutely := time.Now().UTC().Format(time.RFC3339), map[string]any{"schedule": "@every 1m0s"}
			p := host.Program{Work: here(), Store: foreign(t, &local.Memory{},
				map[string]any{"b": map[string]any{"id": "b", "started": now, "seen": now, "every": 1200, "health": "ok",
					"version": "v9", "program": test.program, "work": "w"}},
				map[string]any{"w": map[string]any{test.job: minutely, "ship": minutely}})}
			var log strings.Builder
			serving := p
			serving.Stdout = &log
			stop, code := serveOn(t, serving, newPiped())
			time.Sleep(3 * time.Minute)
			wantLines(t, p, "doctor", 0, test.want, "ship known on b, and not in this environment")
			wantLines(t, p, "status", 0, test.want)
			s := open(t, p)
			wantAnswer(t, "page", s.get("/api/v1/jobs"), 200, test.want)
			s.wait()
			stop()
			<-code
			wantText(t, "log", log.String(), test.want)
			wantWithin(t, "lines of the log", strings.Count(log.String(), says), 0, 1)
		})
	}
}

// A singleton waits at its stop for another replica if there is one, or nobody knows. One that is started just before
// the stop counts.
func TestLoneSingletonEndsAtOnce(t *testing.T) {
	for _, test := range []struct {
		setting string
		others  int
		takes   time.Duration
	}{
		{"SOLOIST_PRESENCE=2m", 0, 0},
		{"SOLOIST_PRESENCE=2m", 1, 11 * time.Second},
		{"SOLOIST_PRESENCE=0", 0, 11 * time.Second}, // the replicas are not known
	} {
		synctest.Test(t, func(t *testing.T) {
			leader := soloist.Singleton{Name: "leader", Lease: 30 * time.Second, Do: untilCancelled}
			p := host.Program{Work: []soloist.Work{leader}, Store: &local.Memory{}}
			stop := beginServing(t, p, test.setting, replicaName+"a")
			time.Sleep(time.Minute)
			for range test.others {
				defer beginServing(t, p, test.setting, replicaName+"b")()
				time.Sleep(3 * time.Second)
			}
			stopped := time.Now()
			stop()
			wantEqual(t, fmt.Sprintf("the stop with %+v took", test), time.Since(stopped).Truncate(time.Second), test.takes)
			wantLines(t, p, "history leader", 0, "abandoned", "stopped")
		})
	}
}
