package host_test

import (
	"context"
	"io"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host"
	"github.com/soloist-go/soloist/host/local"
)

// locked takes locks once, in the app of the program.
func locked(t *testing.T, p host.Program, names ...string) {
	t.Helper()
	for _, name := range names {
		l := &soloist.Lock{Name: name, Store: p.Store, App: "demo", Logger: slog.New(slog.NewTextHandler(io.Discard, nil))}
		if err := l.Do(t.Context(), func(context.Context, *soloist.Run) error { return nil }); err != nil {
			t.Fatal(err)
		}
	}
}

func TestSweepCommand(t *testing.T) {
	environment(t)
	synctest.Test(t, func(t *testing.T) {
		p := host.Program{Store: &local.Memory{}, Work: []soloist.Work{soloist.Job{Name: "beat", Schedule: "@every 1h", Do: do}}}
		locked(t, p, "tenant-1", "Tenant/2")
		time.Sleep(48 * time.Hour)
		locked(t, p, "tenant-1")
		if got := run(t.Context(), p, "sweep"); got != (result{0, "", "demo: 0 removed\n"}) {
			t.Errorf("after two days: got %+v", got)
		}
		if got := run(t.Context(), p, "sweep", "--unused", "1m"); got.code == 0 || !strings.Contains(got.err, "10m0s or more") {
			t.Errorf("a minute: got %+v", got)
		}
		if got := run(t.Context(), p, "sweep", "--unused", "24h"); got != (result{0, "0-lock---54enant--2f2\n", "demo: 1 removed\n"}) {
			t.Errorf("a day: got %+v", got)
		}
		if got := run(t.Context(), p, "sweep", "--unused", "24h", "--json"); got.code != 0 || !strings.Contains(got.out, `"removed": []`) {
			t.Errorf("in JSON: got %+v", got)
		}
	})
}

func TestSweepSettingIsRefused(t *testing.T) {
	environment(t, "SOLOIST_SWEEP=5m")
	p := host.Program{Store: &local.Memory{}, Work: []soloist.Work{soloist.Job{Name: "beat", Schedule: "@every 1h", Do: do}}}
	if got := run(t.Context(), p, "validate"); got.code != 2 || !strings.Contains(got.err, "SOLOIST_SWEEP") || !strings.Contains(got.err, "720h") {
		t.Errorf("got %+v", got)
	}
}
