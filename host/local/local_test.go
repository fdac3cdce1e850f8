package local_test

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/host/storetest"
	"github.com/soloist-go/soloist/store"
)

const (
	id1 = "11111111-1111-4111-8111-111111111111"
	id2 = "22222222-2222-4222-8222-222222222222"
)

// The machine's clock serves a zero store.
func TestMemory(t *testing.T) {
	storetest.Test(t, storetest.Harness{
		New:     func(*testing.T) store.Store { return new(local.Memory) },
		Virtual: true,
	})
}

func TestDir(t *testing.T) {
	storetest.Test(t, storetest.Harness{
		New: func(t *testing.T) store.Store { return local.Dir{Path: t.TempDir(), Now: time.Now} },
		Two: func(t *testing.T) (one, other store.Store) {
			d := local.Dir{Path: t.TempDir(), Now: time.Now}
			return d, local.Dir{Path: d.Path, Now: time.Now}
		},
		Virtual: true,
	})
}

// both runs a test on each store, under a clock of its own.
func both(t *testing.T, f func(t *testing.T, s store.LeaseBreaker, backend store.Store, now *time.Time)) {
	start := time.Date(2026, 11, 21, 2, 30, 0, 123456789, time.UTC)
	t.Run("Memory", func(t *testing.T) {
		now := start
		m := &local.Memory{Now: func() time.Time { return now }}
		f(t, m, m, &now)
	})
	t.Run("Dir", func(t *testing.T) {
		now := start
		d := local.Dir{Path: t.TempDir(), Now: func() time.Time { return now }}
		f(t, d, d, &now)
	})
}

// A clock that was put back by a day does not leave a lease of a day.
func TestClockPutBack(t *testing.T) {
	both(t, func(t *testing.T, b store.LeaseBreaker, s store.Store, now *time.Time) {
		e := create(t, s, "app/job")
		for _, broken := range []bool{false, true} {
			acquire(t, s.Lease("app/job", id1), 10*time.Second, e.ETag)
			want := store.Expired
			if broken {
				want = store.Broken
				if err := b.Break(t.Context(), "app/job", -1); err != nil {
					t.Fatal(err)
				}
			}
			*now = now.Add(-24 * time.Hour)
			if got := state(t, s); !got.Live() {
				t.Errorf("just after: got %q, want a live lease", got)
			}
			*now = now.Add(10 * time.Second)
			wantState(t, "10 s later", s, want)
		}
	})
}

func TestNames(t *testing.T) {
	long := strings.Repeat("n", 63)
	both(t, func(t *testing.T, _ store.LeaseBreaker, s store.Store, _ *time.Time) {
		for _, name := range []string{"app/job", "a/1", "app/.control", ".app/job", long + "/" + long, "app/-"} {
			create(t, s, name)
		}
		for _, name := range []string{
			"", "app", "app/", "/job", "app/job/more", "../job", "app/..", "./job", "app/.", "app/a.b", "App/job",
			"app/jöb", "app/job ", "app/jo b", `app\job`, "/etc/passwd", "app/../../job", "app/job\n", "app/job\x00",
			long + "n/job", "app/" + long + "n", "c:/job", "app/*",
		} {
			wantRefusal(t, "create "+name, errOf(s.Create(t.Context(), name, []byte("x"))))
			wantRefusal(t, "read "+name, errOf(s.Read(t.Context(), name)))
			wantRefusal(t, "acquire "+name, errOf(s.Lease(name, id1).Acquire(t.Context(), local.Shortest, "x")))
		}
	})
}

