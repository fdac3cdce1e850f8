// Package alarm wakes an app up from zero replicas when its next tick is due.
//
// A [Clock] keeps one message in a queue, invisible until a lead before the next tick. The platform starts a replica when
// a message is visible, and keeps it up as long as one is. So between two ticks nothing has to be up.
//
// # The protocol
//
// At the end of each pass over the jobs a replica does this, in this order:
//
//  1. It computes due: when a replica is wanted next, from the records of the jobs.
//  2. HandOver reads the note, a document next to the records that says which message is pending, and in which queue. If that
//     message is in this queue and becomes visible in time, it is put again, since invisible messages cannot be listed: it
//     may be gone. Otherwise the new message is put, invisible until due less the lead.
//  3. The note is written to name the new message, if it has not changed since it was read. If it has, another replica
//     was at it: the note is read again, and decides which of the two messages stays.
//  4. The message that the note named before is deleted, if it is later than the new one, or if the new one is visible.
//  5. Clear deletes the messages that were visible before the pass began. The pass has done what they asked for. It leaves
//     a message of Wake to the version of the program that was deployed, if this process is of the version before.
//
// The new message is put before any old one is deleted, and the visible message that has started a replica stays in the
// queue while the replica works. So a replica that dies between any two calls leaves one of two things: the visible
// message, and the platform starts another replica; or a message that becomes visible in time for the next tick. A message
// that was put and not noted is one too many: it wakes the app once, and the pass after that deletes it.
//
// Which replica runs a tick is decided by claims in the records alone. Messages that are lost, repeated, early or late cost
// a start of a replica, or a delay; they never cause a second run.
//
// # What is not promised
//
// That a message arrives: a queue may lose one, or a person may empty it. A platform's timer, once a day, is the fallback,
// and sets the alarm again. That a start follows at once: platforms look at the queue in intervals. That there is exactly one
// message: replicas that die, or that end their passes together, leave a few, and a later pass deletes them. That the note is
// complete: it only ever names a message that was put, but the queue may have more, and may have lost this one.
//
// # Clocks
//
// Times are by the clock of the storage service, as well as a replica knows it from the dates of its answers. A message is
// deleted only if it has been visible for some seconds when the pass began, so an error of that size loses nothing. A
// replica whose clock is fast by minutes has the app woken up that much too early; one whose clock is slow, too late.
package alarm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/soloist-go/soloist/store"
)

// DefaultLead is how long before a tick its message becomes visible: for the interval in which a platform looks, and the
// start of a replica.
const DefaultLead = time.Minute

// ErrPending is part of an error after which an alarm is pending nevertheless: what failed was the note, or the removal of
// old messages.
var ErrPending = errors.New("the alarm is set, but")

// A Clock keeps one alarm pending for an app. Its methods may be called by many goroutines at once, and on many replicas.
// App, Queue, Notes and Now are needed.
type Clock struct {
	App   string
	Queue Queue
	Notes store.Documenter
	Lead  time.Duration    // zero: DefaultLead; negative: none
	Now   func() time.Time // the store's time, as well as it is known
	Log   *slog.Logger     // nil: nothing is logged

	Work    string    // identifies the jobs of this version of the program; empty: versions are not compared
	Started time.Time // when this process started, by the clock of its machine; zero: before any message

	// What was put last while the note could not be used. No other replica knows of it, so it stays until it is visible.
	unnoted atomic.Pointer[Note]

	taken atomic.Pointer[string] // the ID of the message that the platform has taken last
}

// Set makes sure that a message becomes visible at due less the lead, or before; at once, if that is over. A zero due is
// never: nothing is done. An error means that no alarm may be pending, unless it is ErrPending.
//
// It trusts the note: a message that is in time is not put again.
func (c *Clock) Set(ctx context.Context, due time.Time) error {
	_, err := c.set(ctx, due, false)
	return err
}

// Renew is Set by a process that does not know whether the message of the note is still there. That message is put again, for its
// time, before the old one is deleted.
func (c *Clock) Renew(ctx context.Context, due time.Time) error {
	_, err := c.set(ctx, due, true)
	return err
}

// Ring puts a message that is visible at once, since something was ordered that a replica has to do.
func (c *Clock) Ring(ctx context.Context) error { return c.ring(ctx, "") }

// ring puts a message that is visible at once, for the version of the program with that work; empty: for any.
func (c *Clock) ring(ctx context.Context, work string) error {
	now := c.Now()
	m := newMessage(c.App, now, now)
	m.Work = work
	_, err := c.mailbox().put(ctx, m, now)
	return err
}

// Taken notes that the platform has received a message with this text, and deletes it itself. From then on the note does not
// count if it names this message, even if the message was visible before its time.
func (c *Clock) Taken(text string) {
	if m, isAlarm := decodeMessage(&Message{Body: []byte(text)}); isAlarm && m.App == c.App {
		c.taken.Store(&m.ID)
	}
}

// Clear deletes the messages that were visible before began, the beginning of a pass that has done what was due, and
// returns how many. It takes no longer than a quarter of a minute: of thousands of messages it leaves some to the next pass.
// It leaves the messages of other apps, and the messages of Wake that are for another version, and logs that.
func (c *Clock) Clear(ctx context.Context, began time.Time) (int, error) {
	s := sweep{mailbox: *c.mailbox(), began: began, note: c.Pending, another: c.isForAnother, seen: map[string]bool{}}
	if err := s.run(ctx); err != nil {
		return s.deleted, fmt.Errorf("the queue of alarms could not be cleared: %w", err)
	}
	return s.deleted, nil
}

// HandOver ends a pass that began at began: it renews the next alarm and, once that is pending, clears what the pass has
// answered. It returns what was wrong with either.
func (c *Clock) HandOver(ctx context.Context, due, began time.Time) error {
	if now := c.Now(); began.After(now) { // the clock was corrected meanwhile; what is put now must not look answered
		began = now
	}
	pending, err := c.set(ctx, due, true)
	if !pending {
		return err
	}
	_, clearing := c.Clear(ctx, began)
	if clearing != nil {
		clearing = fmt.Errorf("%w old ones are left in the queue: %w", ErrPending, clearing)
	}
	return errors.Join(err, clearing)
}

// Pending returns what the note says is pending; the zero Note: there is none. One whose At is over may be gone.
func (c *Clock) Pending(ctx context.Context) (Note, error) {
	n, err := c.read(ctx)
	return n.Note, err
}

// Elsewhere reports whether the alarm of a note is in another queue than the clock's.
func (c *Clock) Elsewhere(n Note) bool { return n.Queue != nameOf(c.Queue) }

// lead returns Lead with its default.
func (c *Clock) lead() time.Duration {
	if c.Lead == 0 {
		return DefaultLead
	}
	return max(0, c.Lead)
}

// mailbox returns the queue as the app uses it, with a log if there is none.
func (c *Clock) mailbox() *mailbox {
	return &mailbox{c.App, c.Queue, c.Now, cmp.Or(c.Log, slog.New(slog.DiscardHandler))}
}
