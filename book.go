package soloist

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"
)

// A book is the record as one hold writes it: one write at a time, each on the
// ETag of the one before.
type book struct {
	turn    chan struct{} // has room for one writer
	rec     Record        // as last written, or perhaps written: what follows says the same
	etag    string        // of the entry
	unclear bool          // etag may be that of the write before
	doubt   bool          // a write on etag was sent and not answered: it may still be applied
	ours    []mark        // the writes of this hold that may be what the entry holds, oldest first
}

// A mark tells a write of this hold from others. The digest is of the whole
// record, since somebody may change that and leave the nonce in it.
type mark struct {
	nonce  string
	digest [sha256.Size]byte
}

// maxUnclear limits the writes of unclear outcome that a hold remembers. One that
// is forgotten and applied later counts as another replica's, which ends the hold.
const maxUnclear = 100

func newBook(etag string, rec *Record) book {
	return book{turn: make(chan struct{}, 1), etag: etag, rec: *rec}
}

// remember keeps the mark of a page that is about to be sent.
func (b *book) remember(p *page) {
	m := mark{p.nonce, sha256.Sum256(p.record)}
	if slices.Contains(b.ours, m) {
		return
	}
	b.ours = append(b.ours, m)
	if extra := len(b.ours) - maxUnclear; extra > 0 {
		b.ours = slices.Delete(b.ours, 0, extra)
	}
}

// wrote reports whether a write of this hold left the record.
func (b *book) wrote(record []byte) bool {
	return slices.Contains(b.ours, mark{writer(record), sha256.Sum256(record)})
}

// moved takes the ETag that the write with the nonce got. Other writes asked for
// an older ETag, so the store refuses them from now on.
func (b *book) moved(etag, nonce string) {
	b.etag, b.unclear, b.doubt = etag, false, false
	b.ours = slices.DeleteFunc(b.ours, func(m mark) bool { return m.nonce != nonce })
}

// A page is one write: the record, encoded, and perhaps a checkpoint with it.
type page struct {
	nonce      string
	record     []byte
	checkpoint []byte // nil: it stays as it is
}

// write makes the next record by draft and sends it.
func (h *hold) write(ctx context.Context, draft func(*Record), checkpoint []byte, send func(context.Context, *page) error) error {
	if err := h.takeTurn(ctx); err != nil {
		return err
	}
	defer h.endTurn()
	next := h.rec.clone()
	draft(&next)
	next.Writer = rand.Text()
	b, err := next.encode()
	if err != nil {
		return fmt.Errorf("%w: %w", errNotEncoded, err)
	}
	h.rec = next
	return send(ctx, &page{next.Writer, b, checkpoint})
}

func (h *hold) takeTurn(ctx context.Context) error {
	select {
	case h.turn <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if ctx.Err() != nil { // it ended while others had their turn
		h.endTurn()
		return context.Cause(ctx)
	}
	return nil
}

func (h *hold) endTurn() { <-h.turn }

// once sends a page. Where the answer is lost, the next call finds out.
func (h *hold) once(ctx context.Context, p *page) error {
	ctx, cancel := context.WithTimeout(ctx, h.try())
	defer cancel()
	h.remember(p)
	sent := h.clock.elapsed()
	stamp, err := stamped(h.put(ctx, p))
	if err != nil {
		h.unclear, h.doubt = true, h.doubt || !refused(err)
		return err
	}
	h.clock.observe(sent, stamp.Date)
	h.moved(stamp.ETag, p.nonce)
	return nil
}

// catchUp learns the ETag where the last answer was lost, and whether that was
// to the write with the nonce.
func (h *hold) catchUp(ctx context.Context, nonce string) (mine bool, err error) {
	if !h.unclear {
		return false, nil
	}
	return h.readBack(ctx, nonce)
}

// courtesy is for what others may know: it is sent once.
func (h *hold) courtesy(ctx context.Context, p *page) error {
	if _, err := h.catchUp(ctx, p.nonce); err != nil {
		return err
	}
	return h.once(ctx, p)
}

func (h *hold) put(ctx context.Context, p *page) (Stamp, error) {
	if p.checkpoint == nil {
		return h.lease.Write(ctx, h.etag, p.record)
	}
	return h.lease.(Keeper).Save(ctx, h.etag, p.record, p.checkpoint)
}

// errNotWritten: the store has refused each sending of a write, which therefore
// will not be applied later either.
var errNotWritten = errors.New("nothing was written")

// errNotEncoded: the record does not fit, so nothing was sent.
var errNotEncoded = errors.New("the record cannot be written")

// errNotConfirmed: the caller gave up before it knew whether a write was applied.
var errNotConfirmed = errors.New("the write was not confirmed")

// errNotReadBack: whether a write was applied is not known.
var errNotReadBack = errors.New("reading it back")

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
			return fmt.Errorf("%v, and %w: %w", err, errNotReadBack, rerr)
		case refused(err) && !h.doubt:
			return fmt.Errorf("%w: %w", errNotWritten, err)
		case last || refused(err):
			return err
		}
	}
}

