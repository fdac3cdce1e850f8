// Package local keeps the entries of a scheduler on one machine, in memory or in
// a directory.
//
// [Memory] is for one process: a test, or a single replica. [Dir] is a directory
// that several processes share, the default when there is no storage service.
//
// Both keep the lease rules of Azure blobs, so that what works here works
// there: the same states, the same outcome of each call in each state. Their
// leases last [Shortest] to [Longest]. ETags are random, so none ever returns,
// not even after an entry was deleted and made again. Where a call offends
// against both the lease and the ETag, it learns of the ETag.
//
// A Dir is for one machine. Nothing stops two machines from sharing one, so a
// lease stays safe then: their clocks are not compared, and a machine finds the
// lease of another free only when it has seen it unchanged for its whole length.
// The same machine after a restart counts as another: a lease of the dead keeps
// the job waiting for its length once more, a minute at most. This takes a system
// that reports when it started, which only Linux does, by /proc.
//
// At most 65 machines may share a Dir: more of them do not free a dead one's lease.
//
// # What is not promised
//
//   - A Dir on a network file system, whose links and renames differ.
//   - Where the system does not report the time since it started: a Dir that two
//     machines share, and a lease of a Dir that lasts its whole length while the
//     machine's clock is put forward. If it is put back, the lease lasts its length
//     again from the next call on.
package local

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/soloist-go/soloist/store"
)

// entry is all that a store keeps under one name. The zero value says that
// there is no entry. It is comparable, to see whether a call changed it.
type entry struct {
	ETag       string  `json:"etag"`
	Record     string  `json:"record"`
	Checkpoint content `json:"checkpoint,omitempty"`
	Lease      lease   `json:"lease,omitzero"`
}

// content is bytes of any kind, as a string to be comparable. In JSON it is
// base64: a string there would lose what is no UTF-8.
type content string

func (c content) MarshalText() ([]byte, error) {
	return base64.StdEncoding.AppendEncode(nil, []byte(c)), nil
}

func (c *content) UnmarshalText(text []byte) error {
	b, err := base64.StdEncoding.AppendDecode(nil, text)
	*c = content(b)
	return err
}

func (e *entry) exists() bool { return e.ETag != "" }

func (e *entry) write(record []byte) {
	e.Record = string(record)
	e.ETag = rand.Text()
}

// guard lets the holder pass who has seen the entry as it is.
func (e *entry) guard(id, etag string, now time.Time) error {
	if e.ETag != etag {
		return store.ErrChanged
	}
	return e.Lease.check(id, now)
}

// A change works on the entry at an instant of the store's clock. A change
// that fails has changed nothing.
type change func(e *entry, now time.Time) error

// An update is all that differs between the stores: it hands the entry, which
// may not exist, to a change, alone, and keeps what became of it. It returns the
// entry as it is now, and when, which it also returns if there is none.
type update func(ctx context.Context, name string, f change) (entry, time.Time, error)

// apply is the part of an update that all stores share.
func (e *entry) apply(f change, now time.Time) error {
	e.Lease.rebase(now)
	return f(e, now)
}

// do runs one call: it checks the name, lets f have the entry if there is one,
// and says in an error what was to be done.
func (u update) do(ctx context.Context, verb, name string, f change) (entry, time.Time, error) {
	e, now, err := u.try(ctx, name, func(e *entry, now time.Time) error {
		if !e.exists() {
			return fs.ErrNotExist
		}
		return f(e, now)
	})
	if err != nil {
		err = fmt.Errorf("%s %q: %w", verb, name, err)
	}
	return e, now, err
}

func (u update) try(ctx context.Context, name string, f change) (entry, time.Time, error) {
	if err := checkName(name); err != nil {
		return entry{}, time.Time{}, err
	}
	if err := ctx.Err(); err != nil {
		return entry{}, time.Time{}, err
	}
	return u(ctx, name, f)
}

// remove removes an entry without a lease, if ours says that its ETag is the one that was seen.
func (u update) remove(ctx context.Context, name string, ours func(etag string) bool) error {
	_, _, err := u.do(ctx, "delete", name, func(e *entry, now time.Time) error {
		switch {
		case e.Lease.state(now).Live():
			return store.ErrLost
		case !ours(e.ETag):
			return store.ErrChanged
		}
		*e = entry{}
		return nil
	})
	return err
}

func (u update) create(ctx context.Context, name string, record []byte) (store.Entry, error) {
	err := checkRecord(record)
	var e entry
	var now time.Time
	if err == nil {
		e, now, err = u.try(ctx, name, func(e *entry, _ time.Time) error {
			if e.exists() {
				return fs.ErrExist
			}
			e.write(record)
			return nil
		})
	}
	if err != nil {
		return store.Entry{}, fmt.Errorf("create %q: %w", name, err)
	}
	return e.public(now), nil
}

