package host_test

import (
	"context"
	"encoding/json"
	"errors"
	"runtime"
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

// before is a migration that does this.
func before(do func(ctx context.Context) error) []*soloist.Once {
	return []*soloist.Once{{Name: "migrate", Key: "v2", Retry: soloist.Retry{MaxTries: 1},
		Do: func(ctx context.Context, _ *soloist.Run) error { return do(ctx) }}}
}

// counting is a migration that counts how often it is done.
func counting(n *atomic.Int64) []*soloist.Once {
	return before(func(context.Context) error { n.Add(1); return nil })
}

// noTable is a migration that fails.
func noTable(context.Context) error { return errors.New("no such table") }

func TestServeIsNotReadyBefore(t *testing.T) {
	bubble(t, nil, func(t *testing.T) {
		var done, ran atomic.Bool
		release, ln := make(chan struct{}), newPiped()
		beat := soloist.Job{Name: "beat", Schedule: "@every 1s", Do: func(context.Context, *soloist.Run) error {
			if ran.Store(true); !done.Load() {
				t.Error("a job ran before what comes before it was done")
			}
			return nil
		}}
		stop, code := serveOn(t, host.Program{Store: &local.Memory{}, Work: []soloist.Work{beat},
			Before: before(func(context.Context) error { <-release; done.Store(true); return nil })}, ln)
		time.Sleep(time.Minute)
		wantAnswer(t, "healthz", ln.get(t, "/healthz"), 200, `"status":"ok"`)
		wantAnswer(t, "readyz", ln.get(t, "/readyz"), 503, `"status":"waiting","before":"migrate for v2, for `)
		wantAnswer(t, "jobs", ln.get(t, "/api/v1/jobs"), 200, `"beat"`)
		close(release)
		time.Sleep(time.Minute)
		wantEqual(t, "the job has run", ran.Load(), true)
		wantAnswer(t, "readyz", ln.get(t, "/readyz"), 200, `"status":"ready"`)
		stop()
		wantCode(t, <-code, 0)
	})
}

func TestServeEndsWhenBeforeIsGivenUp(t *testing.T) {
	bubble(t, nil, func(t *testing.T) {
		backend := &local.Memory{}
		for range 2 { // the next process gets the same answer
			var log strings.Builder
			_, code := serveOn(t, host.Program{Store: backend, Work: work(), Before: before(noTable), Stdout: &log}, newPiped())
			wantCode(t, <-code, 1)
			wantText(t, "log", log.String(), `no job is started before this is done: once \"migrate\" for \"v2\": it has failed on `,
				"is not tried again for this key: no such table")
		}
	})
}

func TestStopWhileBeforeRuns(t *testing.T) {
	bubble(t, nil, func(t *testing.T) {
		p := host.Program{Store: &local.Memory{}, Work: work(), Before: before(func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })}
		stop, code := serveOn(t, p, newPiped())
		time.Sleep(time.Minute)
		stop()
		wantCode(t, <-code, 0)
	})
}

func TestTickDoesWhatComesBefore(t *testing.T) {
	bubble(t, nil, func(t *testing.T) {
		backend, n := &local.Memory{}, atomic.Int64{}
		p := host.Program{Store: backend, Work: work(), Before: counting(&n)}
		for range 2 {
			wantLines(t, p, "tick", 0)
		}
		wantEqual(t, "how often it was done for its key", n.Load(), 1)
		for _, command := range []string{"status", "history", "next beat", "validate", "doctor", "audit"} {
			q := p
			q.Before = before(func(context.Context) error { t.Errorf("%s does what comes before the jobs", command); return nil })
			q.Before[0].Key = command
			run(t.Context(), q, strings.Fields(command)...)
		}
	})
}

func TestTickWhenBeforeIsGivenUp(t *testing.T) {
	bubble(t, nil, func(t *testing.T) {
		ran := false
		p := host.Program{Store: &local.Memory{}, Work: []soloist.Work{soloist.Job{Name: "beat", Schedule: "@every 1s", Do: func(context.Context, *soloist.Run) error {
			ran = true
			return nil
		}}}, Before: before(noTable)}
		for _, command := range []string{"tick", "tick --json", "run beat --here", "run beat --here --json"} {
			got := run(t.Context(), p, strings.Fields(command)...)
			if want := "and is not tried again for this key: no such table"; got.code != 1 || !strings.Contains(got.out+got.err, want) || ran {
				t.Errorf("%s: got %+v, want %s", command, got, want)
			}
			wantNone(t, command, got.err, "mistake")
			var answer struct{ Error string }
			if strings.HasSuffix(command, "--json") && (json.Unmarshal([]byte(got.out), &answer) != nil || answer.Error == "") {
				t.Errorf("%s: got %+v, want JSON with an error", command, got)
			}
		}
	})
}

