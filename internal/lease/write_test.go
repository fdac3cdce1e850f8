package lease

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/internal/elapsed"
	"github.com/soloist-go/soloist/internal/record"
	"github.com/soloist-go/soloist/store"
)

// A sheet is a store.Store of one entry, under a lease that never ends.
type sheet struct {
	store.Store
	record []byte
	etag   int
	meet   func(apply func() error) error // stands between the holder and a write; nil: nothing does
	mute   bool                           // a read gets no answer
}

func (s *sheet) Read(context.Context, string) (store.Entry, error) {
	if s.mute {
		return store.Entry{}, errNetwork
	}
	return store.Entry{Revision: store.Revision{ETag: strconv.Itoa(s.etag)}, Record: s.record, State: store.Leased}, nil
}

func (s *sheet) write(etag string, record []byte) error {
	if etag != strconv.Itoa(s.etag) {
		return store.ErrChanged
	}
	s.record, s.etag = record, s.etag+1
	return nil
}

// A pen is the lease of a sheet.
type pen struct {
	store.Lease
	sheet *sheet
}

func (p *pen) Write(_ context.Context, etag string, record []byte) (store.Revision, error) {
	apply := func() error { return p.sheet.write(etag, record) }
	var err error
	if p.sheet.meet != nil {
		err = p.sheet.meet(apply)
	} else {
		err = apply()
	}
	return store.Revision{ETag: strconv.Itoa(p.sheet.etag)}, err
}

func (s *sheet) session() *Session {
	c := &Client{Store: s, Length: 30 * time.Second, Jitter: NewJitter(""),
		Clock: &Clock{Wall: time.Now, Elapsed: elapsed.Now}}
	return newSession(c, &pen{sheet: s}, "0", &record.Record{}, c.Length)
}

var errNetwork = errors.New("no answer")

// What is written again and again takes no more memory than what is written once.
func TestConfirmedWritesAreForgotten(t *testing.T) {
	s := &sheet{}
	h := s.session()
	n := 0
	s.meet = func(apply func() error) error { // each third answer is lost
		if err := apply(); err != nil {
			return err
		}
		if n++; n%3 == 0 {
			return errNetwork
		}
		return nil
	}
	for i := range 1000 {
		if err := h.WriteConfirmed(t.Context(), func(r *record.Record) { r.Run.Attempt = i }); err != nil {
			t.Fatal(err)
		}
		if len(h.ours) != 1 {
			t.Fatalf("after write %d it remembers %d writes", i, len(h.ours))
		}
	}
}

// A write whose answer was lost is known as this session's when it is applied late,
// also after others that came to nothing.
func TestALateWriteIsKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &sheet{}
		h := s.session()
		var late func() error
		s.meet = func(apply func() error) error {
			if late == nil {
				late = apply
			}
			return errNetwork
		}
		for range maxUnclear {
			if err := h.WriteBestEffort(t.Context(), func(*record.Record) {}); !errors.Is(err, errNetwork) {
				t.Fatal(err)
			}
		}
		s.meet = func(apply func() error) error { // the first of the next write's answers is lost
			s.meet = nil
			return errors.Join(apply(), errNetwork)
		}
		if err := late(); err != nil {
			t.Fatal(err)
		}
		if err := h.WriteUntilKnown(t.Context(), func(*record.Record) {}, nil); err != nil {
			t.Errorf("the next write: %v", err)
		}
		if len(h.ours) != 1 {
			t.Errorf("it remembers %d writes", len(h.ours))
		}
	})
}

// A write without an answer has come to nothing if a read shows that another replica has written.
func TestAnotherWriteAnswersAnUnclearOne(t *testing.T) {
	s := &sheet{}
	s.meet = func(func() error) error {
		s.record, s.etag = []byte("{}"), s.etag+1
		return errNetwork
	}
	if err := s.session().WriteConfirmed(t.Context(), func(*record.Record) {}); !errors.Is(err, store.ErrChanged) || !errors.Is(err, errNetwork) {
		t.Errorf("got %v", err)
	}
}