func TestArguments(t *testing.T) {
	both(t, func(t *testing.T, _ store.LeaseBreaker, s store.Store, _ *time.Time) {
		e := create(t, s, "app/job")
		for _, d := range []time.Duration{-1, 0, local.Shortest - 1, local.Longest + 1} {
			_, err := s.Lease("app/job", id1).Acquire(t.Context(), d, e.ETag)
			wantRefusal(t, "acquire for "+d.String(), err)
			if err != nil && !strings.Contains(err.Error(), "1s to 1m0s") {
				t.Errorf("acquire for %v: got %v, want the limits in it", d, err)
			}
		}
		for _, id := range []string{"", "x", strings.ToUpper("abcdef00-1111-4111-8111-111111111111"), id1 + "0", "{" + id1 + "}", id1[1:], "g" + id1[1:],
			strings.ReplaceAll(id1, "-", "0"), strings.Replace(id1, "-", ":", 1), strings.Repeat("-", 36)} {
			l := s.Lease("app/job", id)
			wantRefusal(t, "acquire under "+id, errOf(l.Acquire(t.Context(), local.Shortest, e.ETag)))
			wantRefusal(t, "renew under "+id, errOf(l.Renew(t.Context())))
			wantRefusal(t, "release under "+id, l.Release(t.Context()))
		}
		l := s.Lease("app/job", id1)
		acquire(t, l, local.Shortest, e.ETag)
		for _, record := range []string{"", " x", "x ", "x\n", "\x7f", "é", strings.Repeat("r", store.MaxRecord+1)} {
			of := record[:min(9, len(record))]
			wantRefusal(t, "write "+of, errOf(l.Write(t.Context(), e.ETag, []byte(record))))
			wantRefusal(t, "save "+of, errOf(save(t, l, e.ETag, record, "")))
			wantRefusal(t, "create "+of, errOf(s.Create(t.Context(), "app/other", []byte(record))))
		}
		wantRefusal(t, "save of a long checkpoint", errOf(save(t, l, e.ETag, "x", strings.Repeat("c", store.MaxCheckpoint+1))))
	})
}

// A call that offends against lease and ETag learns of the ETag.
func TestBothWrong(t *testing.T) {
	both(t, func(t *testing.T, _ store.LeaseBreaker, s store.Store, _ *time.Time) {
		held(t, s, local.Shortest)
		l := s.Lease("app/job", id2)
		wantError(t, "acquire", errOf(l.Acquire(t.Context(), local.Shortest, "old")), store.ErrChanged)
		wantError(t, "write", errOf(l.Write(t.Context(), "old", []byte("x"))), store.ErrChanged)
		wantError(t, "save", errOf(save(t, l, "old", "x", "x")), store.ErrChanged)
		wantError(t, "load", errOf(l.(store.Checkpointer).Load(t.Context(), "old")), store.ErrChanged)
	})
}

// wantRefusal is for what a caller has done wrong: an error, but none that the
// core would take for news of the entry.
func wantRefusal(t *testing.T, what string, err error) {
	t.Helper()
	if err == nil {
		t.Errorf("%s: got no error", what)
	}
	for _, news := range []error{store.ErrHeld, store.ErrLost, store.ErrChanged, fs.ErrExist, fs.ErrNotExist, context.Canceled} {
		if errors.Is(err, news) {
			t.Errorf("%s: got %v, want a refusal", what, err)
		}
	}
}

func wantError(t *testing.T, what string, got, want error) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// errOf is the error of a call, without its answer.
func errOf[T any](_ T, err error) error { return err }

func create(t *testing.T, s store.Store, name string) store.Entry {
	t.Helper()
	e, err := s.Create(t.Context(), name, []byte("0"))
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func acquire(t *testing.T, l store.Lease, d time.Duration, etag string) {
	t.Helper()
	if _, err := l.Acquire(t.Context(), d, etag); err != nil {
		t.Fatal(err)
	}
}

// held makes the entry app/job, leased under id1.
func held(t *testing.T, s store.Store, d time.Duration) (l store.Lease, etag string) {
	t.Helper()
	l, etag = s.Lease("app/job", id1), create(t, s, "app/job").ETag
	acquire(t, l, d, etag)
	return l, etag
}

func save(t *testing.T, l store.Lease, etag, record, checkpoint string) (store.Revision, error) {
	return l.(store.Checkpointer).Save(t.Context(), etag, []byte(record), []byte(checkpoint))
}

// state is that of app/job.
func state(t *testing.T, s store.Store) store.LeaseState {
	t.Helper()
	e, err := s.Read(t.Context(), "app/job")
	if err != nil {
		t.Fatal(err)
	}
	return e.State
}

func wantState(t *testing.T, what string, s store.Store, want store.LeaseState) {
	t.Helper()
	if got := state(t, s); got != want {
		t.Errorf("%s: got %q, want %q", what, got, want)
	}
}