func TestInvocationsWaitForBefore(t *testing.T) {
	bubble(t, []string{"FUNCTIONS_CUSTOMHANDLER_PORT=7071"}, func(t *testing.T) {
		n, ran := atomic.Int64{}, atomic.Int64{}
		release := make(chan struct{})
		s := open(t, host.Program{Store: &local.Memory{}, Work: []soloist.Work{
			soloist.Job{Name: "beat", Schedule: "@every 1m", Do: func(context.Context, *soloist.Run) error {
				if ran.Add(1); n.Load() != 1 {
					t.Error("a job ran before what comes before it was done")
				}
				return nil
			}}},
			Before: before(func(context.Context) error { <-release; n.Add(1); return nil })})
		codes := make(chan int, 2)
		for _, function := range []string{"tick", "beat"} {
			go func() {
				code, _ := s.invoke(t, function, `{}`)
				codes <- code
			}()
		}
		time.Sleep(10 * time.Second)
		wantAnswer(t, "readyz", s.get("/readyz"), 503, "migrate for v2")
		wantAnswer(t, "healthz", s.get("/healthz"), 200)
		close(release)
		for range 2 {
			wantCode(t, <-codes, 200)
		}
		time.Sleep(time.Minute)
		if code, _ := s.invoke(t, "tick", `{}`); code != 200 || n.Load() != 1 || ran.Load() != 1 {
			t.Errorf("got %d, %d and %d runs", code, n.Load(), ran.Load())
		}
		wantAnswer(t, "readyz after", s.get("/readyz"), 200)
	})
}

// An invocation that has no more time ends, and the next one goes on.
func TestInvocationsWithinTheirTimeBefore(t *testing.T) {
	bubble(t, []string{"FUNCTIONS_CUSTOMHANDLER_PORT=7071", "SOLOIST_FUNCTION_TIMEOUT=60s"}, func(t *testing.T) {
		tries := atomic.Int64{}
		s := open(t, host.Program{Store: &local.Memory{}, Work: work(), Before: []*soloist.Once{{Name: "migrate", Key: "v2",
			Do: func(ctx context.Context, _ *soloist.Run) error {
				if tries.Add(1) == 1 {
					<-ctx.Done()
					return ctx.Err()
				}
				return nil
			}}}})
		codes := make(chan int, 2)
		for range 2 {
			go func() {
				code, logs := s.invoke(t, "tick", `{}`)
				wantText(t, "the lines", strings.Join(logs, ""), "no job is started before this is done")
				codes <- code
			}()
		}
		begin := time.Now()
		for range 2 {
			wantCode(t, <-codes, 500)
		}
		if took := time.Since(begin); took > time.Minute {
			t.Errorf("they took %s", took)
		}
		s.wantInvoked(t, "tick", `{}`, 200)
	})
}

// Each call fails, also one of an HTTP trigger, which runs a job by hand. A probe without the token is told no text of an
// error.
func TestInvocationsFailWhenBeforeIsGivenUp(t *testing.T) {
	bubble(t,
		[]string{"FUNCTIONS_CUSTOMHANDLER_PORT=7071", "SOLOIST_FUNCTION_FAILURE=error", "SOLOIST_READ_TOKEN=" + readToken}, func(t *testing.T) {
			never := soloist.Job{Name: "beat", Schedule: "@every 1m", Do: func(context.Context, *soloist.Run) error {
				t.Error("the job ran")
				return nil
			}}
			s := open(t, host.Program{Store: &local.Memory{}, Work: []soloist.Work{never}, Before: before(noTable)})
			for range 2 {
				s.wantInvoked(t, "tick", `{}`, 500, "no such table")
			}
			s.wantInvoked(t, "beat", byHTTP, 500, "no such table")
			got := s.get("/readyz")
			wantAnswer(t, "readyz", got, 503, "migrate for v2", "the log tells why")
			wantNone(t, "readyz", got.Body.String(), "table")
			wantAnswer(t, "readyz with the token", s.get("/readyz", "Bearer "+readToken), 503, "migrate for v2", "no such table")
		})
}

