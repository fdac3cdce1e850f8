// Package store is the contract between Soloist and the place of its leases and
// records. A [Store] of one's own implements it; host/storetest checks that.
package store

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// A Store keeps one entry per job: a record, and a lease that guards it.
//
// The name of an entry is "app/job", each of 1 to 63 lower-case letters, digits
// and hyphens, perhaps after a dot. A record is printable ASCII of at most
// [MaxRecord] bytes that neither begins nor ends with a space and has no two in
// a row; the store does not look inside, and gives back the very bytes.
//
// Methods may be called by many goroutines at once. They keep none of the bytes
// that they are given, and what they return is the caller's. They return soon
// after their context ends; the caller sets it, and the store repeats nothing
// by itself: whether an unclear call is worth repeating depends on the lease's
// deadline, which only the caller knows.
//
// Errors are, by [errors.Is], one of the sentinels that a method names; where
// two fit, either of them, so ErrChanged may also say that the entry is gone or
// leased. Every method may also say fs.ErrPermission (credentials missing, wrong
// or without the right role). A sentinel says that the call was not applied and
// will not be later: after such an answer to a claim the lease is released. Any
// other error is unclear: the call may or may not have been applied.
type Store interface {
	// Create makes the entry with its first record, unleased.
	// fs.ErrExist: there is one, whose record is untouched.
	Create(ctx context.Context, name string, record []byte) (Entry, error)

	// Read returns record, ETag, state of the lease and the service's time as
	// one consistent view. It needs no lease. fs.ErrNotExist: no such entry;
	// Date is told all the same, since a new entry starts from it.
	Read(ctx context.Context, name string) (Entry, error)

	// Lease returns a handle on the entry's lease under an id of the caller's
	// choice, a lower-case UUID. It talks to nobody.
	Lease(name, id string) Lease

	// Limits returns the shortest and longest lease, inclusive. Jobs ask for
	// whole seconds, for 30 where they do not say.
	Limits() (shortest, longest time.Duration)
}

// A Lease is the right to write one entry, for a limited time, under one id.
// An id serves one acquisition, ever: it is what tells a late call of an old
// holder from a call of the new one.
//
// The service alone judges expiry, by one clock. A lease does not end before its
// time, counted from when the call was sent: its holder relies on that, and on
// no more, so it may end a little late. An expired lease may be renewed by its
// id while nobody has written or leased the entry since; that success proves
// that nobody else held it in between.
type Lease interface {
	// Acquire takes the lease for d if the entry's ETag is still etag. Under
	// an id that holds it already it succeeds again, with d from now on, so a
	// call whose answer was lost can be repeated. ErrHeld: it is leased under
	// another id, or being broken. ErrChanged: another ETag. fs.ErrNotExist.
	// Some error: d is not within the limits.
	Acquire(ctx context.Context, d time.Duration, etag string) (Revision, error)

	// Renew starts the time of the lease anew, with the length it was acquired
	// for. ErrLost: it is not ours any more, or was broken. fs.ErrNotExist.
	Renew(ctx context.Context) (Revision, error)

	// Write replaces the record if the lease is active under this id, or being
	// broken, and the ETag is still etag. It is no renewal. ErrLost: not the
	// holder, or expired. ErrChanged: another ETag. fs.ErrNotExist.
	Write(ctx context.Context, etag string, record []byte) (Revision, error)

	// Release ends the lease, active, expired or broken. ErrLost: it was not
	// ours, or is released. fs.ErrNotExist.
	Release(ctx context.Context) error
}

// A Checkpointer is a [Lease] whose entry can keep a checkpoint beside its record, up
// to [MaxCheckpoint] bytes of any kind, and no more; a new entry's is empty. It
// outlasts leases. Without it Save and Load of a run fail.
type Checkpointer interface {
	// Save is Write that replaces the checkpoint too: both or neither. Of an
	// entry that is gone it may say ErrLost.
	Save(ctx context.Context, etag string, record, checkpoint []byte) (Revision, error)

	// Load returns the checkpoint if the lease is active under this id and the
	// ETag is still etag; its errors are those of Write. ErrTooLarge: there is a
	// checkpoint of more than MaxCheckpoint bytes; the run gets the error and
	// nothing else is affected.
	Load(ctx context.Context, etag string) ([]byte, error)
}

// A LeaseBreaker is a [Store] in which an operator can end the lease of another.
type LeaseBreaker interface {
	// Break ends the lease after period, in whole seconds up to a minute, or
	// when it would have ended if that is sooner or period is negative. At zero
	// it ends at once, while its holder may still work. An expired lease can
	// not be renewed after it. ErrLost: there is no lease. fs.ErrNotExist.
	Break(ctx context.Context, name string, period time.Duration) error
}

// A Revision is what every answer of a store carries that is no error.
type Revision struct {
	// ETag changes with each write of the entry, also one of the same record,
	// never with its lease. An entry has none twice, nor one of an entry of
	// that name which was deleted. A success without one counts as an error of
	// unclear outcome, as if something other than the store had answered.
	ETag string

	// Date is the service's clock at some moment of the call, cut to whole
	// seconds by some. Zero: not told. Ticks then come by the clock of each
	// replica, and a run cannot know which ticks came due under it: after its end
	// they are judged by the Missed of its job, and those that are not run are recorded as
	// missed, not as skipped.
	Date time.Time
}

// An Entry is what one read tells.
type Entry struct {
	Revision
	Record     []byte
	State      LeaseState
	Checkpoint int64 // its length in bytes; zero where the store does not tell
}

// LeaseState is the state of a lease, in the words of the Lease Blob
// operation (https://learn.microsoft.com/rest/api/storageservices/lease-blob).
type LeaseState string

const (
	Available LeaseState = "available" // never leased, released, or written since it ended
	Leased    LeaseState = "leased"
	Expired   LeaseState = "expired"  // ran out; its last id may still renew it
	Breaking  LeaseState = "breaking" // an operator broke it; its holder has it until its time is up
	Broken    LeaseState = "broken"   // an operator ended it, perhaps before its time
)

// Live reports whether somebody holds the lease.
func (s LeaseState) Live() bool { return s == Leased || s == Breaking }

// MaxRecord is the longest record in bytes. Azure limits all metadata of a
// blob to 8 KiB (https://learn.microsoft.com/rest/api/storageservices/setting-and-retrieving-properties-and-metadata-for-blob-resources);
// the difference is room for the header's name.
const MaxRecord = 8<<10 - 64

// MaxCheckpoint is the largest checkpoint in bytes: one that takes long to send
// would stand in the way of renewals.
const MaxCheckpoint = 1 << 20

// What a store answers. fs.ErrExist, fs.ErrNotExist and fs.ErrPermission complete
// the list.
var (
	ErrHeld    = errors.New("the lease is held by another replica")
	ErrChanged = errors.New("the record was changed by another replica")
	ErrLost    = errors.New("the lease is lost")

	// ErrTooLarge is an answer of [Checkpointer.Load] only.
	ErrTooLarge = fmt.Errorf("the checkpoint is larger than %d bytes: something other than this program wrote it", MaxCheckpoint)
)
