package host_test

import (
	"encoding/json"
	"slices"
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
func fleetOf(t *testing.T, text string) (states, differs []string) {
	t.Helper()
	var answer struct {
		Replicas []struct{ Replica, State, Health, Platform string }
		Differs  []string
		Jobs     []struct {
			Job, State string
			Differs    []string
		}
	}
	if err := json.Unmarshal([]byte(text), &answer); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
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
		stopA, stopB := beginServing(t, p, replicaName+"a", "CONTAINER_APP_NAME=demo", "CONTAINER_APP_REVISION=demo--1"), beginServing(t, p, replicaName+"b", "KUBERNETES_SERVICE_HOST=10.0.0.1")
		time.Sleep(62 * time.Second)
		stopB()
		time.Sleep(8 * time.Second)
		environment(t)
		wantRun(t, p, "status", 0, `
			app demo on *local.Memory, 2000-01-01 00:01:10Z

			NAME   SCHEDULE         STATE         LAST  NEXT                         COUNTS
			cache  every hour, UTC  each replica  -     2000-01-01 01:00:00Z in 58m  -

			REPLICA  STATE  VERSION  PLATFORM        SEEN      SKEW
			a        up     demo--1  Container Apps  1m9s ago  -
			b        left   -        Kubernetes      8s ago    -
		`)
		stopA()
		time.Sleep(24 * time.Hour)
		states, _ := fleetOf(t, run(t.Context(), p, "status", "--json").out)
		wantEqual(t, "with no replica up", strings.Join(states, ", "), "a left ok, b left ok")
	})
}

