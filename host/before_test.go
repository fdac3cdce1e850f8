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

// A stop ends what comes before, and an invocation that has no more time ends it too: the next one goes on.
func TestBeforeIsCutShort(t *testing.T) {
	bubble(t, nil, func(t *testing.T) {
		p := host.Program{Store: &local.Memory{}, Work: work(), Before: before(func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })}
		stop, code := serveOn(t, p, newPiped())
		time.Sleep(time.Minute)
		stop()
		wantCode(t, <-code, 0)
	})
	bubble(t, []string{"FUNCTIONS_CUSTOMHANDLER_PORT=7071", "SOLOIST_FUNCTION_TIMEOUT=60s"}, func(t *testing.T) {
		tries := atomic.Int64{}
		slow := before(func(ctx context.Context) error {
			if tries.Add(1) == 1 {
				<-ctx.Done()
			}
			return ctx.Err()
		})
		slow[0].Retry.MaxTries = 0
		s := open(t, host.Program{Store: &local.Memory{}, Work: work(), Before: slow})
		begin := time.Now()
		const says = "no job is started before"
		one, other := s.invoked(t, "tick", `{}`, says), s.invoked(t, "tick", `{}`, says)
		wantEqual(t, "codes", []int{<-one, <-other}, []int{500, 500})
		wantTook(t, begin, 0, time.Minute)
		s.wantInvoked(t, "tick", `{}`, 200)
	})
}

func TestTickDoesWhatComesBefore(t *testing.T) {
	bubble(t, nil, func(t *testing.T) {
		n := atomic.Int64{}
		p := host.Program{Store: &local.Memory{}, Work: work(), Before: counting(&n)}
		for range 2 {
			wantLines(t, p, "tick", 0)
		}
		wantEqual(t, "how often it was done for its key", n.Load(), 1)
		p.Before[0].Key = "v3"
		wantLines(t, p, "validate", 0, "ok: 2 jobs, 1 singleton, before them migrate for v3, app demo on *local.Memory\n")
		for _, command := range []string{"status", "history", "next beat", "doctor", "audit"} {
			call(t, p, command)
			wantEqual(t, "how often, after "+command, n.Load(), 1)
		}
	})
}

// What is given up fails each way of running, also in the next process, and no job runs. A probe without the token is told no
// text of an error.
func TestBeforeIsGivenUp(t *testing.T) {
	never := func(context.Context, *soloist.Run) error { t.Error("the job ran"); return nil }
	const says = "is not tried again for this key: no such table"
	beat := []soloist.Work{soloist.Job{Name: "beat", Schedule: "@every 1s", Do: never}}
	bubble(t, nil, func(t *testing.T) {
		p := host.Program{Store: &local.Memory{}, Work: beat, Before: before(noTable)}
		for range 2 {
			var log strings.Builder
			p.Stdout = &log
			_, code := serveOn(t, p, newPiped())
			wantCode(t, <-code, 1)
			wantText(t, "log", log.String(), `no job is started before this is done: once \"migrate\" for \"v2\": it has failed on `, says)
		}
		for _, command := range []string{"tick", "run beat --here"} {
			wantText(t, command, wantLines(t, p, command, 1, says).err, "!mistake")
			var answer struct{ Error string }
			must(t, json.Unmarshal([]byte(wantLines(t, p, command+" --json", 1).out), &answer))
			wantText(t, command+" --json", answer.Error, says)
		}
	})
	inFunctions := []string{"FUNCTIONS_CUSTOMHANDLER_PORT=7071", "SOLOIST_FUNCTION_FAILURE=error", "SOLOIST_READ_TOKEN=" + readToken}
	bubble(t, inFunctions, func(t *testing.T) {
		s := open(t, host.Program{Store: &local.Memory{}, Work: beat, Before: before(noTable)})
		for _, payload := range []string{`{}`, `{}`, byHTTP} {
			s.wantInvoked(t, "beat", payload, 500, "no such table")
		}
		wantAnswer(t, "readyz", s.get("/readyz"), 503, "migrate for v2", "the log tells why", "!table")
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
		`!"error"`:            func() error { return soloist.Skip("it is there") },
	} {
		synctest.Test(t, func(t *testing.T) {
			backend, n := newGated(&local.Memory{}, nil), 0
			migrate := &soloist.Once{Name: "migrate", Key: "v2", Do: func(context.Context, *soloist.Run) error {
				if n++; n > 1 {
					return nil
				}
				backend.away(5 * time.Second)
				return fails()
			}}
			s := open(t, host.Program{Store: backend, Work: work(), Before: []*soloist.Once{migrate}})
			code := s.invoked(t, "tick", `{}`)
			time.Sleep(4 * time.Second)
			wantAnswer(t, "readyz", s.get("/readyz"), 503, "migrate for v2", want)
			wantCode(t, <-code, 200)
			wantAnswer(t, "readyz", s.get("/readyz"), 200, `{"status":"ready"}`)
		})
	}
}

func TestMistakesBefore(t *testing.T) {
	environment(t)
	p := host.Program{Store: &local.Memory{}, Work: work(), Before: []*soloist.Once{
		nil,
		{Name: "migrate", Do: do},
		{Name: "seed", Key: "v2", Do: do},
		{Name: "seed", Key: "v2", Do: do},
		{Name: "", Key: "v\n2"},
	}}
	wantLines(t, p, "validate", 2, "Before 1 of 5 is nil",
		`Before: once "migrate": Key is empty, and this build has no version in its place: set Key`,
		`Before: once "seed" for "v2" is there twice`,
		`Before: once "": Name is "": it is empty`,
		`Key is "v\n2": it has 3 bytes, or is not printable`,
		"Do is nil")
}
