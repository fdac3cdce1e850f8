package host_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
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
		p := split(&runsLog{})
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
		s.wait()
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

func TestPauseTellsWhatItReplaces(t *testing.T) {
	environment(t)
	synctest.Test(t, func(t *testing.T) {
		p := steered(&runsLog{})
		wantLines(t, p, "pause beat --until 90m --reason disk --by ann", 0, "beat: paused by ann until 2000-01-01 01:30:00Z, in 1h30m")
		const replaced = "this takes the place of the pause by ann until 2000-01-01 01:30:00Z: disk"
		wantLines(t, p, "pause beat --by bob --json", 0, replaced, `"by": "bob"`)
		wantLines(t, p, "pause beat --by eve", 0, "the place of the pause by bob until a resume: no reason given")
		if got := run(t.Context(), p, "pause", "sad"); strings.Contains(got.err, "takes the place") {
			t.Errorf("a first pause: got %+v", got)
		}
	})
}

// Rules of time zones change: whoever asks about ticks in a zone sees how old the rules are.
func TestZoneDataAreTold(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "+VERSION"), []byte("2024b\n"), 0o600); err != nil {
		t.Fatal(err)
	}
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
	environment(t)
	synctest.Test(t, func(t *testing.T) {
		deaf := soloist.Job{Name: "deaf", Schedule: "@every 1h", Timeout: 10 * time.Second, Do: func(context.Context, *soloist.Run) error { time.Sleep(100 * time.Second); return nil }}
		tries := soloist.Job{Name: "tries", Schedule: "@every 1h", Timeout: 10 * time.Second, Retry: soloist.Retry{MaxTries: 3}, Do: deaf.Do}
		p := host.Program{Store: &local.Memory{}, Work: []soloist.Work{deaf, tries}}
		defer replica(t, p, "replica-a")()
		time.Sleep(time.Hour + 9*time.Second)
		status := func(want ...string) {
			t.Helper()
			got := run(t.Context(), p, "status").out
			for _, text := range want {
				if !strings.Contains(got, text) {
					t.Errorf("got %s, want %q", got, text)
				}
			}
		}
		status("running on replica-a since 8s  ")
		time.Sleep(82 * time.Second)
		status("running on replica-a since 1m30s, over its time-out by 1m20s  ", "running on replica-a since 1m30s  ")
		s := open(t, p)
		wantAnswer(t, "the list", s.get("/api/v1/jobs?trouble=true"), 200, `"matched":1`, `"job":"deaf"`, `"timesOut":"2000-01-01T01:00:1`)
		s.wait()
		time.Sleep(time.Minute)
		status("succeeded in 1m40s (after the end of its context: timed out after 10s) on replica-a")
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
					s.wait()
				}
				mine.set(func(string, string) error { return nil })
				time.Sleep(2 * time.Minute)
				wantLines(t, p, "status", 0, "a        up ")
			})
		})
	}
}

// A job that has no record yet can be tried out: the record is made.
func TestRunHereMakesRecord(t *testing.T) {
	environment(t)
	synctest.Test(t, func(t *testing.T) {
		runs := &runsLog{}
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