// An operator's environment, and replicas among each other, may have other settings.
func TestStatusComparesReplicas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := host.Program{Work: work()[:2], Store: &local.Memory{}}
		status := func(p host.Program, settings ...string) (states, differs []string) {
			environment(t, settings...)
			return fleetOf(t, run(t.Context(), p, "status", "--json").out)
		}
		want := func(what string, got []string, want ...string) {
			t.Helper()
			if !slices.Equal(got, want) {
				t.Errorf("%s: got %q, want %q", what, got, want)
			}
		}
		stopA := beginServing(t, p, replicaName+"a")
		time.Sleep(3 * time.Second)
		_, got := status(p)
		want("the same", got)
		_, got = status(p, "SOLOIST_JOB_BEAT_SCHEDULE=*/5 * * * *", "SOLOIST_LEASE=20s")
		want("another schedule", got,
			"beat idle: this environment's schedule (every 5 minutes, UTC) is not the one in force, whose next tick is 2000-01-01 00:01:00Z",
			"beat idle: schedules differ: CRON_TZ=UTC */5 * * * * in this environment; @every 1m0s on a",
			"beat idle: settings differ: lease 20s in this environment; lease 30s on a",
			"night-report idle: settings differ: lease 20s in this environment; lease 30s on a")
		wantLines(t, p, "status", 0, "beat          (differs)  ")
		_, got = status(p, "SOLOIST_JOB_BEAT_PAUSED=true")
		want("a pause that is not in force", got, "beat idle: paused by settings: true in this environment; false on a")

		more := host.Program{Work: append(work()[:2], soloist.Job{Name: "extra", Schedule: "@hourly", Do: do}), Store: p.Store}
		stopB := beginServing(t, more, replicaName+"b", "SOLOIST_JOB_BEAT_PAUSED=true")
		time.Sleep(3 * time.Second)
		_, got = status(p)
		want("another program", got, "jobs differ: extra known on b, and not in this environment and on a",
			"beat paused: paused by settings: false in this environment and on a; true on b")
		_, got = status(more)
		want("another program, from the other side", got,
			"beat paused: paused by settings: false in this environment and on a; true on b", "extra idle: not known on a")
		stopA()
		_, got = status(more, "SOLOIST_JOB_BEAT_PAUSED=true")
		want("a replica that has left does not count", got)
		time.Sleep(time.Second)
		stopB()
		_, got = status(p)
		want("the last one counts", got, "jobs differ: extra known on b, and not in this environment",
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

// strangers is a document of replicas, one of which a hostile program has written.
func strangers(t *testing.T, backend store.Documenter) {
	t.Helper()
	now := spring().UTC().Format(time.RFC3339)
	one := func(health string) map[string]any {
		return map[string]any{"id": hostile, "started": now, "seen": now, "every": 120, "health": health, "reasons": []string{hostile},
			"version": hostile, "revision": hostile, "platform": hostile, "work": hostile}
	}
	body, err := json.Marshal(map[string]any{"schema": 1, "app": "demo", "replicas": map[string]any{hostile: one(hostile), "a": one("ok")},
		"work": map[string]any{hostile: map[string]any{hostile: map[string]any{"schedule": hostile}, "beat": map[string]any{"schedule": hostile, "other": hostile}}}})
	if err == nil {
		_, err = backend.WriteDocument(t.Context(), "demo/.replicas", "", body)
	}
	must(t, err)
}

// What replicas say of themselves moves no cursor, and reaches the page as text.
func TestReplicasAreEscaped(t *testing.T) {
	environment(t)
	backend := rested(t)
	strangers(t, backend)
	p := host.Program{Work: work(), Store: backend}
	for _, command := range []string{"status", "status --json"} {
		got := run(t.Context(), p, strings.Fields(command)...)
		wantText(t, command, got.out, "schedules differ")
		if command == "status" {
			wantPlain(t, command, got.out)
		}
	}
	s := open(t, p)
	described := described(t, s)
	for _, path := range []string{"/api/v1/replicas", "/api/v1/jobs", "/api/v1/jobs/beat", "/api/v1/app"} {
		got := s.get(path)
		described.wantAsDescribed(t, "GET", path, got)
		wantAnswer(t, path, got, 200, `"replica":"a","state":"up","health":"ok"`)
		if strings.ContainsAny(got.Body.String(), "<>\x1b") {
			t.Errorf("%s: got %s", path, got.Body)
		}
	}
}

// A document that is none is told and not overwritten, and hinders nothing.
func TestDocumentThatHasNoReplicas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		environment(t)
		backend := &local.Memory{}
		if _, err := backend.WriteDocument(t.Context(), "demo/.replicas", "", []byte("<html>\x1b")); err != nil {
			t.Fatal(err)
		}
		p := host.Program{Work: work()[:1], Store: backend}
		stop := beginServing(t, p)
		time.Sleep(61 * time.Second)
		got := run(t.Context(), p, "status")
		got.wants(t, "status", 0, "correct or delete demo/.replicas", "1 succeeded")
		wantPlain(t, "status", got.out)
		s := open(t, p)
		wantAnswer(t, "page", s.get("/api/v1/jobs"), 200, `"replicas":[]`, "the replicas cannot be shown: correct or delete demo/.replicas: ")
		wantAnswer(t, "replicas", s.get("/api/v1/replicas"), 200, `"replicas":[]}`)
		stop()
	})
}

// Open pages read the replicas once in five seconds, however many they are, and a beat of a
// replica is no news for them.
func TestPagesReadReplicasSeldom(t *testing.T) {
	bubble(t, []string{replicaName + "page"}, func(t *testing.T) {
		var reads atomic.Int64
		backend := newGated(&local.Memory{}, func(op, name string) error {
			if op == "read document" && strings.HasSuffix(name, "/.replicas") {
				reads.Add(1)
			}
			return nil
		})
		p := host.Program{Work: obedient()[:1], Store: backend}
		s := open(t, p)
		stop := beginServing(t, p, "SOLOIST_PRESENCE=10s", "SOLOIST_GRACE=1s", replicaName+"b")
		time.Sleep(62 * time.Second)
		var all []*watcher
		for range 50 {
			all = append(all, watch(s, ""))
		}
		time.Sleep(time.Second)
		told := len(all[0].news())
		reads.Store(0)
		time.Sleep(50 * time.Second) // the job runs, so the record is read all the time
		// Five to seven of them are those of the beats.
		if got := reads.Load(); got > 10+7 || got < 10 {
			t.Errorf("the replicas were read %d times in 50 s", got)
		}
		wantEqual(t, "messages in 50 s without news", len(all[0].news())-told, 0)
		stop()
		time.Sleep(15 * time.Second)
		news := all[0].news()
		wantText(t, "the last message", news[len(news)-1].data, `"replica":"b","state":"left"`)
		for _, w := range all {
			w.stop()
			<-w.ended
		}
	})
}
