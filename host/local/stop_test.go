//go:build unix

package local_test

import (
	"errors"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/store"
)

// A holder that is stopped is replaced when its lease has run out, and finds
// nothing left of it when it goes on.
func TestDirStopped(t *testing.T) {
	t.Parallel()
	d := local.Dir{Path: t.TempDir()}
	e := create(t, d, "app/job")
	began := time.Now()
	c := start(t, "hold", d.Path)
	if got, want := <-c.lines, "holds"; got != want {
		t.Fatalf("the holder said %q, want %q", got, want)
	}
	signal(t, c, syscall.SIGSTOP)
	next := d.Lease("app/job", newID())
	_, err := next.Acquire(t.Context(), local.Longest, e.ETag)
	for errors.Is(err, store.ErrHeld) && time.Since(began) < time.Minute {
		<-time.After(5 * time.Millisecond)
		_, err = next.Acquire(t.Context(), local.Longest, e.ETag)
	}
	if err != nil {
		t.Fatalf("acquire by the next: %v", err)
	}
	if took := time.Since(began); took < local.Shortest {
		t.Errorf("replaced after %v, want at least %v", took, local.Shortest)
	}
	if _, err := c.in.Write([]byte("go on\n")); err != nil {
		t.Fatal(err)
	}
	signal(t, c, syscall.SIGCONT)
	for _, call := range []string{"write", "renew", "release"} {
		if got, want := <-c.lines, "true"; got != want {
			t.Errorf("late %s is lost: got %q, want %q", call, got, want)
		}
	}
	if _, err := next.Write(t.Context(), e.ETag, []byte("next")); err != nil {
		t.Errorf("write by the next: %v", err)
	}
}

// A process is stopped at any instant, again and again. The other goes on when the lease is over, and no count is lost
// or given twice.
func TestDirStoppedAnywhere(t *testing.T) {
	t.Parallel()
	d := local.Dir{Path: t.TempDir()}
	create(t, d, "app/job")
	j := &journal{t: t, holds: make(map[string]*stretch), counts: make(map[int]bool)}
	pair := []*child{start(t, "count", d.Path), start(t, "count", d.Path)}
	watch := watch(t, d)
	for turn := range *kills {
		stopped, other := pair[turn%2], pair[1-turn%2]
		<-time.After(time.Duration(rand.IntN(50)) * time.Millisecond)
		signal(t, stopped, syscall.SIGSTOP)
		for len(other.lines) > 0 {
			j.note(<-other.lines)
		}
		late := time.After(local.Shortest + 2*time.Second)
		for range 3 { // the first lines may be of a hold that it had
			select {
			case line := <-other.lines:
				j.note(line)
			case <-late:
				t.Fatal("the other process does not go on")
			}
		}
		signal(t, stopped, syscall.SIGCONT)
	}
	for _, c := range pair {
		c.kill()
		j.drain(c)
	}
	j.check(watch(), 2)
}

func signal(t *testing.T, c *child, s syscall.Signal) {
	t.Helper()
	if err := c.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}
