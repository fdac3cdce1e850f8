package web

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/store"
)

// A slowLister takes its time for each listing, of so many locks.
type slowLister struct {
	*local.Memory
	takes   time.Duration
	names   int
	err     error
	listed  int
	stopped error // why the last listing ended early
}

func (l *slowLister) List(ctx context.Context, app string, f func(string, store.Entry) bool) error {
	l.listed++
	select {
	case <-ctx.Done():
		l.stopped = context.Cause(ctx)
		return l.stopped
	case <-time.After(l.takes):
	}
	for i := range l.names {
		f(fmt.Sprintf("%s/0-lock-tenant-%d", app, i), store.Entry{})
	}
	return l.err
}

// looks wants this of a look at the shelf.
func (s *lockShelf) looks(t *testing.T, locks int, note string, longest time.Duration) {
	t.Helper()
	begin := time.Now()
	r, got := s.look(t.Context())
	if took := time.Since(begin); len(r.Locks) != locks || !strings.Contains(got, note) || (note == "") != (got == "") || took > longest {
		t.Errorf("got %d locks, %q after %s, want %d, %q within %s", len(r.Locks), got, took, locks, note, longest)
	}
}

// A listing of very many names takes long. Nobody waits for all of it, and it is not begun again and
// again: its answer is there for those who ask later.
func TestListingThatTakesLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, all := &slowLister{takes: 40 * time.Second, names: 8000}, sync.WaitGroup{}
		s := newLockShelf(l, "demo", all.Go, t.Context())
		var askers sync.WaitGroup
		for range 3 {
			askers.Go(func() { s.looks(t, 0, "They are being listed, which takes long", locksWait) })
		}
		askers.Wait()
		all.Wait()
		s.looks(t, 8000, "", 0)
		time.Sleep(19 * time.Second)
		if s.looks(t, 8000, "", 0); l.listed != 1 {
			t.Errorf("listed %d times, want once", l.listed)
		}
		time.Sleep(time.Second)
		l.err = errors.New("403 no right")
		s.looks(t, 8000, "", locksWait) // what is known is told meanwhile
		all.Wait()
		if s.looks(t, 8000, "cannot be listed: 403 no right", 0); l.listed != 2 {
			t.Errorf("listed %d times, want twice", l.listed)
		}
	})
}

// A listing does not keep a program from its end, and one that hangs is given up.
func TestListingEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		closed, end := context.WithCancel(t.Context())
		l, all := &slowLister{takes: time.Hour}, sync.WaitGroup{}
		s := newLockShelf(l, "demo", all.Go, closed)
		s.looks(t, 0, "They are being listed", locksWait)
		begin := time.Now()
		end()
		if all.Wait(); time.Since(begin) != 0 || l.stopped == nil {
			t.Errorf("it ended %s after the program, with %v", time.Since(begin), l.stopped)
		}
		s = newLockShelf(l, "demo", all.Go, t.Context())
		s.looks(t, 0, "They are being listed", locksWait)
		all.Wait()
		s.looks(t, 0, "cannot be listed: context deadline exceeded", 0)
	})
}
