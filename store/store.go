// Package store is the contract between Soloist and the storage that keeps its leases and
// records. A program can bring a [Store] of its own: package [host/storetest] tests it, and
// package [examples/sqlstore] is one to be copied. What a store can do beyond a Store is an
// interface of its own, such as [Lister]; the rest works without.
//
// [host/storetest]: https://pkg.go.dev/github.com/soloist-go/soloist/host/storetest
// [examples/sqlstore]: https://pkg.go.dev/github.com/soloist-go/soloist/examples/sqlstore
package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// A Store keeps one entry per job: a record, and a lease that guards it.
//
// The name of an entry is "app/job", each of 1 to 63 lower-case letters, digits
// and hyphens, perhaps after a dot. A record is printable ASCII of at most
// [MaxRecord] bytes that neither begins nor ends with a space and has no two spaces
// in a row. The store does not interpret it, and returns exactly the bytes that were
// written.
//
// Methods may be called by many goroutines at once. They keep none of the bytes that
// they are given, and the caller owns the bytes that they return. They return soon
// after their context ends. The store does not repeat a call: whether an unclear call
// is worth repeating depends on the deadline of the lease, which only the caller knows.
//
// Each method names the errors that it returns, as sentinels for [errors.Is]. Where
// two fit it may return either, so ErrChanged may also mean that the entry is gone or
// leased. Every method may return fs.ErrPermission: the credentials are missing, wrong
// or without the right role. A sentinel means that the call was not applied and will
// not be applied later: after such an answer to a claim the caller releases the lease.
// Any other error is unclear: the call may or may not have been applied.
type Store interface {
	// Create creates the entry with its first record, not leased.
	// fs.ErrExist: the entry exists, and its record is unchanged.
	Create(ctx context.Context, name string, record []byte) (Entry, error)

	// Read returns record, ETag, state of the lease and the service's time as
	// one consistent view. It needs no lease. fs.ErrNotExist: no such entry;
	// the answer still has a Date, since a new entry starts from it. The
	// Date of any other error is not used.
	Read(ctx context.Context, name string) (Entry, error)

	// Lease returns a handle on the entry's lease under an id that the caller
	// chooses, a lower-case UUID. It makes no call to the service.
	Lease(name, id string) Lease

	// Limits returns the shortest and the longest lease that the store accepts,
	// inclusive. Jobs ask for whole seconds, and for 30 s by default.
	Limits() (shortest, longest time.Duration)
}

// A Lease is the right to write one entry, for a limited time, under one id.
// An id serves one acquisition, ever: by its id the service distinguishes a late
// call of an old holder from a call of the new one.
//
// The service alone judges expiry, by its clock. A lease does not end before its
// time, counted from when the call was sent: its holder relies on that. It may end
// a little late. An expired lease may be renewed under its id as long as the entry
// has neither been written nor leased since; the success of the renewal then proves
// that no other id held the lease in between.
type Lease interface {
	// Acquire takes the lease for d if the entry's ETag is still etag. Under
	// an id that holds the lease already it succeeds again, with d from now on, so
	// that a call whose answer was lost can be repeated. ErrHeld: the entry is leased
	// under another id, or its lease is being broken. ErrChanged: another ETag.
	// fs.ErrNotExist. If d is not within the limits, it returns some error.
	Acquire(ctx context.Context, d time.Duration, etag string) (Revision, error)

	// Renew restarts the time of the lease, with the length it was acquired
	// for. ErrLost: the lease is another id's, or was broken. fs.ErrNotExist.
	Renew(ctx context.Context) (Revision, error)

	// Write replaces the record if the lease is active under this id, or being
	// broken, and the ETag is still etag. It does not renew the lease. ErrLost: this id
	// is not the holder, or the lease has expired. ErrChanged: another ETag.
	// fs.ErrNotExist.
	Write(ctx context.Context, etag string, record []byte) (Revision, error)

	// Release ends the lease, be it active, expired or broken. ErrLost: it is another
	// id's, or released already. fs.ErrNotExist.
	Release(ctx context.Context) error
}

// A Checkpointer is a [Lease] whose entry can keep a checkpoint next to its record: up
// to [MaxCheckpoint] bytes of any kind. A new entry's is empty. A checkpoint
// outlasts leases. With a Lease that is no Checkpointer, Save and Load of a run fail.
type Checkpointer interface {
	// Save is Write that also replaces the checkpoint: both or neither. Of an
	// entry that is gone it may return ErrLost.
	Save(ctx context.Context, etag string, record, checkpoint []byte) (Revision, error)

	// Load returns the checkpoint if the lease is active under this id and the
	// ETag is still etag; it returns the errors of Write. ErrTooLarge: there is a
	// checkpoint of more than MaxCheckpoint bytes; the run gets the error and
	// nothing else is affected.
	Load(ctx context.Context, etag string) ([]byte, error)
}

