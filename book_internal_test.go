package soloist

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist/internal/elapsed"
)

// A sheet is a [Store] of one entry, under a lease that never ends.
type sheet struct {
	Store
	record []byte
	etag   int
	meet   func(apply func() error) error // stands between the holder and a write; nil: nothing does
}

func (s *sheet) Read(context.Context, string) (Entry, error) {
	return Entry{Stamp: Stamp{ETag: strconv.Itoa(s.etag)}, Record: s.record, State: Leased}, nil
}

func (s *sheet) write(etag string, record []byte) error {
	if etag != strconv.Itoa(s.etag) {
		return ErrChanged
	}
	s.record, s.etag = record, s.etag+1
	return nil
}

// A pen is the lease of a sheet.
type pen struct {
	Lease
	sheet *sheet
}

func (p *pen) Write(_ context.Context, etag string, record []byte) (Stamp, error) {
	apply := func() error { return p.sheet.write(etag, record) }
	var err error
	if p.sheet.meet != nil {
		err = p.sheet.meet(apply)
	} else {
		err = apply()
	}
	return Stamp{ETag: strconv.Itoa(p.sheet.etag)}, err
}

func (s *sheet) hold() *hold {
	c := &cell{store: s, length: 30 * time.Second, dice: newDice(""),
		clock: &serviceClock{wall: time.Now, elapsed: elapsed.Now}}
	return &hold{cell: c, lease: &pen{sheet: s}, length: c.length, book: newBook("0", &Record{})}
}

var errNetwork = errors.New("no answer")

// What is written again and again takes no more memory than what is written once.
func TestConfirmedWritesAreForgotten(t *testing.T) {
	s := &sheet{}
	h := s.hold()
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
		if err := h.write(t.Context(), func(r *Record) { r.Attempt = i }, nil, h.twice); err != nil {
			t.Fatal(err)
		}
		if len(h.ours) != 1 {
			t.Fatalf("after write %d it remembers %d writes", i, len(h.ours))
		}
	}
}

// A write whose answer was lost is known as this hold's when it is applied late,
// also after others that came to nothing.
func TestALateWriteIsKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &sheet{}
		h := s.hold()
		var late func() error
		s.meet = func(apply func() error) error {
			if late == nil {
				late = apply
			}
			return errNetwork
		}
		for range maxUnclear {
			if err := h.write(t.Context(), func(*Record) {}, nil, h.courtesy); !errors.Is(err, errNetwork) {
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
		if err := h.write(t.Context(), func(*Record) {}, nil, h.lasting); err != nil {
			t.Errorf("the next write: %v", err)
		}
		if len(h.ours) != 1 {
			t.Errorf("it remembers %d writes", len(h.ours))
		}
	})
}

// Of writes that come to nothing only so many are remembered. An older one that
// is applied late counts as another replica's.
func TestUnclearWritesAreLimited(t *testing.T) {
	s := &sheet{}
	h := s.hold()
	var late func() error
	s.meet = func(apply func() error) error {
		if late == nil {
			late = apply
		}
		return errNetwork
	}
	for range 10 * maxUnclear {
		_ = h.write(t.Context(), func(*Record) {}, nil, h.courtesy)
	}
	if len(h.ours) > maxUnclear {
		t.Errorf("it remembers %d writes", len(h.ours))
	}
	s.meet = nil
	if err := late(); err != nil {
		t.Fatal(err)
	}
	if err := h.write(t.Context(), func(*Record) {}, nil, h.courtesy); !errors.Is(err, ErrChanged) {
		t.Errorf("the next write: %v", err)
	}
}
