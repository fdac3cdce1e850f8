package host_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
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

// A setting that differs does so for each shard, and makes none of them unknown.
func TestShardsOfReplicasWithOtherSettings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := split(&noted{})
		defer beginServing(t, p, replicaName+"a")()
		time.Sleep(3 * time.Second)
		environment(t, "SOLOIST_LEASE=20s", "SOLOIST_JOB_IMPORT_PAUSED=true")
		got := run(t.Context(), p, "status").out
		for _, want := range []string{
			"\nimport-0, import-1, import-2: paused by settings: true in this environment; false on a\n",
			"\nimport-0, import-1, import-2: settings differ: shards 3, lease 20s in this environment; shards 3, lease 30s on a\n",
			"\nfeed-0, feed-1: settings differ: singleton, shards 2, lease 20s in this environment; singleton, shards 2, lease 30s on a\n",
		} {
			if strings.Count(got, want) != 1 || strings.Contains(got, "not known") || strings.Contains(got, "  paused  ") {
				t.Errorf("got %s, want once %q", got, want)
			}
		}
		s := open(t, p)
		wantAnswer(t, "the list", s.get("/api/v1/jobs?limit=1"), 200, `"jobs":5`, `"matched":5`)
	})
}

// A difference between replicas is printed once, however many jobs have it.
func TestStatusTellsOneDifferenceOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := host.Program{Store: &local.Memory{}}
		for i := range 30 {
			p.Work = append(p.Work, soloist.Job{Name: fmt.Sprintf("job-%02d", i), Schedule: "@hourly", Do: do})
		}
		defer beginServing(t, p, replicaName+"a")()
		time.Sleep(3 * time.Second)
		environment(t, "SOLOIST_LEASE=20s")
		got := run(t.Context(), p, "status").out
		const want = "\njob-00, job-01, job-02, job-03, job-04, 25 others: settings differ: lease 20s in this environment; lease 30s on a\n"
		if strings.Count(got, "settings differ") != 1 || !strings.Contains(got, want) {
			t.Errorf("got %s, want once %s", got, want)
		}
	})
}

// Rules of time zones change: whoever asks about ticks in a zone sees how old the rules are.
func TestZoneDataAreTold(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "+VERSION"), []byte("2024b\n"), 0o600))
	environment(t, "ZONEINFO="+dir)
	p := host.Program{Work: work(), Store: &local.Memory{}, Now: spring}
	run(t.Context(), p, "tick")
	want := "zone data 2024b, 2 years old, in " + dir
	for _, command := range []string{"status", "next", "next night-report", "next beat --tz Asia/Tokyo", "doctor", "status --json", "next --json"} {
		if got := run(t.Context(), p, strings.Fields(command)...); strings.Count(got.out, want) != 1 {
			t.Errorf("%s: got %s, want %s", command, got.out, want)
		}
	}
	p.Work = work()[:1]
	for _, command := range []string{"status", "next", "next --json"} {
		if got := run(t.Context(), p, strings.Fields(command)...); strings.Contains(got.out, "zone") && strings.Contains(got.out, dir) {
			t.Errorf("%s of jobs in UTC: got %s", command, got.out)
		}
	}
}

// A run that goes on after its time-out is in trouble while it does, and both facts are in its outcome.
func TestRunOverItsTimeout(t *testing.T) {
	bubble(t, nil, func(t *testing.T) {
		deaf := soloist.Job{Name: "deaf", Schedule: "@every 1h", Timeout: 10 * time.Second, Do: func(context.Context, *soloist.Run) error { time.Sleep(100 * time.Second); return nil }}
		tries := soloist.Job{Name: "tries", Schedule: "@every 1h", Timeout: 10 * time.Second, Retry: soloist.Retry{MaxTries: 3}, Do: deaf.Do}
		p := host.Program{Store: &local.Memory{}, Work: []soloist.Work{deaf, tries}}
		defer replica(t, p, "replica-a")()
		time.Sleep(time.Hour + 9*time.Second)
		wantLines(t, p, "status", 0, "running on replica-a since 8s  ")
		time.Sleep(82 * time.Second)
		wantLines(t, p, "status", 0, "running on replica-a since 1m30s, over its time-out by 1m20s  ",
			"running on replica-a since 1m30s  ")
		s := open(t, p)
		wantAnswer(t, "the list", s.get("/api/v1/jobs?trouble=true"), 200, `"matched":1`, `"job":"deaf"`, `"timesOut":"2000-01-01T01:00:1`)
		s.wait()
		time.Sleep(time.Minute)
		wantLines(t, p, "status", 0, "succeeded in 1m40s (after the end of its context: timed out after 10s) on replica-a")
	})
}

