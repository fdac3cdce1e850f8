//go:build unix

package e2e

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/store"
)

func TestSixtyTicksRunOnceEach(t *testing.T) {
	t.Parallel()
	for name, skew := range map[string]time.Duration{"same clocks": 0, "clocks skewed by 0, 2 and 4 s": 2 * time.Second} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, order{Schedule: "@every 1s", Missed: soloist.RunAll, Takes: 50 * time.Millisecond})
			for i, name := range []string{"a", "b", "c"} {
				f.start(name, time.Duration(i)*skew)
			}
			first := f.await("the first run", time.Minute, started(""))
			last := first.Tick.Add(59 * time.Second)
			f.await("the last run", 2*time.Minute, func(e event) bool { return started("")(e) && e.Tick.Equal(last) })
			ticks := f.ticks()
			for tick := first.Tick; !tick.After(last); tick = tick.Add(time.Second) {
				if ticks[tick] != 1 {
					t.Errorf("tick %s ran %d times", tick.Format(time.TimeOnly), ticks[tick])
				}
			}
			t.Logf("%d ticks started", len(ticks))
		})
	}
}

// Without the claim the same replicas run ticks again: the test above can fail.
func TestTicksRunTwiceWithoutTheClaim(t *testing.T) {
	t.Parallel()
	f := newFleet(t, order{Schedule: "@every 1s", Takes: 50 * time.Millisecond})
	f.program = withoutClaim(t)
	for i, name := range []string{"a", "b", "c"} {
		f.start(name, time.Duration(2*i)*time.Second)
	}
	f.await("a tick that runs twice", time.Minute, func(event) bool {
		for _, n := range f.ticks() {
			if n > 1 {
				return true
			}
		}
		return false
	})
}

