//go:build unix

package processes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/internal/proctest"
)

// deployed is how many processes each version has.
const deployed = 3

// Each version is deployed over the one before, which works on meanwhile. What it has to do once is
// done once, and none of its processes is ready before that; so no tick runs before it either. In each
// third round the process dies that is at it, which costs a lease.
func TestEachVersionIsPreparedOnce(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "log")
	f := newFleet(t, order{Program: deploys, File: file})
	n := cmp.Or(*rounds, 2)
	begin := time.Now()
	for round := 1; round <= n; round++ {
		f.order.Version = fmt.Sprint("v", round)
		for i := range deployed {
			f.start(fmt.Sprintf("%s-%d", f.order.Version, i), 0)
		}
		if round%3 == 0 {
			f.killFirst(file)
		}
		proctest.Poll(t, f.order.Version+" on all its processes", patience, func() bool {
			return strings.Count(notes(t, file), "ready "+f.order.Version+" ") == deployed
		})
		for i := range deployed {
			if old := f.Replica(fmt.Sprintf("v%d-%d", round-1, i)); old != nil {
				if err := old.Stop(patience); err != nil {
					t.Error(err)
				}
			}
		}
	}
	proctest.Poll(t, "a tick of the last version", patience, func() bool { return strings.Contains(notes(t, file), "tick "+f.order.Version+" ") })
	if err := f.Stop(patience); err != nil {
		t.Error(err)
	}
	checkPrepared(t, notes(t, file), n)
	t.Logf("%d versions in %s: %d times begun, %d failed, %d ready, %d ticks", n, ms(time.Since(begin)), strings.Count(notes(t, file), "begin "),
		strings.Count(notes(t, file), "failed "), strings.Count(notes(t, file), "ready "), strings.Count(notes(t, file), "tick "))
}

// killFirst kills the process that is the first to prepare the version, and starts it again.
func (f *fleet) killFirst(file string) {
	f.t.Helper()
	var victim string
	proctest.Poll(f.t, "the first to prepare "+f.order.Version, patience, func() bool {
		_, rest, found := strings.Cut(notes(f.t, file), "begin "+f.order.Version+" ")
		victim, _, _ = strings.Cut(rest, "\n")
		return found
	})
	f.signal(victim, syscall.SIGKILL)
	<-f.Replica(victim).Gone()
	f.start(victim, 0)
}

// checkPrepared checks what the processes have noted, in its order.
func checkPrepared(t *testing.T, text string, versions int) {
	t.Helper()
	done := map[string]int{}
	for note := range strings.Lines(text) {
		switch word := strings.Fields(note); word[0] {
		case "done":
			done[word[1]]++
		case "ready", "tick":
			if done[word[1]] == 0 {
				t.Errorf("%s before its version was prepared", strings.TrimSpace(note))
			}
		}
	}
	for i := 1; i <= versions; i++ {
		if version := fmt.Sprint("v", i); done[version] != 1 {
			t.Errorf("%s was prepared %d times", version, done[version])
		}
	}
	if t.Failed() {
		t.Log(text)
	}
}

// notes returns what the processes have noted.
func notes(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return string(b)
}

// deploy is a version of a program: it prepares itself once, and then runs its ticks.
func (o order) deploy() error {
	backend, err := o.storage()
	if err != nil {
		return err
	}
	s := &soloist.Scheduler{Store: backend, Replica: o.Name, App: os.Getenv("SOLOIST_APP"), Logger: slog.New(slog.NewJSONHandler(os.Stdout, nil)),
		Jobs: []soloist.Job{{Name: "work", Schedule: "@every 1s", Lease: lease, Do: func(context.Context, *soloist.Run) error { return o.note("tick") }}}}
	once := &soloist.Once{Name: "prepare", Key: o.Version, Lease: lease, Retry: soloist.Retry{MaxTries: 10, Backoff: time.Second}, Do: o.prepare}
	s.Bind(once)
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer cancel()
	if err := once.Run(ctx); err != nil {
		return err
	}
	if err := o.note("ready"); err != nil {
		return err
	}
	return s.Run(ctx)
}

// prepare fails the first time for each version.
func (o order) prepare(ctx context.Context, _ *soloist.Run) error {
	if err := o.note("begin"); err != nil {
		return err
	}
	if err := proctest.Pause(ctx, time.Second); err != nil {
		return err
	}
	if b, err := os.ReadFile(o.File); err != nil || !strings.Contains(string(b), "failed "+o.Version+" ") {
		return errors.Join(o.note("failed"), errors.New("the first time"))
	}
	return o.note("done")
}

func (o order) note(word string) error {
	return appendLine(o.File, fmt.Sprintln(word, o.Version, o.Name))
}