// /readyz tells a failure on this replica, however the work ended, until the work is done. Work that
// found nothing to do has not failed, even if that cannot be written for a while.
func TestReadyTellsFailureBefore(t *testing.T) {
	environment(t, "FUNCTIONS_CUSTOMHANDLER_PORT=7071")
	for want, fails := range map[string]func() error{
		"no such table":       func() error { return errors.New("no such table") },
		"panic: out of range": func() error { panic("out of range") },
		"did not return":      func() error { runtime.Goexit(); return nil },
		"":                    func() error { return soloist.Skip("it is there") },
	} {
		synctest.Test(t, func(t *testing.T) {
			backend, n := newGated(&local.Memory{}, nil), 0
			s := open(t, host.Program{Store: backend, Work: work(), Before: []*soloist.Once{{Name: "migrate", Key: "v2", Do: func(context.Context, *soloist.Run) error {
				if n++; n > 1 {
					return nil
				}
				backend.away(5 * time.Second)
				return fails()
			}}}})
			codes := make(chan int)
			go func() {
				code, _ := s.invoke(t, "tick", `{}`)
				codes <- code
			}()
			time.Sleep(4 * time.Second)
			got := s.get("/readyz")
			if wantAnswer(t, "readyz", got, 503, "migrate for v2", want); want == "" && strings.Contains(got.Body.String(), `"error"`) {
				t.Errorf("readyz: got %s", got.Body)
			}
			wantCode(t, <-codes, 200)
			wantAnswer(t, "readyz", s.get("/readyz"), 200, `{"status":"ready"}`)
		})
	}
}

// What the jobs wait for may be the store.
func TestOutageBefore(t *testing.T) {
	bubble(t, []string{"FUNCTIONS_CUSTOMHANDLER_PORT=7071"}, func(t *testing.T) {
		backend := newGated(&local.Memory{}, refuse(errDown))
		s := open(t, host.Program{Store: backend, Work: work(), Before: counting(new(atomic.Int64))})
		codes := make(chan int)
		go func() {
			code, _ := s.invoke(t, "tick", `{}`)
			codes <- code
		}()
		time.Sleep(10 * time.Second)
		wantAnswer(t, "healthz", s.get("/healthz"), 200, `"status":"degraded"`, `"storage":"`, errDown.Error())
		wantAnswer(t, "readyz", s.get("/readyz"), 503, "migrate for v2", `"storage":"`, errDown.Error())
		backend.set(nil)
		wantCode(t, <-codes, 200)
		wantAnswer(t, "healthz after", s.get("/healthz"), 200, `"status":"ok"`)
		wantAnswer(t, "readyz after", s.get("/readyz"), 200)
	})
}

// What comes before the jobs has the lease of the settings, unless it names one.
func TestLeaseBefore(t *testing.T) {
	bubble(t, []string{"SOLOIST_LEASE=20s"}, func(t *testing.T) {
		backend := &local.Memory{}
		p := host.Program{Store: backend, Work: work(), Before: counting(new(atomic.Int64))}
		run(t.Context(), p, "tick")
		p.Before[0].Key, p.Before[0].Lease = "v3", 40*time.Second
		run(t.Context(), p, "tick")
		got := map[time.Duration]bool{}
		backend.List(t.Context(), "demo", func(name string, e store.Entry) bool {
			if strings.HasPrefix(name, "demo/0-once") {
				rec, err := store.DecodeRecord(e.Record, "demo", strings.TrimPrefix(name, "demo/"))
				if err != nil {
					t.Error(err)
				}
				got[time.Duration(rec.Run.Lease)] = true
			}
			return true
		})
		if !got[20*time.Second] || !got[40*time.Second] || len(got) != 2 {
			t.Errorf("got %v, want 20 and 40 s", got)
		}
	})
}

func TestMistakesBefore(t *testing.T) {
	environment(t)
	nothing := func(context.Context, *soloist.Run) error { return nil }
	p := host.Program{Store: &local.Memory{}, Work: work(), Before: []*soloist.Once{
		nil,
		{Name: "migrate", Do: nothing},
		{Name: "seed", Key: "v2", Do: nothing},
		{Name: "seed", Key: "v2", Do: nothing},
		{Name: "", Key: "v\n2"},
	}}
	got := run(t.Context(), p, "validate")
	wantEqual(t, "code", got.code, 2)
	wantText(t, "mistakes", got.err, "Before 1 of 5 is nil",
		`Before: once "migrate": Key is empty, and this build has no version in its place: set Key`,
		`Before: once "seed" for "v2" is there twice`,
		`Before: once "": Name is "": it is empty`,
		`Key is "v\n2": it has 3 bytes, or is not printable`,
		"Do is nil")
}

// The version of the build is the key of what has none.
func TestKeyBeforeIsVersion(t *testing.T) {
	environment(t)
	defer host.WithVersion("v1.2.3")()
	p := host.Program{Store: &local.Memory{}, Work: work(), Before: []*soloist.Once{{Name: "migrate", Do: func(context.Context, *soloist.Run) error { return nil }}}}
	if got := run(t.Context(), p, "validate"); !strings.HasPrefix(got.out, "ok: 2 jobs, 1 singleton, before them migrate for v1.2.3, app demo on *local.Memory\n") {
		t.Errorf("got %+v", got)
	}
}
