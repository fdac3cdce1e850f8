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
		for unused, want := range map[string]string{"1m": "10m0s", "-1h": "such as 90m, 24h or 7d", "soon": "such as 90m, 24h or 7d"} {
			if got := run(t.Context(), p, "sweep", "--unused="+unused, "--json"); got.code != 2 || !strings.Contains(got.err, want) || !strings.Contains(got.err, unused) {
				t.Errorf("%s: got %+v, want %q", unused, got, want)
			}
		}
		if got := run(t.Context(), p, "sweep", "--unused", "50h"); got.code != 0 {
			t.Errorf("fifty hours: got %+v", got)
		}
		if got := run(t.Context(), p, "sweep", "--unused", "1d"); got != (result{0, "0-lock---54enant--2f2\n", "demo: 1 removed\n"}) {
			t.Errorf("a day: got %+v", got)
		}
		if got := run(t.Context(), p, "sweep", "--unused", "10m", "--json"); got.code != 0 || !strings.Contains(got.out, `"removed": []`) {
			t.Errorf("in JSON: got %+v", got)
		}
	})
}
