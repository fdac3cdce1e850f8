package filelock_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist/internal/filelock"
)

func TestLockExcludes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	const goroutines, rounds = 8, 50
	var wg sync.WaitGroup
	for range goroutines {
		wg.Go(func() {
			for range rounds {
				unlock, err := filelock.Lock(t.Context(), path)
				if err != nil {
					t.Error(err)
					return
				}
				seen := readCount(t, path)
				writeCount(t, path, seen+1)
				if err := unlock(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if got, want := readCount(t, path), goroutines*rounds; got != want {
		t.Errorf("counted %d, want %d", got, want)
	}
}

// readCount and writeCount keep a number as the length of a file, which
// nothing but the lock protects.
func readCount(t *testing.T, path string) int {
	info, err := os.Stat(path + ".count")
	if errors.Is(err, fs.ErrNotExist) {
		return 0
	}
	if err != nil {
		t.Error(err)
		return 0
	}
	return int(info.Size())
}

func writeCount(t *testing.T, path string, n int) {
	if err := os.WriteFile(path+".count", make([]byte, n), 0o600); err != nil {
		t.Error(err)
	}
}

func TestLockEndsWithContext(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	synctest.Test(t, func(t *testing.T) {
		unlock, err := filelock.Lock(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := filelock.Lock(ctx, path); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("while it is locked: got %v, want %v", err, context.DeadlineExceeded)
		}
		if err := unlock(); err != nil {
			t.Fatal(err)
		}
		again, err := filelock.Lock(t.Context(), path)
		if err != nil {
			t.Fatalf("after unlock: %v", err)
		}
		if err := again(); err != nil {
			t.Error(err)
		}
	})
}

// The file that Lock makes is locked at once, without a wait for others.
func TestLockOfANewFileDoesNotWait(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		unlock, err := filelock.Lock(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took != 0 {
			t.Errorf("it took %v, want nothing", took)
		}
		if err := unlock(); err != nil {
			t.Error(err)
		}
	})
}

// A lock on a file that was removed under its holder excludes only the past:
// the next one locks the new file, and the one after waits for that.
func TestLockRemovedFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	synctest.Test(t, func(t *testing.T) {
		first, err := filelock.Lock(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		waiting := make(chan error, 1)
		go func() {
			unlock, err := filelock.Lock(t.Context(), path)
			if err == nil {
				err = unlock()
			}
			waiting <- err
		}()
		if err := os.Remove(path); err != nil {
			t.Skipf("this system keeps a locked file: %v", err)
		}
		if err := <-waiting; err != nil {
			t.Errorf("after the file was removed: %v", err)
		}
		if err := first(); err != nil {
			t.Error(err)
		}
	})
}

func TestLockErrors(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "no", "lock")
	if _, err := filelock.Lock(t.Context(), missing); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing directory: got %v, want %v", err, fs.ErrNotExist)
	}
	path := filepath.Join(t.TempDir(), "lock")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := filelock.Lock(ctx, path); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: got %v, want %v", err, context.Canceled)
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a cancelled call made the file: %v", err)
	}
}