// lasting is for what has to be written if it can be: it sends until the
// outcome is known. A lease that ran out while nobody took it is renewed first.
// ErrLost or ErrChanged: another replica has the entry.
func (h *hold) lasting(ctx context.Context, p *page) error {
	return h.insist(ctx, p, func() {})
}

// outcomePatience is for how many lengths of the lease a replica that cannot write an
// outcome goes on renewing: a short outage of writes loses no outcome.
const outcomePatience = 4

// conclude is lasting for the outcome of a run that has returned. A replica that
// cannot write it for longer stops renewing, whatever the errors are: other
// replicas could not run the job as long as the lease lasts.
func (h *hold) conclude(ctx context.Context, p *page) error {
	begin := h.clock.elapsed()
	return h.insist(ctx, p, func() {
		if h.clock.elapsed()-begin >= outcomePatience*h.length {
			h.giveUp()
		}
	})
}

// insist sends until the outcome is known, and calls failed each time that it is
// not.
func (h *hold) insist(ctx context.Context, p *page, failed func()) error {
	pause := h.backoff(h.length / 30)
	for try := 1; ; try++ {
		known, err := h.settle(ctx, p)
		h.tell(try, err)
		if known {
			return err
		}
		failed()
		if sleep(ctx, pause.next()); ctx.Err() != nil {
			return errors.Join(err, context.Cause(ctx), errNotConfirmed)
		}
	}
}

// settle sends a page and finds out what became of it. It returns false if that
// is not known, or not decided yet.
func (h *hold) settle(ctx context.Context, p *page) (known bool, err error) {
	mine, err := h.catchUp(ctx, p.nonce)
	if mine {
		return true, nil
	}
	if err != nil {
		return definite(err), err
	}
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

// progress drafts how far the run is, which it told at the time beat.
func (h *hold) progress(beat time.Time, note string) func(*Record) {
	at := h.clock.best().Add(-time.Since(beat))
	return func(r *Record) { r.Progress = Progress{Note: note, At: at.Truncate(time.Millisecond).UTC()} }
}

// load reads the checkpoint, again and again until the outcome is known.
func (h *hold) load(ctx context.Context) ([]byte, error) {
	if err := h.takeTurn(ctx); err != nil {
		return nil, err
	}
	defer h.endTurn()
	pause := h.backoff(h.length / 30)
	for try := 1; ; try++ {
		b, err := h.loadOnce(ctx)
		if errors.Is(err, ErrChanged) && !h.unclear { // perhaps by a write of ours that came late
			h.unclear = true
			b, err = h.loadOnce(ctx)
		}
		if errors.Is(err, ErrTooLarge) { // the store has answered, and will say the same again
			h.tell(try, nil)
			return nil, err
		}
		h.tell(try, err)
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
	if _, err := h.catchUp(ctx, ""); err != nil {
		return nil, err
	}
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
	switch {
	case entry.ETag == h.etag: // an unclear write may still be applied
		h.unclear = false
	case h.wrote(entry.Record):
		h.moved(entry.ETag, last)
	default:
		return false, ErrChanged
	}
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
