package control

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/soloist-go/soloist/internal/document"
	"github.com/soloist-go/soloist/internal/lease"
	"github.com/soloist-go/soloist/internal/record"
	"github.com/soloist-go/soloist/store"
)

const (
	// CallTimeout is how long one call for the document may take.
	CallTimeout = 3 * time.Second

	orderTries = 20 // several operators may write at the same time
)

// A Client reads and writes the document of one app.
type Client struct {
	Store   store.Documenter
	Entries store.Store // the same: the records say which requests are served
	App     string
	Clock   *lease.Clock
	Jitter  *lease.Jitter
}

// document is what the orders are in.
func (c *Client) document() document.Document {
	return document.Document{Store: c.Store, Name: record.ControlName(c.App), Limit: CallTimeout}
}

// read returns the document and its ETag: an empty one, with an empty ETag, if there is none.
// store.ErrUnchanged: its ETag is etag. Each answer of the store has its date, which the clock
// learns from, since orders have the time of the store and not that of an operator's desk.
func (c *Client) read(ctx context.Context, etag string) (record.Control, string, error) {
	sent := c.Clock.Elapsed()
	d, err := c.document().Read(ctx, etag)
	if err == nil || errors.Is(err, store.ErrUnchanged) {
		c.Clock.Observe(sent, d.Date)
	}
	switch {
	case err != nil:
		return record.Control{}, "", err
	case d.ETag == "":
		return record.Control{App: c.App}, "", nil
	}
	doc, err := record.DecodeControl(d.Body, c.App)
	if err != nil { // it was written by hand, or by a newer program: to read it again would not help
		return doc, d.ETag, Refuse(err)
	}
	return doc, d.ETag, nil
}

// Read returns what is in force and what was ordered.
func (c *Client) Read(ctx context.Context) (record.Control, error) {
	doc, _, err := c.read(ctx, "")
	return doc, err
}

// A version is the document as it was read or written.
type version struct {
	doc     record.Control
	etag    string
	written bool   // by this client
	base    string // if it was written: the ETag of the version that it replaced
}

// order writes an order under an id of its own, by which it finds an earlier try that was applied
// although its answer was lost: without that it might be given twice. It returns the order with
// its number and time.
//
// It gives up when ctx ends, or after some tries. An error that does not say that the order is
// refused leaves open whether it is in force.
//
// The first try is based on v if that is known: the store refuses it if the document has
// changed since. Each other try reads the document. In the end v is the last version.
func (c *Client) order(ctx context.Context, o record.Order, r *record.Record, v *version, known bool) (record.Order, error) {
	o.ID = rand.Text()[:12]
	var doubt error // of a write that may have been applied
	for try := 1; ; try++ {
		var err error
		if try > 1 || !known {
			*v = version{}
			v.doc, v.etag, err = c.read(ctx, "")
		}
		if err == nil {
			if i := slices.IndexFunc(v.doc.Audit, func(old record.Order) bool { return old.ID == o.ID }); i >= 0 {
				return v.doc.Audit[i], nil // an earlier try was applied, and only its answer was lost
			}
			if err = c.write(ctx, v, &o, r); err == nil {
				return o, nil
			}
			if !lease.Definite(err) && !refused(err) {
				doubt = errors.New("it is not known whether the order was written")
			}
		}
		if try == 1 && known { // a newer version may allow what v does not
			continue
		}
		if refused(err) || try == orderTries {
			return o, joined(doubt, err)
		}
		if lease.Sleep(ctx, c.Jitter.UpTo(time.Duration(try)*100*time.Millisecond)); ctx.Err() != nil {
			return o, joined(joined(doubt, err), context.Cause(ctx))
		}
	}
}

// joined puts a doubt before the error that came after it: who reads that the last try was refused
// must also read that an earlier one may have been applied. Then it is not ErrRefused.
func joined(a, b error) error {
	switch {
	case a == nil:
		return b
	case errors.Is(b, ErrRefused):
		return fmt.Errorf("%w: %v", a, b)
	}
	return fmt.Errorf("%w: %w", a, b)
}

// ErrRefused says that an order is not possible, or that the document cannot be used before a
// person has corrected it. Nothing was written, and another try would end likewise.
var ErrRefused = errors.New("refused")

// A refusedError is ErrRefused, with what is wrong as its text.
type refusedError struct{ error }

func (e *refusedError) Unwrap() error { return e.error }

// Refuse makes an error ErrRefused, with the same text.
func Refuse(err error) error { return &refusedError{err} }

// Is makes it ErrRefused.
func (e *refusedError) Is(target error) bool { return target == ErrRefused }

// refused reports whether another try would be refused too, as one without the role that writing
// needs.
func refused(err error) bool {
	return errors.Is(err, ErrRefused) || errors.Is(err, fs.ErrPermission)
}

// write applies the order to the document as it was read, and writes that.
func (c *Client) write(ctx context.Context, v *version, o *record.Order, r *record.Record) error {
	now := c.Clock.Now()
	if now.Latest.IsZero() { // the store gives no dates
		now.Earliest, now.Latest = now.Best, now.Best
	}
	// The earliest that it can be: each tick that comes due after a pause was ordered is of the pause.
	o.At = now.Earliest.UTC().Truncate(time.Millisecond)
	// The number is larger than that of an entry that was made before: see plan.Policy.New.
	o.Seq = now.Latest.UnixMicro() + 1
	if err := Apply(&v.doc, o, r); err != nil {
		return Refuse(err)
	}
	b, err := c.encode(ctx, &v.doc, o)
	if err != nil {
		return Refuse(err)
	}
	sent := c.Clock.Elapsed()
	d, err := c.document().Write(ctx, v.etag, b)
	if err == nil {
		c.Clock.Observe(sent, d.Date)
		v.etag, v.written, v.base = d.ETag, true, v.etag
	}
	return err
}