// A Documenter is a [Store] that keeps documents next to the entries: up to [MaxDocument]
// bytes of any kind, under a name with a dot after the slash, "app/.document", which no job
// has. A document has no lease: its ETag alone guards it. Operators' orders are in one; a store that is no Documenter
// takes none.
type Documenter interface {
	// ReadDocument returns the document and its ETag. ErrUnchanged: its ETag is etag, and
	// nothing is transferred; the Date is still set. An empty etag is no document's.
	// fs.ErrNotExist: there is none, with a Date. ErrTooLarge: it has more than MaxDocument
	// bytes.
	ReadDocument(ctx context.Context, name, etag string) (Document, error)

	// WriteDocument replaces the document if its ETag is etag; if etag is empty, it creates
	// the document if there is none. ErrChanged: another ETag, or none where one was
	// expected, or one where none was.
	WriteDocument(ctx context.Context, name, etag string, body []byte) (Revision, error)
}

// A Document is the result of one read of a document.
type Document struct {
	Revision
	Body []byte
}

// A Combiner is a [Checkpointer] that takes two steps in one call, so that a tick costs two calls in place of four. Both
// steps are applied at one instant, or neither. A call returns the errors of both steps, and the Revision after them.
type Combiner interface {
	Checkpointer

	// AcquireWrite is Acquire, and then Write with the same ETag. A repeated call is refused, since the
	// first has changed the ETag. The caller then uses another id. So the store sends it once: the refusal of a repetition
	// of its own would say that the call was not applied.
	AcquireWrite(ctx context.Context, d time.Duration, etag string, record []byte) (Revision, error)

	// WriteRelease is Write, and then Release.
	WriteRelease(ctx context.Context, etag string, record []byte) (Revision, error)
}

// A Transactor is a [Combiner] in a database, which writes the record in one transaction with what the program
// writes into the same database.
type Transactor interface {
	Combiner

	// Transact calls f with a new transaction, tx, of the database's own type, and commits it if f returns nil and a
	// write has succeeded. If f returns an error or panics, or there was no such write, it rolls back; it returns the
	// error of f as it is, else that of the write. After an error of COMMIT the transaction may have been committed. f
	// calls write at most once, after its other statements: it locks the row of the entry, which the renewals of the
	// lease need.
	Transact(ctx context.Context, f func(tx any, write TransactionWrite) error) (Revision, error)
}

// A TransactionWrite is Save in a transaction, or Write if the checkpoint is nil. It judges the lease when it is called. It
// is refused if f has ended the transaction itself.
type TransactionWrite func(ctx context.Context, etag string, record, checkpoint []byte) error

// A Lister is a [Store] that lists the entries of an app in few calls. Without it, each
// entry is read by itself.
type Lister interface {
	// List calls f for each entry of app, in the order of their names, until f returns
	// false. It leaves out what has a dot after the slash, such as documents. An app
	// without entries is no error. Each entry is what a read of it at some moment of the
	// call would return, not all at the same moment; an entry that is made or removed during
	// the call may be listed or not. f may call the store. If List fails, it has called f for
	// some entries.
	List(ctx context.Context, app string, f func(name string, e Entry) bool) error
}

// An Appender is a [Store] that keeps logs next to the entries: bytes that are appended and
// never changed. An entry has any number of logs; [LogName] returns a log's name.
// Without an Appender, the history of a job is what its record has of it.
type Appender interface {
	// Append appends b, 1 to [MaxAppend] bytes, to a log that has size bytes. If size is
	// zero, it makes the log if there is none. ErrChanged: the log has another size, or
	// there is none. It appends all of b or nothing; only after a crash of the store itself
	// may a log end with a part of it. A log takes [MaxLog] bytes in up to 50,000 appends.
	Append(ctx context.Context, name string, size int64, b []byte) error

	// ReadLog returns the bytes of a log from offset on, at most n; none, if it ends
	// there. fs.ErrNotExist.
	ReadLog(ctx context.Context, name string, offset int64, n int) ([]byte, error)

	// Logs calls f for each log of an entry, in the order of their names, until f returns
	// false. None is no error. The entry need not exist. f may call the store.
	Logs(ctx context.Context, entry string, f func(name string, size int64) bool) error

	// RemoveLog removes a log. fs.ErrNotExist.
	RemoveLog(ctx context.Context, name string) error
}

// LogName returns the name of a log of the entry "app/job": "app/.log/job/part". A part has
// 1 to 63 lower-case letters, digits and hyphens.
func LogName(entry, part string) string {
	app, job, _ := strings.Cut(entry, "/")
	return app + "/.log/" + job + "/" + part
}

// A LeaseBreaker is a [Store] that lets an operator end the lease of a holder.
type LeaseBreaker interface {
	// Break ends the lease after period, in whole seconds up to a minute. It ends
	// when it would have expired if that is sooner, or if period is negative. A period
	// of zero ends it at once, while its holder may still work. After Break an
	// expired lease can not be renewed. ErrLost: there is no lease. fs.ErrNotExist.
	Break(ctx context.Context, name string, period time.Duration) error
}

