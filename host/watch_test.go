package host_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host"
	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/store"
)

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
		slow := soloist.Job{Name: "slow", Schedule: "@every 1m", Do: func(context.Context, *soloist.Run) error { time.Sleep(10 * time.Second); return nil }}
		p := host.Program{Work: []soloist.Work{slow}, Store: backend}
		time.Sleep(500 * time.Millisecond) // nothing else happens at the instants at which it reads
		end := watching(t, p)
		time.Sleep(time.Second)
		run(t.Context(), p, "tick")
		time.Sleep(time.Minute)
		run(t.Context(), p, "tick")
		time.Sleep(5 * time.Second)
		backend.away(30 * time.Second)
		time.Sleep(time.Minute)
		got := end()
		goldenWant(t, "status --watch", got.out, `
			2000-01-01 00:00:00Z  slow  no record
			2000-01-01 00:00:02Z  slow  idle
			2000-01-01 00:01:04Z  slow  running on replica-a since 1s
			2000-01-01 00:01:14Z  slow  idle; last 2000-01-01 00:01:00Z succeeded in 10s on replica-a, 14s ago
			2000-01-01 00:01:18Z  slow  unknown; no route to the storage
			2000-01-01 00:01:48Z  slow  idle; last 2000-01-01 00:01:00Z succeeded in 10s on replica-a, 48s ago
		`)
		if got.code != 0 || strings.Contains(got.err, "demo: ") {
			t.Errorf("got %+v, want code 0 at the end of the context", got)
		}
	})
}

func TestWatchInJSON(t *testing.T) {
	bubble(t, nil, func(t *testing.T) {
		p := host.Program{Work: work(), Store: &local.Memory{}}
		end := watching(t, p, "--json")
		time.Sleep(time.Second)
		run(t.Context(), p, "tick")
		time.Sleep(3 * time.Second)
		var got []string
		for line := range strings.Lines(end().out) {
			var answer struct {
				App  string
				Jobs []struct{ Job, State string }
			}
			if err := json.Unmarshal([]byte(line), &answer); err != nil || answer.App != "demo" || len(answer.Jobs) != 1 {
				t.Fatalf("got %s, %v, want one job of demo", line, err)
			}
			got = append(got, answer.Jobs[0].Job+" "+answer.Jobs[0].State)
		}
		want := []string{"beat no record", "night-report no record", "leader no record", "beat idle", "night-report idle"}
		if !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

// leaderOf is who leads by the record: the holder of a live lease that runs.
func leaderOf(t *testing.T, backend store.Store) string {
	t.Helper()
	e, err := backend.Read(t.Context(), "demo/leader")
	if err != nil {
		return ""
	}
	r, err := store.DecodeRecord(e.Record, "demo", "leader")
	must(t, err)
	if r.Run.Status != store.Running || !e.State.Live() {
		return ""
	}
	return r.Run.Replica
}

// While a leader dies and another takes over, status --watch and the page name
// the leader that the record names.
func TestWatchAndPageAgreeThroughDeath(t *testing.T) {
	bubble(t, nil, func(t *testing.T) {
		backend := &local.Memory{}
		leader := soloist.Singleton{Name: "leader", Do: untilCancelled}
		p := host.Program{Work: []soloist.Work{leader}, Store: backend}
		time.Sleep(500 * time.Millisecond)
		page, end := open(t, p), watching(t, p)
		ctx, cancel := context.WithCancel(t.Context())
		var ended []chan error
		wires := map[string]*gated{}
		for _, name := range []string{"replica-a", "replica-b"} {
			wires[name] = newGated(backend, nil)
			s := &soloist.Scheduler{App: "demo", Replica: name, Store: wires[name], Logger: slog.New(slog.DiscardHandler), Singletons: []soloist.Singleton{leader}}
			done := make(chan error, 1)
			ended = append(ended, done)
			go func() { done <- s.Run(ctx) }()
		}
		var want []string
		for range 180 {
			time.Sleep(time.Second)
			who := leaderOf(t, backend)
			if who != "" && !slices.Contains(want, who) {
				want = append(want, who)
			}
			if at := time.Now().Second(); at == 55 && time.Now().Minute() == 0 {
				wires[who].set(refuse(errDown)) // as if it were killed
			}
		}
		last := leaderOf(t, backend)
		if len(want) != 2 || last != want[1] {
			t.Fatalf("the record named %q, and %q at last: want two leaders", want, last)
		}
		wantAnswer(t, "page", page.get("/api/v1/jobs"), 200, `"state":"running","replica":"`+last+`"`)
		var got []string
		for _, m := range regexp.MustCompile(`leader  running on (\S+)`).FindAllStringSubmatch(end().out, -1) {
			got = append(got, m[1])
		}
		if !slices.Equal(got, want) {
			t.Errorf("status --watch named %q, the record %q", got, want)
		}
		cancel()
		for _, done := range ended {
			<-done
		}
	})
}

func TestWrongClockIsTold(t *testing.T) {
	environment(t)
	for _, test := range []struct {
		off  time.Duration
		want string
	}{
		{0, ""},
		{900 * time.Millisecond, ""},
		{-90 * time.Second, "this machine's clock is 1m30s behind the store's"},
		{90 * time.Second, "this machine's clock is 1m30s ahead of the store's"},
	} {
		t.Run(test.off.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				time.Sleep(time.Millisecond) // a date of whole seconds could mean any time of its second
				p := host.Program{Work: work(), Store: &local.Memory{}, Now: func() time.Time { return time.Now().Add(test.off) }}
				warned := strings.Contains(run(t.Context(), p, "tick").err, test.want+", by which")
				if warned != (test.want != "") {
					t.Errorf("tick: warned is %t", warned)
				}
				got := run(t.Context(), p, "status")
				if head := "app demo on *local.Memory, " + time.Now().Add(test.off).UTC().Format("2006-01-02 15:04:05Z\n") + test.want; !strings.HasPrefix(got.out, head) ||
					strings.Contains(got.out, "clock") != (test.want != "") {
					t.Errorf("status: got\n%s\nwant\n%s", got.out, head)
				}
				got = run(t.Context(), p, "status", "--json")
				wantSkew(t, got.out, test.off)
				s := open(t, p)
				wantSkew(t, s.get("/api/v1/jobs").Body.String(), test.off)
				if got := strings.Contains(s.get("/api/v1/app").Body.String(), `"clock":`); got != (test.want != "") {
					t.Errorf("the app speaks of the clock: %t", got)
				}
				wantSkew(t, s.get("/healthz").Body.String(), test.off)
			})
		})
	}
}

func wantSkew(t *testing.T, out string, want time.Duration) {
	t.Helper()
	var answer struct {
		Skew float64
		App  any // of the API an object that has it, of commands a name
	}
	err := json.Unmarshal([]byte(out), &answer)
	if info, ok := answer.App.(map[string]any); ok {
		answer.Skew, _ = info["skew"].(float64)
	}
	if err != nil || answer.Skew != want.Seconds() {
		t.Errorf("got %s, %v, want a skew of %s", out, err, want)
	}
}

func TestServeWatchesTheClock(t *testing.T) {
	inRealTime(t)
	environment(t, "SOLOIST_ADDR=127.0.0.1:0", "SOLOIST_STORAGE=memory:")
	log, stop, code := serving(t, host.Program{Work: work(), Now: func() time.Time { return time.Now().Add(time.Hour) }})
	if m := await(t, log, "this machine's clock is 1h0m0s ahead of the store's"); m.Level != "WARN" {
		t.Errorf("got %+v", m)
	}
	stop()
	wantCode(t, <-code, 0)
}
