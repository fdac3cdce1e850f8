package local_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/store"
)

// inMemory is a directory whose writes are fast, where the system has one.
func inMemory(t *testing.T) string {
	path, err := os.MkdirTemp("/dev/shm", "local")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(path) })
	return path
}

// A stage is a directory with an entry whose lease is half over, a document and a log.
type stage struct {
	*testing.T
	m         *machine
	dir       local.Dir // of those who go on
	etag, doc string
}

const length = 10 * time.Second // of the lease

var logName = store.LogName("app/job", "1")

func newStage(t *testing.T) *stage {
	s := &stage{T: t, m: newMachine()}
	s.dir = local.Dir{Path: inMemory(t)}.On(s.m.tell)
	_, s.etag = held(t, s.dir, length)
	doc, err := s.dir.WriteDocument(t.Context(), "app/.doc", "", []byte("0"))
	s.doc = doc.ETag
	if err = errors.Join(err, s.dir.Append(t.Context(), logName, 0, []byte("0"))); err != nil {
		t.Fatal(err)
	}
	s.m.pass(length / 2)
	return s
}

// A view is what others see of the stage.
type view struct {
	entry store.Entry
	doc   string
	log   string
	free  error // of app/free, which is not there at first
}

func (s *stage) look() (v view) {
	ctx := s.Context()
	var err1, err2, err3 error
	v.entry, err1 = s.dir.Read(ctx, "app/job")
	doc, err2 := s.dir.ReadDocument(ctx, "app/.doc", "")
	log, err3 := s.dir.ReadLog(ctx, logName, 0, 100)
	_, v.free = s.dir.Read(ctx, "app/free")
	for _, err := range []error{err1, err2, err3} {
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			s.Fatal(err)
		}
	}
	v.doc, v.log = string(doc.Body), string(log)
	return v
}

// A deal is a call that one process makes and is frozen in, and whether others see that it took effect.
type deal struct {
	call func(ctx context.Context, s *stage, d local.Dir) error
	seen func(v view) bool
}

var deals = map[string]deal{
	"create": {func(ctx context.Context, _ *stage, d local.Dir) error {
		return errOf(d.Create(ctx, "app/free", []byte("x")))
	},
		func(v view) bool { return v.free == nil }},
	"read": {func(ctx context.Context, _ *stage, d local.Dir) error { return errOf(d.Read(ctx, "app/job")) }, nil},
	"acquire": {func(ctx context.Context, s *stage, d local.Dir) error {
		return errOf(d.Lease("app/job", id1).Acquire(ctx, length, s.etag))
	}, func(v view) bool { return v.entry.State == store.Leased }},
	"renew": {func(ctx context.Context, _ *stage, d local.Dir) error {
		return errOf(d.Lease("app/job", id1).Renew(ctx))
	},
		func(v view) bool { return v.entry.State == store.Leased }},
	"write": {func(ctx context.Context, s *stage, d local.Dir) error {
		return errOf(d.Lease("app/job", id1).Write(ctx, s.etag, []byte("frozen")))
	}, func(v view) bool { return string(v.entry.Record) == "frozen" }},
	"save": {func(ctx context.Context, s *stage, d local.Dir) error {
		return errOf(d.Lease("app/job", id1).(store.Checkpointer).Save(ctx, s.etag, []byte("frozen"), []byte("frozen")))
	}, func(v view) bool { return v.entry.Checkpoint == 6 }},
	"release": {func(ctx context.Context, _ *stage, d local.Dir) error { return d.Lease("app/job", id1).Release(ctx) },
		func(v view) bool { return v.entry.State == store.Available }},
	"break unchanged": {func(ctx context.Context, s *stage, d local.Dir) error {
		return d.BreakUnchanged(ctx, "app/job", s.etag)
	},
		func(v view) bool { return v.entry.State == store.Broken }},
	"document": {func(ctx context.Context, s *stage, d local.Dir) error {
		return errOf(d.WriteDocument(ctx, "app/.doc", s.doc, []byte("frozen")))
	}, func(v view) bool { return v.doc == "frozen" }},
	"remove": {func(ctx context.Context, s *stage, d local.Dir) error { return d.Remove(ctx, "app/.doc", s.doc) },
		func(v view) bool { return v.doc == "" }},
	"append": {func(ctx context.Context, _ *stage, d local.Dir) error {
		return d.Append(ctx, logName, 1, []byte("frozen"))
	},
		func(v view) bool { return v.log == "0frozen" }},
}

// A process is frozen before any file operation of any call. The others go on when its lease is over, and when
// it wakes up, its call does nothing to what they have done; it has succeeded only if they have seen that.
func TestFrozenProcessHoldsUpNobody(t *testing.T) {
	for name, deal := range deals {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			var ops []string
			if err := deal.call(t.Context(), s, s.dir.Stopping(func(op, _ string) { ops = append(ops, op) })); err != nil {
				t.Fatal(err)
			}
			if len(ops) < 2 {
				t.Errorf("only %q: the test shows little", ops)
			}
			for at, op := range ops {
				for _, again := range []bool{false, true} {
					freeze(t, deal, at, fmt.Sprintf("%s, frozen before operation %d, %s, removed %t", name, at, op, again), again)
				}
			}
		})
	}
}