// A ConditionalBreaker is a [LeaseBreaker] that also ends a lease only if the entry has not changed. A
// holder that writes its record at short intervals proves by each new ETag that it is alive; a replica that
// has seen one ETag for long enough takes over with it, before the lease has expired.
type ConditionalBreaker interface {
	// BreakUnchanged ends the lease at once if the entry's ETag is still etag: an active
	// lease, an expired one, and a lease that is being broken or was broken before. The lease is
	// then broken: it can not be renewed, and nothing is written under it. The ETag stays, so
	// the lease can be acquired with it. ErrChanged: another ETag; the lease goes on.
	// ErrLost: it is available, so there is no lease to end. fs.ErrNotExist.
	//
	// The call may be repeated after an unclear answer, since it ends a broken lease again.
	// To acquire changes no ETag either, so a call that is repeated or comes late may also
	// end the lease of a replica that has acquired it with that ETag and has not yet written.
	BreakUnchanged(ctx context.Context, name, etag string) error
}

// A Watcher is a [Store] that lets replicas know of changes. What it says is a hint: it may be lost, come twice, or be
// false. Replicas read no less without it; with it they read sooner.
type Watcher interface {
	// Watch calls changed with the name of an entry or a document of the app soon after another replica has made it, has
	// released or broken its lease, or has written the document. It need not for renewals and records that are written. As
	// soon as it gets to know of changes, also after each gap, it calls changed with an empty name. It returns when ctx ends, or with an error
	// if the store cannot do this as it is set up. It waits out any other failure. changed must not block.
	Watch(ctx context.Context, app string, changed func(name string)) error
}

// A Remover is a [Store] that removes entries that are no longer needed, such as entries of locks that
// are not used. The entry of a job must stay: a new one does not know which ticks were run.
type Remover interface {
	// Remove removes the entry and its checkpoint if its ETag is etag and no lease of it is
	// live; what was written or leased since the caller has looked stays. ErrLost: it is leased.
	// ErrChanged: another ETag. fs.ErrNotExist.
	Remove(ctx context.Context, name, etag string) error
}

// A Revision is part of every successful answer of a store.
type Revision struct {
	// ETag changes with each write of the entry, even with a write of the same
	// record, and never with its lease. It never returns to an earlier value, not
	// even when an entry of that name was deleted and created again. The caller takes
	// a success without an ETag for an error of unclear outcome, as if something other
	// than the store had answered.
	ETag string

	// Date is the service's clock at some moment of the call; some services cut it
	// to whole seconds. Zero: the store gives no date. Then ticks come due by the clock
	// of each replica, and a run cannot know which ticks came due under it. After its end
	// Late.Missed of the job decides about them, and those that are not run are recorded as
	// missed, not as skipped.
	Date time.Time
}

// An Entry is the result of one read.
type Entry struct {
	Revision
	Record     []byte
	State      LeaseState
	Checkpoint int64 // its length in bytes; zero if the store does not know it
}

// LeaseState is the state of a lease, in the words of the Lease Blob
// operation (https://learn.microsoft.com/rest/api/storageservices/lease-blob).
type LeaseState string

const (
	Available LeaseState = "available" // never leased, released, or written since its lease ended
	Leased    LeaseState = "leased"
	Expired   LeaseState = "expired"  // expired; its last id may still renew it
	Breaking  LeaseState = "breaking" // an operator broke it; its holder has it until its time is up
	Broken    LeaseState = "broken"   // an operator ended it; its holder may still trust it
)

// Live reports whether the lease has a holder.
func (s LeaseState) Live() bool { return s == Leased || s == Breaking }

// MaxRecord is the longest record in bytes. Azure limits all metadata of a
// blob to 8 KiB (https://learn.microsoft.com/rest/api/storageservices/setting-and-retrieving-properties-and-metadata-for-blob-resources);
// the difference is room for the header's name.
const MaxRecord = 8<<10 - 64

// MaxDocument is the largest document in bytes; it is read by each replica after each change.
const MaxDocument = 1 << 20

// MaxAppend is the most that one Append takes, MaxLog what a log takes, in bytes.
const (
	MaxAppend = 64 << 10
	MaxLog    = 4 << 20
)

// MaxCheckpoint is the largest checkpoint in bytes: sending a larger one could take so long
// that the lease is not renewed in time.
const MaxCheckpoint = 1 << 20

// These, and fs.ErrExist, fs.ErrNotExist and fs.ErrPermission, are the errors that a store
// returns as its answer.
var (
	ErrHeld    = errors.New("the lease is held by another replica")
	ErrChanged = errors.New("the record was changed by another replica")
	ErrLost    = errors.New("the lease is lost")

	// ErrTooLarge is returned by [Checkpointer.Load] and [Documenter.ReadDocument] only.
	ErrTooLarge = fmt.Errorf("the checkpoint or document is larger than %d bytes: "+
		"something other than this program wrote it", MaxCheckpoint)

	// ErrUnchanged is returned by [Documenter.ReadDocument] only.
	ErrUnchanged = errors.New("the document has not changed")
)
