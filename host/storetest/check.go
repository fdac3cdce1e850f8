package storetest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/soloist-go/soloist/store"
)

// check is a running test. It collects failures instead of passing them to
// *testing.T at once, because a test that is a listed difference has to fail.
type check struct {
	ctx     context.Context
	store   store.Store
	other   store.Store // another instance over the same place, for tests that need twins
	effect  func(ctx context.Context, tx any, key string) error
	effects func(ctx context.Context, key string) (int, error)
	virtual bool // waiting costs nothing
	done    chan struct{}

	mu       sync.Mutex
	failures []string
	notes    []string
}

func (c *check) errorf(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failures = append(c.failures, fmt.Sprintf(format, args...))
}

// fatalf may be called by the test's own goroutine only.
func (c *check) fatalf(format string, args ...any) {
	c.errorf(format, args...)
	runtime.Goexit()
}

func (c *check) notef(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.notes = append(c.notes, fmt.Sprintf(format, args...))
}

// report waits for the test and reports its failures to t.
func (c *check) report(t *testing.T, listed bool, reason string) {
	t.Helper()
	<-c.done
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, note := range c.notes {
		t.Log(note)
	}
	all := strings.Join(c.failures, "\n")
	switch {
	case listed && all == "":
		t.Errorf("passes, but is listed as a difference: %s", reason)
	case listed:
		t.Logf("differs, as listed: %s\n%s", reason, all)
	case all != "":
		t.Error(all)
	}
}

// errAny stands for an error of any kind.
var errAny = errors.New("an error")

var sentinels = []error{
	store.ErrHeld, store.ErrChanged, store.ErrLost,
	fs.ErrExist, fs.ErrNotExist, fs.ErrPermission, context.Canceled, context.DeadlineExceeded,
}

// wantGone checks the answer to a call with an ETag on an entry that is not
// there: which of the two is judged first is up to the store.
func (c *check) wantGone(what string, err error) {
	if !errors.Is(err, store.ErrChanged) {
		c.want(what, err, fs.ErrNotExist)
	}
}

// wantGoneOrLost is for calls that do not look for the entry first: no caller has
// the lease of a missing entry.
func (c *check) wantGoneOrLost(what string, err error) {
	if !errors.Is(err, store.ErrLost) {
		c.wantGone(what, err)
	}
}

// want checks an error: it has to be the wanted one, and none of the other errors that
// callers distinguish from it.
func (c *check) want(what string, got, want error) {
	if want == errAny && got != nil {
		return
	}
	ok := errors.Is(got, want)
	for _, other := range sentinels {
		ok = ok && (other == want || !errors.Is(got, other))
	}
	if !ok {
		c.errorf("%s: got error %v, want %v", what, got, want)
	}
}

// errOf is the error of a call, without its answer.
func errOf[T any](_ T, err error) error { return err }

func (c *check) must(what string, err error) {
	if err != nil {
		c.fatalf("%s: %v", what, err)
	}
}

// pause lets some time pass between two looks, little against any lease. It
// reports whether the test may go on.
func (c *check) pause() bool {
	shortest, _ := c.store.Limits()
	timer := time.NewTimer(shortest / 64)
	defer timer.Stop()
	select {
	case <-c.ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// together runs n goroutines that start at one moment, and waits for them.
func together(n int, f func(i int)) {
	var wg sync.WaitGroup
	gun := make(chan struct{})
	for i := range n {
		wg.Go(func() {
			<-gun
			f(i)
		})
	}
	close(gun)
	wg.Wait()
}
