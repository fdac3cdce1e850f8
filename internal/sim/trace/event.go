// Package trace is the log of a simulated cluster: what happened, by true time. It knows nothing of what made it.
package trace

import (
	"time"

	"github.com/soloist-go/soloist/internal/record"
)

// A What is the kind of an event.
type What string

// What can happen. Times are true ones.
const (
	Up        What = "up"       // a replica starts
	Crash     What = "crash"    // it is gone: nothing more comes from it
	Stop      What = "stop"     // it is asked to stop
	Gone      What = "gone"     // it has stopped
	Freeze    What = "freeze"   // it is suspended until End
	Request   What = "request"  // sent at Sent, applied by the service at Time, answered at Heard
	Ran       What = "ran"      // a call of Do, from Time to End
	Called    What = "called"   // a call of Op "do" or "try" of a Lock, or of "once" for a Job, from Time to End; Note: what it has returned
	Effect    What = "effect"   // what a run wrote to a resource that fences, sent at Sent
	Loaded    What = "loaded"   // a checkpoint, read at Time by a run
	Said      What = "said"     // a line of a replica's log
	Answered  What = "answered" // RunNow has returned Result for a Request
	Health    What = "health"   // of a replica: Op says what is wrong with Job
	Emitted   What = "emitted"  // an event of a replica: Op is its kind, Note the status of its outcome
	Overran   What = "overran"  // Overrun was called
	Woken     What = "woken"    // a platform starts a process for Tick, which has done what is due at End; its clock shows Sent
	Deleted   What = "deleted"  // the entry of a job, by somebody
	Corrupted What = "spoilt"   // the entry of a job, until End: it says what Record does, nil for nothing
	Ordered   What = "ordered"  // by an operator: Op for a Job, in force at the latest when it is Heard; zero: it is not known to be written
	Listed    What = "listed"   // a status, asked at Sent, answered at Heard, says Record of a job; nil: that there is no entry
	Mail      What = "mail"     // the message ID of the alarm queue: Op is what happens to it, End when it is visible from now on
	Handed    What = "handed"   // a replica says that an alarm is pending for what it is to do next; Note: or that it could not see to that
	Healed    What = "healed"   // from here on nothing goes wrong
)

// An Event is one line of the log that is judged.
type Event struct {
	Time    time.Time
	Replica string
	Job     string
	What    What

	// Of a request. It has no Status if it never reached the service.
	Op     string        // container, token, read, create, acquire, claim, take back, settle, progress, beat, save, load, renew, finish, release, break, replace, delete, read document, write document, list
	Lease  string        // its id
	Span   time.Duration // of an acquisition; of a break: zero at once, negative when its time is up
	Match  bool          // it has an If-Match
	Status int
	Code   string
	Record *record.Record // what a write writes; nil: nothing, or no record
	Sent   time.Time
	Heard  time.Time // zero: the answer did not come
	Done   time.Time // when its caller waited no longer; zero: not known
	Cause  string    // the fault that it meets; of Up: why the replica does not stay
	Then   *Event    // what else the same call asks for: both are applied at one instant, or neither; nil: nothing
	order  int       // in which the service applied requests

	// Of a run, and what it did.
	Token     int64
	Tick      time.Time
	Previous  time.Time // what it was given as the last tick that had succeeded
	Request   string
	Attempt   int
	Try       int
	Beat      time.Time // its last heartbeat; zero: its start
	Cancelled time.Time // zero: its context did not end before it returned
	End       time.Time // zero: it has not returned
	Result    Result    // what it has returned; also of a call, and of a run on demand
	Why       Result    // of the end of its context
	Lock      string    // that it holds, or that is called; empty: it is a run of Job
	Slot      int       // of Lock
	ID        string    // that the function of a lock is given
	Call      string    // which call of Do, TryDo or Once.Run it belongs to

	Spans []record.Span // of an order: where the ticks of a backfill are

	Note string
}

// A Result is how a run or a call ended, or why a context did. Of RunNow it is the status of the outcome.
type Result string

// Results. A run or call that has not returned has none.
const (
	Well      Result = "well"
	Failed    Result = "failed" // with another error, by a panic, or without a return
	Skipped   Result = "skipped"
	Held      Result = "held"
	Lost      Result = "lost"
	Refused   Result = "refused"
	Stalled   Result = "stalled"
	TimedOut  Result = "timed out"
	Cancelled Result = "cancelled"
	Replaced  Result = "replaced"
	Stopped   Result = "stopped"
)

// OK reports whether the service did what a request asked for.
func (e *Event) OK() bool { return e.What == Request && e.Status >= 200 && e.Status < 300 }

// Writes reports whether a request writes a job's blob.
func (e *Event) Writes() bool {
	switch e.Op {
	case "create", "claim", "take back", "settle", "progress", "beat", "save", "finish", "write":
		return e.What == Request
	}
	return false
}

// OfDocument reports whether a request is about a document, which no job has.
func (e *Event) OfDocument() bool { return e.Op == "read document" || e.Op == "write document" }

// A Fault is what happens to a request.
type Fault string

// All of them. A request that hangs ends with its context.
const (
	None       Fault = ""
	Drop       Fault = "request lost"        // and it hangs
	DropReply  Fault = "reply lost"          // applied, and it hangs
	Late       Fault = "delivered late"      // after up to three leases, when no caller waits any more
	Refuse     Fault = "connection refused"  // at once
	Reset      Fault = "reset after applied" // at once
	Throttle   Fault = "429"
	Internal   Fault = "500"
	Applied500 Fault = "500 though applied"
	Busy       Fault = "503"
	Slow       Fault = "slow" // up to two leases
	CutOff     Fault = "body cut off"
	Denied     Fault = "403"
	ReadOnly   Fault = "403 to writes"  // no other request meets it
	Page       Fault = "another server" // answers in the place of the service: blobtest.ByStranger
)