func (u update) read(ctx context.Context, name string) (store.Entry, error) {
	e, now, err := u.do(ctx, "read", name, func(*entry, time.Time) error { return nil })
	if err != nil {
		return store.Entry{Revision: store.Revision{Date: now}}, err
	}
	return e.public(now), nil
}

// end ends the lease after a period, if ours says that the ETag of the entry is the one that was seen.
func (u update) end(ctx context.Context, name string, period time.Duration, ours func(etag string) bool) error {
	_, _, err := u.do(ctx, "break the lease of", name, func(e *entry, now time.Time) error {
		if !ours(e.ETag) {
			return store.ErrChanged
		}
		return e.Lease.end(period, now)
	})
	return err
}

// always takes an entry with any ETag, only one with that ETag.
func always(string) bool                     { return true }
func only(etag string) func(now string) bool { return func(now string) bool { return now == etag } }

func (e *entry) public(now time.Time) store.Entry {
	return store.Entry{
		Revision:   store.Revision{ETag: e.ETag, Date: now},
		Record:     []byte(e.Record),
		State:      e.Lease.state(now),
		Checkpoint: int64(len(e.Checkpoint)),
	}
}

// clock reads now, or the machine's clock if there is none.
func clock(now func() time.Time) time.Time {
	if now == nil {
		now = time.Now
	}
	return now().UTC()
}

// handle is the lease of one name under one id.
type handle struct {
	update   update
	name, id string
}

var _ store.Combiner = handle{}

func (h handle) Acquire(ctx context.Context, d time.Duration, etag string) (store.Revision, error) {
	return h.do(ctx, "acquire the lease of", h.acquired(d, etag))
}

func (h handle) acquired(d time.Duration, etag string) change {
	return func(e *entry, now time.Time) error {
		if err := checkLength(d); err != nil {
			return err
		}
		if e.ETag != etag {
			return store.ErrChanged
		}
		return e.Lease.acquire(h.id, d, now)
	}
}

func (h handle) Renew(ctx context.Context) (store.Revision, error) {
	return h.do(ctx, "renew the lease of", func(e *entry, now time.Time) error {
		return e.Lease.renew(h.id, now)
	})
}

func (h handle) Write(ctx context.Context, etag string, record []byte) (store.Revision, error) {
	return h.do(ctx, "write", h.written(etag, record))
}

func (h handle) written(etag string, record []byte) change {
	return func(e *entry, now time.Time) error {
		if err := checkRecord(record); err != nil {
			return err
		}
		if err := e.guard(h.id, etag, now); err != nil {
			return err
		}
		e.write(record)
		return nil
	}
}

func (h handle) AcquireWrite(ctx context.Context, d time.Duration, etag string, record []byte) (store.Revision, error) {
	return h.do(ctx, "acquire the lease of, and write", both(h.acquired(d, etag), h.written(etag, record)))
}

func (h handle) WriteRelease(ctx context.Context, etag string, record []byte) (store.Revision, error) {
	return h.do(ctx, "write, and release the lease of", both(h.written(etag, record), h.released))
}

// both makes one change of two.
func both(first, second change) change {
	return func(e *entry, now time.Time) error {
		was := *e
		err := first(e, now)
		if err == nil {
			err = second(e, now)
		}
		if err != nil {
			*e = was
		}
		return err
	}
}

func (h handle) Save(ctx context.Context, etag string, record, checkpoint []byte) (store.Revision, error) {
	return h.do(ctx, "save", func(e *entry, now time.Time) error {
		if err := errors.Join(checkRecord(record), checkCheckpoint(len(checkpoint))); err != nil {
			return err
		}
		if err := e.guard(h.id, etag, now); err != nil {
			return err
		}
		e.write(record)
		e.Checkpoint = content(checkpoint)
		return nil
	})
}

func (h handle) Load(ctx context.Context, etag string) ([]byte, error) {
	var checkpoint []byte
	_, err := h.do(ctx, "load the checkpoint of", func(e *entry, now time.Time) error {
		checkpoint = []byte(e.Checkpoint)
		return e.guard(h.id, etag, now)
	})
	if err != nil {
		return nil, err
	}
	return checkpoint, nil
}

func (h handle) Release(ctx context.Context) error {
	_, err := h.do(ctx, "release the lease of", h.released)
	return err
}

func (h handle) released(e *entry, _ time.Time) error { return e.Lease.release(h.id) }

func (h handle) do(ctx context.Context, verb string, f change) (store.Revision, error) {
	e, now, err := h.update.do(ctx, verb, h.name, func(e *entry, now time.Time) error {
		if err := checkID(h.id); err != nil {
			return err
		}
		return f(e, now)
	})
	if err != nil {
		return store.Revision{}, err
	}
	return store.Revision{ETag: e.ETag, Date: now}, nil
}
