package host_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host"
	"github.com/soloist-go/soloist/host/azure"
	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/internal/blobtest"
	"github.com/soloist-go/soloist/store"
)

// frequent is a program whose job runs each 20 s, and fails each tenth time.
func frequent(backend store.Store) host.Program {
	n := 0
	return host.Program{Store: backend, Work: []soloist.Work{soloist.Job{Name: "often", Schedule: "@every 20s",
		Do: func(context.Context, *soloist.Run) error {
			if n++; n%10 == 0 {
				return errors.New("no paper")
			}
			return nil
		}}}}
}

// historyOf is what history tells of the job, as JSON.
func historyOf(t *testing.T, p host.Program, args ...string) (outcomes []struct {
	Status store.Status
	Token  int64
	Gap    bool
}) {
	t.Helper()
	got := run(t.Context(), p, append(append([]string{"history"}, args...), "--json")...)
	var body struct {
		Jobs []struct {
			History json.RawMessage
			Error   string
		}
	}
	if err := json.Unmarshal([]byte(got.out), &body); err != nil || got.code != 0 || len(body.Jobs) != 1 || body.Jobs[0].Error != "" {
		t.Fatalf("%v in %+v", err, got)
	}
	if err := json.Unmarshal(body.Jobs[0].History, &outcomes); err != nil {
		t.Fatal(err)
	}
	return outcomes
}

// With SOLOIST_HISTORY, history reaches back further than the record, also through the
// end of one process and the start of the next.
func TestHistoryReachesBack(t *testing.T) {
	environment(t, "SOLOIST_HISTORY=24h", "SOLOIST_ADDR=127.0.0.1:0")
	synctest.Test(t, func(t *testing.T) {
		backend := new(local.Memory)
		p := frequent(backend)
		for range 120 {
			run(t.Context(), p, "tick")
			time.Sleep(20 * time.Second)
		}
		all := historyOf(t, p, "-n", "1000")
		if len(all) < 118 {
			t.Errorf("got %d outcomes, want those of 120 ticks", len(all))
		}
		for i := range all[1:] {
			if all[i].Token != all[i+1].Token+1 || all[i].Gap {
				t.Errorf("outcome %d: %+v comes after %+v", i, all[i], all[i+1])
			}
		}
		if few := historyOf(t, p); len(few) != 20 {
			t.Errorf("got %d outcomes, want 20 where no number is given", len(few))
		}
		if failed := historyOf(t, p, "--outcome", "failed"); len(failed) < 11 {
			t.Errorf("got %d failures of 12", len(failed))
		}
		if recent := historyOf(t, p, "--since", "30m"); len(recent) < 88 || len(recent) > 91 {
			t.Errorf("got %d outcomes of 30 minutes, want 90", len(recent))
		}
	})
}

// The same over the Blob service, where the log is an append blob.
func TestHistoryOverBlobs(t *testing.T) {
	environment(t, "SOLOIST_HISTORY=24h")
	synctest.Test(t, func(t *testing.T) {
		service := new(blobtest.Blob)
		backend, err := azure.Open(azure.Config{ConnectionString: "AccountName=sim;AccountKey=c2VjcmV0", Transport: service})
		if err != nil {
			t.Fatal(err)
		}
		p := frequent(backend)
		for range 40 {
			run(t.Context(), p, "tick")
			time.Sleep(20 * time.Second)
		}
		before := len(service.Log())
		all := historyOf(t, p, "-n", "1000")
		if len(all) < 39 {
			t.Errorf("got %d outcomes, want those of 40 ticks", len(all))
		}
		for i, o := range all {
			if o.Gap {
				t.Errorf("outcome %d shows a gap: %+v", i, o)
			}
		}
		var asked []string
		for _, op := range service.Log()[before:] {
			asked = append(asked, op.Op)
		}
		if got := strings.Join(asked, " "); got != "get head list get" {
			t.Errorf("history asked for %s, want the orders, the record, the list of logs and one log", got)
		}
	})
}

// Without the setting nothing is written beside the record, and what is there is shown.
func TestHistoryIsOptional(t *testing.T) {
	environment(t)
	synctest.Test(t, func(t *testing.T) {
		backend := new(local.Memory)
		p := frequent(backend)
		for range 30 {
			run(t.Context(), p, "tick")
			time.Sleep(20 * time.Second)
		}
		logs := 0
		err := backend.Logs(t.Context(), "demo/often", func(string, int64) bool { logs++; return true })
		if all := historyOf(t, p, "-n", "1000"); err != nil || logs > 0 || len(all) != 20 {
			t.Errorf("%d logs, %d outcomes, %v, want none and 20", logs, len(all), err)
		}
	})
}

// What may be lost is shown as such.
func TestHistoryShowsGap(t *testing.T) {
	environment(t, "SOLOIST_HISTORY=24h")
	synctest.Test(t, func(t *testing.T) {
		backend := new(local.Memory)
		p := frequent(backend)
		tick := func(n int) {
			for range n {
				run(t.Context(), p, "tick")
				time.Sleep(20 * time.Second)
			}
		}
		tick(5)
		t.Setenv("SOLOIST_HISTORY", "")
		tick(30)
		t.Setenv("SOLOIST_HISTORY", "24h")
		tick(1)
		got := run(t.Context(), p, "history", "-n", "1000")
		if n := strings.Count(got.out, "before this, outcomes may be lost"); n != 1 {
			t.Errorf("%d gaps are shown, want one:\n%s", n, got.out)
		}
	})
}

// A store that keeps no logs is told, and all else works.
func TestHistoryNeedsStoreWithLogs(t *testing.T) {
	environment(t, "SOLOIST_HISTORY=24h")
	got := run(t.Context(), frequent(newGated(new(local.Memory), nil)), "tick")
	if got.code != 0 || !strings.Contains(got.err, "SOLOIST_HISTORY has no effect") {
		t.Errorf("got %+v", got)
	}
}

// A pass ends while the first outcome is being written. The write goes on, so it is no failure.
func TestTickEndsDuringAWriteOfTheHistory(t *testing.T) {
	environment(t, "SOLOIST_HISTORY=24h", "SOLOIST_ADDR=127.0.0.1:0")
	synctest.Test(t, func(t *testing.T) {
		p := frequent(&distant{Memory: new(local.Memory)})
		for range 20 {
			if got := run(t.Context(), p, "tick"); strings.Contains(got.err, "could not be written") {
				t.Fatal(got.err)
			}
			time.Sleep(20 * time.Second)
		}
		if all := historyOf(t, p, "-n", "1000"); len(all) < 18 {
			t.Errorf("got %d outcomes, want those of 20 ticks", len(all))
		}
	})
}

// A distant store takes 20 ms for each read and each append.
type distant struct{ *local.Memory }

func (d *distant) wait(ctx context.Context) error {
	select {
	case <-time.After(20 * time.Millisecond):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (d *distant) Read(ctx context.Context, name string) (store.Entry, error) {
	if err := d.wait(ctx); err != nil {
		return store.Entry{}, err
	}
	return d.Memory.Read(ctx, name)
}

func (d *distant) Append(ctx context.Context, name string, size int64, b []byte) error {
	if err := d.wait(ctx); err != nil {
		return err
	}
	return d.Memory.Append(ctx, name, size, b)
}