func freeze(t *testing.T, deal deal, at int, what string, again bool) {
	t.Helper()
	s := newStage(t)
	frozen, thaw, done := make(chan bool), make(chan bool), make(chan error)
	n := 0
	d := s.dir.Stopping(func(string, string) {
		if n++; n == at+1 {
			frozen <- true
			<-thaw
		}
	})
	go func() { done <- deal.call(context.Background(), s, d) }()
	<-frozen
	s.m.pass(length/2 + time.Second) // a renewed lease lasts on
	seen := s.look()
	s.m.pass(length)
	end := s.goOn(again)
	thaw <- true
	err := <-done
	if deal.seen == nil {
		return
	}
	switch took := deal.seen(seen); {
	case err == nil && !took:
		t.Errorf("%s: it succeeded, and others saw %+v", what, seen)
	case took && (errors.Is(err, store.ErrChanged) || errors.Is(err, store.ErrLost)):
		t.Errorf("%s: it took effect, and returned %v", what, err)
	}
	if now := s.look(); now.doc != end.doc || now.log != end.log || now.entry.ETag != end.entry.ETag || string(now.entry.Record) != "went on" {
		t.Errorf("%s: it changed what others did: got %+v, want %+v", what, now, end)
	}
	if _, err := s.dir.Lease("app/job", id2).Renew(t.Context()); err != nil {
		t.Errorf("%s: the lease of another: %v", what, err)
	}
}

// goOn does what another process does with everything on the stage, perhaps with an entry made anew.
func (s *stage) goOn(again bool) view {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), time.Minute)
	defer cancel()
	v := s.look()
	if again {
		if err := s.dir.Remove(ctx, "app/job", v.entry.ETag); err != nil {
			s.Fatal(err)
		}
		v.entry = create(s.T, s.dir, "app/job")
	}
	l, etag := s.dir.Lease("app/job", id2), v.entry.ETag
	acquire(s.T, l, time.Minute, etag)
	for range 3 {
		r, err := l.Write(ctx, etag, []byte("went on"))
		if err != nil {
			s.Fatal(err)
		}
		etag = r.ETag
	}
	doc, err := s.dir.ReadDocument(ctx, "app/.doc", "")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.Fatal(err)
	}
	for i := range 3 {
		r, err := s.dir.WriteDocument(ctx, "app/.doc", doc.ETag, fmt.Append(nil, i))
		if err != nil {
			s.Fatal(err)
		}
		doc.ETag = r.ETag
	}
	for n := int64(len(v.log)); n < int64(len(v.log))+3; n++ {
		if err := s.dir.Append(ctx, logName, n, []byte("+")); err != nil {
			s.Fatal(err)
		}
	}
	if v.free != nil {
		create(s.T, s.dir, "app/free")
	}
	end := s.look()
	if !strings.HasSuffix(end.log, "+++") || end.doc != "2" {
		s.Fatalf("got %+v", end)
	}
	return end
}

// What a process that was frozen appends to a log that was removed meanwhile is not in the new one.
func TestFrozenAppendToARemovedLog(t *testing.T) {
	s := newStage(t)
	ctx := t.Context()
	n := 0
	d := s.dir.Stopping(func(op, _ string) {
		if op != "append" {
			return
		}
		n++
		if err := errors.Join(s.dir.RemoveLog(ctx, logName), s.dir.Append(ctx, logName, 0, []byte("1"))); err != nil {
			t.Error(err)
		}
	})
	_ = d.Append(ctx, logName, 1, []byte("frozen"))
	if v := s.look(); n != 1 || v.log != "1" {
		t.Errorf("the log has %q after %d appends", v.log, n)
	}
}

// While a process looks at an entry, the holder renews, and the time of the old lease passes. No answer takes the
// lease for expired.
func TestAnswersAreOfTheHighestGeneration(t *testing.T) {
	for name, call := range map[string]func(d local.Dir, etag string) error{
		"read": func(d local.Dir, _ string) error {
			e, err := d.Read(t.Context(), "app/job")
			if e.State != store.Leased {
				t.Errorf("the lease is %s", e.State)
			}
			return err
		},
		"write": func(d local.Dir, etag string) error {
			return errOf(d.Lease("app/job", id1).Write(t.Context(), etag, []byte("x")))
		},
	} {
		s, looks := newStage(t), 0
		d := s.dir.On(func() (time.Time, time.Duration, string) {
			if looks++; looks == 1 {
				if _, err := s.dir.Lease("app/job", id1).Renew(t.Context()); err != nil {
					t.Error(err)
				}
				s.m.pass(length - 1)
			}
			return s.m.tell()
		})
		if err := call(d, s.etag); err != nil || looks != 2 {
			t.Errorf("%s: got %v after %d looks", name, err, looks)
		}
	}
}