// withoutClaim builds this test binary with a core that writes no record: it
// has the lease and nothing else.
func withoutClaim(t *testing.T) string {
	t.Helper()
	const file, before = "internal/lease/write.go", "func (s *Session) once(ctx context.Context, p *page) error {\n"
	path, err := filepath.Abs(filepath.Join("..", "..", file))
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(source, []byte(before)); n != 1 {
		t.Fatalf("%s has %q %d times: adapt this test", file, before, n)
	}
	dir := t.TempDir()
	mutant := filepath.Join(dir, filepath.Base(file))
	source = bytes.Replace(source, []byte(before), []byte(before+"\tif p != nil {\n\t\treturn nil\n\t}\n"), 1)
	overlay, _ := json.Marshal(map[string]any{"Replace": map[string]string{path: mutant}})
	for name, b := range map[string][]byte{mutant: source, filepath.Join(dir, "overlay.json"): overlay} {
		if err := os.WriteFile(name, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	program := filepath.Join(dir, "mutant")
	build := exec.Command("go", "test", "-c", "-overlay", filepath.Join(dir, "overlay.json"), "-o", program, ".")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", build, err, out)
	}
	return program
}

func TestAKilledRunnerIsReplaced(t *testing.T) {
	t.Parallel()
	f := newFleet(t, order{Schedule: "@every 1s", Takes: 700 * time.Millisecond})
	for _, name := range []string{"a", "b", "c"} {
		f.start(name, 0)
	}
	f.await("the first run", time.Minute, started(""))
	victim := f.await("another run", time.Minute, started(""))
	f.signal(victim.Replica, syscall.SIGKILL)
	killed := time.Now()
	next := f.await("a run elsewhere", time.Minute, func(e event) bool { return started("")(e) && e.At.After(killed) })
	if next.Replica == victim.Replica {
		t.Errorf("the killed replica ran on")
	}
	if took := next.At.Sub(killed); took > lease+2*time.Second {
		t.Errorf("replaced after %s, want at most %s", took, lease+2*time.Second)
	} else {
		t.Logf("replaced after %s", took.Round(time.Millisecond))
	}
	checkTakeOver(t, f.record(), victim, next)
	for tick, n := range f.ticks() {
		if n != 1 {
			t.Errorf("tick %s ran %d times", tick, n)
		}
	}
}

// checkTakeOver checks that the dead runner's tick is told as abandoned, and
// the ticks between as missed.
func checkTakeOver(t *testing.T, r store.Record, victim, next event) {
	t.Helper()
	var abandoned, missed bool
	for _, outcome := range r.History {
		if outcome.Status == store.Abandoned && outcome.Tick.Equal(victim.Tick) {
			abandoned = true
		}
		if outcome.Status == store.Missed && outcome.From.Equal(victim.Tick) && outcome.Tick.Equal(next.Tick.Add(-time.Second)) {
			missed = true
			if want := int(next.Tick.Sub(victim.Tick)/time.Second) - 1; outcome.Count != want {
				t.Errorf("%d ticks are missed, want %d", outcome.Count, want)
			}
		}
	}
	if !abandoned || !missed {
		t.Errorf("abandoned: %t, missed: %t in %+v", abandoned, missed, r.History)
	}
}

func TestASIGTERMOfAnIdleReplicaLosesNoTick(t *testing.T) {
	t.Parallel()
	f := newFleet(t, order{Schedule: "@every 2s", Takes: 100 * time.Millisecond})
	for _, name := range []string{"a", "b", "c"} {
		f.start(name, 0)
	}
	first := f.await("the first run", time.Minute, started(""))
	for range 2 {
		run := f.await("a run", time.Minute, started(""))
		for name, p := range f.procs {
			if name == run.Replica {
				continue
			}
			f.signal(name, syscall.SIGTERM)
			begin := time.Now()
			if err := p.wait(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			t.Logf("%s stopped after %s", name, time.Since(begin).Round(time.Millisecond))
			delete(f.procs, name)
			break
		}
	}
	last := first.Tick.Add(20 * time.Second)
	f.await("the last run", time.Minute, func(e event) bool { return started("")(e) && e.Tick.Equal(last) })
	ticks := f.ticks()
	for tick := first.Tick; !tick.After(last); tick = tick.Add(2 * time.Second) {
		if ticks[tick] != 1 {
			t.Errorf("tick %s ran %d times", tick.Format(time.TimeOnly), ticks[tick])
		}
	}
}

func TestAFrozenRunnerIsCancelledAndCannotFinish(t *testing.T) {
	t.Parallel()
	f := newFleet(t, order{Schedule: "@every 1s", Takes: time.Hour})
	f.start("a", 0)
	f.await("the first run", time.Minute, started("a"))
	f.start("b", 0)
	f.await("the second replica", time.Minute, func(e event) bool { return e.Replica == "b" && e.What == "ready" })
	f.signal("a", syscall.SIGSTOP)
	frozen := time.Now()
	next := f.await("a run elsewhere", time.Minute, started("b"))
	if took := next.At.Sub(frozen); took > lease+2*time.Second {
		t.Errorf("replaced after %s, want at most %s", took, lease+2*time.Second)
	}
	thaw := time.NewTimer(time.Until(frozen.Add(2 * lease)))
	<-thaw.C
	f.signal("a", syscall.SIGCONT)
	thawed := time.Now()
	end := f.await("the end of the old run", time.Minute, func(e event) bool { return e.Replica == "a" && e.What == "end" })
	if took := end.At.Sub(thawed); took > time.Second {
		t.Errorf("cancelled %s after it went on", took)
	}
	if !strings.HasPrefix(end.Cause, store.ErrLost.Error()) {
		t.Errorf("cancelled for %q", end.Cause)
	}
	f.await("the refusal", 10*time.Second, func(e event) bool {
		return e.Replica == "a" && e.What == "log" && strings.Contains(e.Text, "the outcome was refused")
	})
	if r := f.record(); r.Replica != "b" || r.Token != next.Token || r.Status != store.Running {
		t.Errorf("the record tells of %s, token %d, %s", r.Replica, r.Token, r.Status)
	}
}