// A write that is sent again may be refused since its first sending was applied just before: nothing is lost by that.
func TestARefusalByTheFirstSending(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &sheet{}
		h := s.session()
		var first func() error
		s.meet = func(apply func() error) error {
			if first == nil {
				first = apply
				return errNetwork
			}
			s.meet = nil
			return errors.Join(first(), apply())
		}
		if err := h.WriteUntilKnown(t.Context(), func(*record.Record) {}, nil); err != nil {
			t.Error(err)
		}
	})
}

// Of writes that come to nothing only so many are remembered. An older one that
// is applied late counts as another replica's.
func TestUnclearWritesAreLimited(t *testing.T) {
	s := &sheet{}
	h := s.session()
	var late func() error
	s.meet = func(apply func() error) error {
		if late == nil {
			late = apply
		}
		return errNetwork
	}
	for range 10 * maxUnclear {
		_ = h.WriteBestEffort(t.Context(), func(*record.Record) {})
	}
	if len(h.ours) > maxUnclear {
		t.Errorf("it remembers %d writes", len(h.ours))
	}
	s.meet = nil
	if err := late(); err != nil {
		t.Fatal(err)
	}
	if err := h.WriteBestEffort(t.Context(), func(*record.Record) {}); !errors.Is(err, store.ErrChanged) {
		t.Errorf("the next write: %v", err)
	}
}

// Once the outcome is written nothing follows it: a Save by a goroutine that the run
// has left behind may come that late, while the record is read without a turn.
func TestNothingFollowsTheOutcome(t *testing.T) {
	s := (&sheet{}).session()
	ctx := t.Context()
	if err := s.WriteOutcome(ctx, func(r *record.Record) { r.Run.Error = "the outcome" }, func(*record.Record) bool { return false }); err != nil {
		t.Fatal(err)
	}
	err := s.WriteUntilKnown(ctx, func(r *record.Record) { r.Run.Error = "later" }, []byte("1"))
	if !errors.Is(err, ErrClosed) || s.Record().Run.Error != "the outcome" {
		t.Errorf("got %v, and the record says %q", err, s.Record().Run.Error)
	}
	if _, err := s.Load(ctx); !errors.Is(err, ErrClosed) {
		t.Errorf("Load: got %v", err)
	}
}

// A lease must expire while the entry may show a run that may be under way, by the last answer.
func TestLeaseThatMustExpire(t *testing.T) {
	running := func(r *record.Record) { r.Run.Status = event.Running }
	over := func(r *record.Record) { r.Run.Status = event.Succeeded }
	lost := func(apply func() error) error { _ = apply(); return errNetwork }
	refused := func(func() error) error { return store.ErrLost }
	for _, c := range []struct {
		name   string
		before event.Status
		draft  Draft // nil: nothing is written
		meet   func(apply func() error) error
		mute   bool // the reads after the write get no answer
		want   bool
	}{
		{"nothing is written", event.Succeeded, nil, nil, false, false},
		{"a dead run, and nothing is written", event.Running, nil, nil, false, true},
		{"a claim", event.Succeeded, running, nil, false, true},
		{"a claim without answer that is read back", event.Succeeded, running, lost, false, true},
		{"a claim without any answer", event.Succeeded, running, lost, true, true},
		{"a claim that is refused", event.Succeeded, running, refused, false, false},
		{"a claim over a dead run that is refused", event.Running, running, refused, false, true},
		{"an outcome", event.Running, over, nil, false, false},
		{"an outcome without any answer", event.Running, over, lost, true, true},
		{"settled ticks without any answer", event.Succeeded, over, lost, true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			sheet := &sheet{meet: c.meet, mute: c.mute}
			s := sheet.session()
			s.ledger = newLedger("0", &record.Record{Run: record.Run{Status: c.before}})
			if c.draft != nil {
				_ = s.WriteConfirmed(t.Context(), c.draft)
			}
			if got := s.MustExpire(); got != c.want {
				t.Errorf("it must expire: %v", got)
			}
		})
	}
}