// A replica whose run was interrupted is not up until it writes again.
func TestReplicaOfInterruptedRunIsLost(t *testing.T) {
	for _, test := range []struct {
		name        string
		interrupted soloist.InterruptedPolicy
		other       bool // another replica is up
	}{{"settled", "", true}, {"run again", soloist.Rerun, true}, {"alone", "", false}} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				shared := &local.Memory{}
				long := soloist.Job{Name: "long", Schedule: "@every 1h", Interrupted: test.interrupted, Do: untilStopped}
				p := host.Program{Store: shared, Work: []soloist.Work{long}}
				mine := newGated(shared, nil)
				mine.set(func(string, string) error { return nil })
				first := host.Program{Store: mine, Work: p.Work}
				defer beginServing(t, first, replicaName+"a")()
				time.Sleep(time.Hour + 5*time.Second)
				if test.other {
					defer beginServing(t, p, replicaName+"b")()
				}
				environment(t)
				time.Sleep(8 * time.Minute)
				wantLines(t, p, "status", 0, "running on a since 8m", "a        up ")
				mine.set(refuse(errDown))
				time.Sleep(50 * time.Second)
				wantLines(t, p, "status", 0, "a        lost ")
				if !test.other {
					got := run(t.Context(), p, "status").out
					if !regexp.MustCompile(`interrupted since (\d+s|[12]m(\d+s)?) `).MatchString(got) {
						t.Errorf("got %s, want it since the last sign of the replica", got)
					}
					s := open(t, p)
					wantAnswer(t, "replicas", s.get("/api/v1/replicas"), 200, `"replica":"a","state":"lost"`)
				}
				mine.set(func(string, string) error { return nil })
				time.Sleep(2 * time.Minute)
				wantLines(t, p, "status", 0, "a        up ")
			})
		})
	}
}

// withOther returns a store in which a replica of another program, or of another version of this one, is up.
func withOther(t *testing.T, program, job string) *local.Memory {
	t.Helper()
	backend, now := &local.Memory{}, time.Now().UTC().Format(time.RFC3339)
	body, err := json.Marshal(map[string]any{"schema": 1, "app": "demo",
		"replicas": map[string]any{"b": map[string]any{"id": "b", "started": now, "seen": now, "every": 1200, "health": "ok", "version": "v9", "program": program, "work": "w"}},
		"work":     map[string]any{"w": map[string]any{job: map[string]any{"schedule": "@every 1m0s"}, "ship": map[string]any{"schedule": "@every 1m0s"}}}})
	if err == nil {
		_, err = backend.WriteDocument(t.Context(), "demo/.replicas", "", body)
	}
	must(t, err)
	return backend
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
		{"example.com/billing", "invoice", ""},
		{"example.com/billing", "cache", ""}, // which each replica runs for itself
		{info.Path, "beat", ""},
		{"", "beat", ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := host.Program{Work: here(), Store: withOther(t, test.program, test.job)}
			var logged strings.Builder
			serving := p
			serving.Stdout = &logged
			environment(t, replicaName+"a", "SOLOIST_PRESENCE=10s")
			stop, code := serveOn(t, serving, newPiped())
			time.Sleep(3 * time.Minute)
			told := map[string]string{"doctor": run(t.Context(), p, "doctor").out, "status": run(t.Context(), p, "status").out}
			s := open(t, p)
			told["page"] = s.get("/api/v1/jobs").Body.String()
			s.wait()
			stop()
			<-code
			told["log"] = logged.String()
			for who, text := range told {
				if !strings.Contains(text, cmp.Or(test.want, "demo")) || strings.Contains(text, says) != (test.want != "") {
					t.Errorf("%s, with the job %s of %q: got %s, want %q", who, test.job, test.program, text, test.want)
				}
			}
			if want := "ship known on b, and not in this environment"; !strings.Contains(told["doctor"], want) {
				t.Errorf("doctor, with the job %s of %q: got %s, want %q", test.job, test.program, told["doctor"], want)
			}
			if got := strings.Count(told["log"], says); got > 1 {
				t.Errorf("logged %d times", got)
			}
		})
	}
}

// A singleton waits at its stop for another replica if there is one, or nobody knows. One that is started just before
// the stop counts.
func TestLoneSingletonEndsAtOnce(t *testing.T) {
	for name, test := range map[string]struct {
		setting string
		others  int
		takes   time.Duration
	}{
		"alone":                      {"SOLOIST_PRESENCE=2m", 0, 0},
		"another one":                {"SOLOIST_PRESENCE=2m", 1, 11 * time.Second},
		"the replicas are not known": {"SOLOIST_PRESENCE=0", 0, 11 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
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
				wantEqual(t, "the stop took", time.Since(stopped).Truncate(time.Second), test.takes)
				wantText(t, "history", run(t.Context(), p, "history", "leader").out, "abandoned", "stopped")
			})
		})
	}
}
