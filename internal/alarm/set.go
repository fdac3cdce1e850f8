package alarm

import (
	"context"
	"errors"
	"fmt"
	"time"
)

const noteTries = 8 // other replicas may write the note at the same time

// set is Set or, if anew, Renew. It also reports whether an alarm is pending, or none is needed.
func (c *Clock) set(ctx context.Context, due time.Time, anew bool) (pending bool, err error) {
	if due.IsZero() {
		return true, nil
	}
	before, unread := c.read(ctx)
	now := c.Now()
	by := now.Add(max(0, min(due.Sub(now)-c.lead(), Longest))) // the latest instant at which it has to be visible
	if unread == nil && c.suffices(before.Note, now, by) {
		if !anew {
			return true, nil
		}
		by = before.At // its message is put again
	}
	own := c.unnoted.Swap(nil)
	known := own != nil && c.suffices(*own, now, by)
	if known && anew {
		by, known = own.At, false
	}
	if !known {
		added, err := c.put(ctx, by, due, own)
		if err != nil {
			c.unnoted.CompareAndSwap(nil, own)
			return false, err
		}
		own = added
	}
	if unread != nil {
		err = notKept(unread)
	} else {
		err = c.note(ctx, *own, by, before)
	}
	if errors.Is(err, ErrPending) {
		c.unnoted.Store(own)
	}
	return true, err
}

// suffices reports whether the alarm is still to come, and comes in time. An alarm that the platform has taken does not
// suffice, nor does an alarm in another queue, which the platform no longer reads.
func (c *Clock) suffices(n Note, now, by time.Time) bool {
	taken := c.taken.Load()
	return n.suffices(now, by) && n.Queue == nameOf(c.Queue) && (taken == nil || n.ID != *taken)
}

// put puts a message that is visible at an instant. A later message that no note names is not needed any more.
func (c *Clock) put(ctx context.Context, at, due time.Time, later *Note) (*Note, error) {
	m := newMessage(c.App, at, due)
	receipt, err := c.mailbox().put(ctx, m, at)
	if err != nil {
		return nil, err
	}
	own := &Note{ID: m.ID, At: m.At, Tick: m.Tick, Receipt: receipt, Queue: nameOf(c.Queue)}
	if later != nil {
		c.supersede(ctx, *own, *later)
	}
	return own, nil
}

// note has the note name an alarm that was put, unless another replica's alarm suffices, which is visible by then.
func (c *Clock) note(ctx context.Context, own Note, by time.Time, before version) (err error) {
	for range noteTries {
		if err = c.write(ctx, own, before.etag); err == nil {
			c.supersede(ctx, own, before.Note)
			return nil
		}
		// Another replica has written it, or an answer was lost.
		now, unread := c.read(ctx)
		switch {
		case unread != nil:
			return notKept(unread)
		case now.ID == own.ID:
			c.supersede(ctx, own, before.Note)
			return nil
		case c.suffices(now.Note, c.Now(), by):
			c.mailbox().drop(ctx, own.Receipt)
			return nil
		}
		before = now
	}
	return notKept(err)
}

// supersede deletes the message that the note named before, if the new one does all that it would do. One in another queue
// cannot be reached.
func (c *Clock) supersede(ctx context.Context, own, before Note) {
	if before.ID != "" && !c.Elsewhere(before) && (!own.At.After(before.At) || !own.At.After(c.Now())) {
		c.mailbox().drop(ctx, before.Receipt)
	}
}

// notKept returns the error of an alarm that is pending and not noted.
func notKept(err error) error {
	return fmt.Errorf("%w its note cannot be used, so each process sets one of its own: %w", ErrPending, err)
}
