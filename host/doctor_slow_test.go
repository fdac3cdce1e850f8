package host_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist/host"
	"github.com/soloist-go/soloist/host/azure"
	"github.com/soloist-go/soloist/host/local"
)

// slow is a gate at which everything takes its time, and hears of no end of a
// context.
func slow(takes time.Duration) gate {
	return func(string, string) error { time.Sleep(takes); return nil }
}

// Whatever hangs, and however slowly all else goes, it takes less than a minute.
func TestDoctorIsBounded(t *testing.T) {
	environment(t)
	for takes, want := range map[time.Duration]string{
		time.Hour:               "FAIL  create       no answer within 5s",
		4900 * time.Millisecond: "warn  create",
		2 * time.Second:         "ok    create",
	} {
		synctest.Test(t, func(t *testing.T) {
			begin := time.Now()
			check := azure.Check{Name: "check", Do: func(context.Context) azure.Finding {
				time.Sleep(min(takes, 4900*time.Millisecond))
				return azure.Finding{Text: "slow"}
			}}
			backend := examined{deletes{newGated(&local.Memory{}, slow(takes))}, []azure.Check{check, check, check}}
			got := run(t.Context(), host.Program{Work: work(), Store: backend}, "doctor")
			if took := time.Since(begin); took > time.Minute || !strings.Contains(got.out, want) {
				t.Errorf("%s: took %s, want %q:\n%s", takes, took, want, got.out)
			}
			time.Sleep(4 * time.Hour) // what was left behind ends
		})
	}
}

// A stop ends it at once, and the scratch entry goes away all the same.
func TestDoctorIsStopped(t *testing.T) {
	environment(t)
	synctest.Test(t, func(t *testing.T) {
		backend := &local.Memory{}
		ctx, cancel := context.WithTimeout(t.Context(), 7500*time.Millisecond) // in the checkpoint
		defer cancel()
		var created string
		names := newGated(backend, func(op, name string) error {
			if op == "create" {
				created = name
			}
			return slow(time.Second)(op, name)
		})
		got := run(ctx, host.Program{Work: work(), Store: deletes{names}}, "doctor")
		if got.code != 1 || created == "" {
			t.Errorf("got %+v", got)
		}
		time.Sleep(time.Minute)
		if _, err := backend.Read(t.Context(), created); err == nil {
			t.Errorf("%s is left", created)
		}
	})
}

// A cold token takes longer than an answer.
func TestDoctorGivesTokenTime(t *testing.T) {
	environment(t)
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		waits := azure.Check{Name: "credentials", Do: func(ctx context.Context) azure.Finding {
			<-ctx.Done() // for a token that never comes
			return azure.Finding{Fails: true, Text: ctx.Err().Error()}
		}}
		backend := examined{deletes{newGated(&local.Memory{}, nil)}, []azure.Check{waits}}
		got := run(t.Context(), host.Program{Work: work(), Store: backend}, "doctor")
		if took := time.Since(begin); took != 10*time.Second || !strings.Contains(got.out, "FAIL  credentials  no answer within 10s") {
			t.Errorf("after %s: got %+v", took, got)
		}
	})
}
