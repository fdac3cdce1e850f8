package soloist

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"time"
)

// A book is the record as one hold writes it: one write at a time, each on the
// ETag of the one before.
type book struct {
	turn chan struct{}   // has room for one writer
	etag string          // of the entry
	rec  Record          // as last written
	ours map[string]bool // the nonces of all writes of this hold
}

func newBook(etag string, rec *Record) book {
	return book{turn: make(chan struct{}, 1), etag: etag, rec: *rec, ours: map[string]bool{}}
}

// A page is one write: the record, encoded, and perhaps a checkpoint with it.
type page struct {
	nonce      string
	record     []byte
	checkpoint []byte // nil: it stays as it is
}

// write makes the next record by draft and sends it. What is not known to be
// written is not in the book.
func (h *hold) write(ctx context.Context, draft func(*Record), checkpoint []byte, send func(context.Context, *page) error) error {
	select {
	case h.turn <- struct{}{}:
		defer func() { <-h.turn }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	next := h.rec.clone()
	draft(&next)
	next.Writer = rand.Text()
	b, err := next.encode()
	if err != nil {
		return err
	}
	h.ours[next.Writer] = true
	if err := send(ctx, &page{next.Writer, b, checkpoint}); err != nil {
		return err
	}
	h.rec = next
	return nil
}

// once sends a page. Where the answer is lost, a later write finds out.
func (h *hold) once(ctx context.Context, p *page) error {
	ctx, cancel := context.WithTimeout(ctx, h.try())
	defer cancel()
	sent := h.clock.elapsed()
	stamp, err := h.put(ctx, p)
	if err != nil {
		return err
	}
	h.clock.observe(sent, stamp.Date)
	h.etag = stamp.ETag
	return nil
}

func (h *hold) put(ctx context.Context, p *page) (Stamp, error) {
	if p.checkpoint == nil {
		return h.lease.Write(ctx, h.etag, p.record)
	}
	return h.lease.(Keeper).Save(ctx, h.etag, p.record, p.checkpoint)
}

// twice is for a claim. After an unclear answer it reads who wrote last, and
// sends once more if nobody did.
func (h *hold) twice(ctx context.Context, p *page) error {
	for last := false; ; last = true {
		err := h.once(ctx, p)
		if err == nil {
			return nil
		}
		mine, rerr := h.readBack(ctx, p.nonce)
		switch {
		case mine:
			return nil
		case errors.Is(rerr, ErrChanged):
			return fmt.Errorf("%w: %w", ErrChanged, err)
		case rerr != nil:
			return fmt.Errorf("%v, and reading it back: %w", err, rerr)
		case last || definite(err):
			return err
		}
	}
}

// lasting is for what has to be written if it can be: it sends until the
// outcome is known. A lease that ran out while nobody took it is renewed first.
// ErrLost or ErrChanged: another replica has the entry.
func (h *hold) lasting(ctx context.Context, p *page) error {
	pause := h.backoff(h.length / 30)
	for try := 1; ; try++ {
		known, err := h.settle(ctx, p)
		h.tell(try, err)
		if known {
			return err
		}
		if sleep(ctx, pause.next()); ctx.Err() != nil {
			return errors.Join(err, context.Cause(ctx))
		}
	}
}

// settle sends a page and finds out what became of it. It returns false if that
// is not known, or not decided yet.
func (h *hold) settle(ctx context.Context, p *page) (known bool, err error) {
	etag := h.etag
	if err = h.once(ctx, p); err == nil {
		return true, nil
	}
	mine, rerr := h.readBack(ctx, p.nonce)
	switch {
	case mine:
		return true, nil
	case errors.Is(rerr, ErrChanged):
		return true, fmt.Errorf("%w: %w", ErrChanged, err)
	case errors.Is(rerr, fs.ErrNotExist):
		return true, rerr
	case rerr == nil && errors.Is(err, ErrLost):
		if err = h.renew(ctx); err == nil {
			err = h.once(ctx, p)
			return err == nil, err
		}
		return definite(err), err
	}
	return rerr == nil && definite(err) && h.etag == etag, err
}

// stopping reports whether the record says that the run is to be handed over.
func (h *hold) stopping() bool {
	h.turn <- struct{}{}
	defer func() { <-h.turn }()
	return h.rec.Stopping
}

// progress drafts how far the run is, which it told at elapsed time now.
func (h *hold) progress(now time.Duration, note string) func(*Record) {
	at := h.clock.best().Add(now - h.clock.elapsed())
	return func(r *Record) { r.Progress = Progress{Note: note, At: at.Truncate(time.Millisecond).UTC()} }
}

// load reads the checkpoint, again and again until the outcome is known.
func (h *hold) load(ctx context.Context) ([]byte, error) {
	select {
	case h.turn <- struct{}{}:
		defer func() { <-h.turn }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	pause := h.backoff(h.length / 30)
	for {
		b, err := h.loadOnce(ctx)
		if err == nil || definite(err) {
			return b, err
		}
		if sleep(ctx, pause.next()); ctx.Err() != nil {
			return nil, errors.Join(err, context.Cause(ctx))
		}
	}
}

func (h *hold) loadOnce(ctx context.Context) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, h.try())
	defer cancel()
	return h.lease.(Keeper).Load(ctx, h.etag)
}

// readBack reports whether the write with the nonce was the last one. If an
// earlier one of this hold was, whose answer was lost, its ETag is the one to
// go on from. ErrChanged: somebody else has written.
func (h *hold) readBack(ctx context.Context, nonce string) (mine bool, err error) {
	entry, err := h.read(ctx)
	if err != nil {
		return false, err
	}
	last := writer(entry.Record)
	if entry.ETag != h.etag && !h.ours[last] {
		return false, ErrChanged
	}
	h.etag = entry.ETag
	return last == nonce, nil
}

// writer returns the nonce of the write that left record b.
func writer(b []byte) string {
	var r struct{ Writer string }
	if json.Unmarshal(b, &r) != nil {
		return ""
	}
	return r.Writer
}
