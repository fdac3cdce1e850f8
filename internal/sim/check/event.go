package check

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/soloist-go/soloist/store"
)

// A What is the kind of an event.
type What string

// What can happen. Times are true ones.
const (
	Up        What = "up"       // a replica starts
	Crash     What = "crash"    // it is gone: nothing of it is heard again
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
	Asked     What = "asked"    // a call of HealthCheck, from Time to End
	Down      What = "down"     // all replicas are, until End
	Stepped   What = "stepped"  // its wall clock was set
	Broke     What = "broke"    // the store has answered what its contract does not allow
	Blocked   What = "blocked"  // its log takes no line until End
	Overran   What = "overran"  // Overrun was called
	Yield     What = "yield"    // it is asked to hand a job over
	Woken     What = "woken"    // a platform starts a process for Tick, which has done what is due at End; its clock shows Sent
	Weighed   What = "weighed"  // the memory in use, Size, after so many Saves of a run
	Leased    What = "leased"   // the entry of a job, until End, by a tool that claims nothing
	Unlocked  What = "unlocked" // an operator has unlocked a job; Note: what a status says then, asked at Sent
	Fared     What = "fared"    // what the Health of a replica says of a job whose entry an operator has corrupted
	Deleted   What = "deleted"  // the entry of a job, by somebody
	Swept     What = "swept"    // the entry of a slot that nobody has used for long: nobody may notice
	Corrupted What = "spoilt"   // the entry of a job, until End: it says what Record does, nil for nothing
	Ordered   What = "ordered"  // by an operator: Op for a Job, in force at the latest when it is Heard; zero: it is not known to be written
	Again     What = "again"    // a replica is asked to run by hand what was ordered and whose outcome has left the record
	Listed    What = "listed"   // a status, asked at Sent and told at Heard, says Record of a job; nil: that there is no entry
	Mail      What = "mail"     // the message ID of the queue of alarms: Op is what befalls it, End when it is visible from now on
	Rung      What = "rung"     // somebody who has ordered something for a job has put a message; Note: or could not
	Handed    What = "handed"   // a replica says that an alarm is pending for what it is to do next; Note: or that it could not see to that
	Netted    What = "netted"   // the platform starts a replica whether there is a message or not
	Asleep    What = "asleep"   // the platform starts nothing until End
	Healed    What = "healed"   // from here on nothing goes wrong
)

// An Event is one line of the log that the invariants are decided from.
type Event struct {
	Time    time.Time
	Replica string
	Job     string
	What    What

	// Of a request. One that never reached the service has no Status.
	Op     string        // container, token, read, create, acquire, claim, take back, settle, progress, beat, save, load, renew, finish, release, break, replace, delete, read document, write document, list
	Lease  string        // its id
	Span   time.Duration // of an acquisition; of a break: zero at once, negative when its time is up
	Match  bool          // it has an If-Match
	Status int
	Code   string
	Record *store.Record // what a write writes; nil: nothing, or no record
	Sent   time.Time
	Heard  time.Time // zero: the answer did not come
	Done   time.Time // when its caller waited no longer; zero: not known
	order  int       // in which the service applied requests

	// Of a run, and what it did.
	Token     int64
	Tick      time.Time
	Previous  time.Time // what it was given as the last tick that had succeeded
	Next      time.Time // and as the next tick
	Request   string
	Attempt   int
	Try       int
	Beat      time.Time // its last heartbeat; zero: its start
	Cancelled time.Time // zero: its context did not end before it returned
	End       time.Time // zero: it has not returned
	Result    Result    // what it has returned; also of a call, and of a run on demand
	Cause     string    // of the end of its context
	Why       Result    // the same as a kind
	Lock      string    // that it holds, or that is called; empty: it is a run of Job
	Slot      int       // of Lock
	ID        string    // that the function of a lock is told
	Call      string    // which call of Do, TryDo or Once.Run it belongs to

	Saves int
	Size  int64

	Spans    []store.Span // of an order: where the ticks of a backfill are
	Parallel int          // of such an order: how many of them are run at a time

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

// A Log is all that a simulation leaves behind.
type Log struct {
	Events []*Event
	Fleet  map[string][]Definition // by replica: what it does
	Drift  map[string]int64        // by replica: what its clocks gain, in millionths

	Locks map[string]Lock // by name
	Onces map[string]Once // by entry
	Zero  *Zero           // the platform that scales the cluster to zero; nil: replicas are up all the time

	Emits  bool // Emitted is in the log for each replica
	Around bool // each run has what it was given as the ticks around its own

	// Watch gets each request once the service has applied it, in the order of the
	// service. The log then keeps no events. Nil: it keeps them all.
	Watch func(*Event)

	mu    sync.Mutex
	order int
	index *index
}

// Add appends an event, which the caller may complete later, in edit.
func (l *Log) Add(e Event) *Event {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e.Time.IsZero() {
		e.Time = time.Now()
	}
	if l.Watch == nil {
		l.Events = append(l.Events, &e)
	}
	return &e
}

func (l *Log) Edit(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f()
}

// Apply has the service do what the request e asks for, which f does. No two
// requests are applied at once: the order of the log is that of the service.
func (l *Log) Apply(e *Event, f func() (status int, code string)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e.Status, e.Code = f()
	l.order++
	if e.Time, e.order = time.Now(), l.order; l.Watch != nil {
		l.Watch(e)
	}
}

// AddWith is add for what a request has brought about: at its time, in its order.
func (l *Log) AddWith(request *Event, e Event) *Event {
	e.Time, e.order = request.Time, request.order
	return l.Add(e)
}

// Sort brings the events into the order of time. What happens at one instant,
// on different replicas or for different jobs, has no order; it gets one here,
// so that logs can be compared.
func (l *Log) Sort() {
	slices.SortStableFunc(l.Events, func(a, b *Event) int {
		return cmp.Or(a.Time.Compare(b.Time), cmp.Compare(a.order, b.order), cmp.Compare(a.Replica, b.Replica),
			cmp.Compare(a.Job, b.Job), cmp.Compare(a.What, b.What), cmp.Compare(a.Op, b.Op), cmp.Compare(a.Call, b.Call), cmp.Compare(a.Note, b.Note), a.Tick.Compare(b.Tick))
	})
}

// Write writes the log, a line an event, without what differs from one
// simulation of a seed to the next: lease ids are random, so they are numbered.
func (l *Log) Write(w io.Writer) { l.writeAll(w, l.Events) }

func (l *Log) writeAll(w io.Writer, events []*Event) {
	leases := map[string]int{}
	for _, e := range events {
		n := 0
		if e.Lease != "" {
			if leases[e.Lease] == 0 {
				leases[e.Lease] = len(leases) + 1
			}
			n = leases[e.Lease]
		}
		fmt.Fprintln(w, e.line(n))
	}
}

// Hash is the same for equal logs. It leaves out what replicas emit: their lines, which are
// made from that, are in it.
func (l *Log) Hash() string {
	h := sha256.New()
	l.writeAll(h, slices.DeleteFunc(slices.Clone(l.Events), func(e *Event) bool { return e.What == Emitted }))
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// Structure is the same for logs that differ in their texts alone: in lines and reasons that are worded
// otherwise.
func (l *Log) Structure() string {
	bare := make([]*Event, 0, len(l.Events))
	for _, e := range l.Events {
		if e.What != Emitted {
			one := *e
			one.Note, one.Cause = "", ""
			bare = append(bare, &one)
		}
	}
	var text strings.Builder
	l.writeAll(&text, bare)
	lines := strings.Split(text.String(), "\n")
	slices.Sort(lines) // events of one instant are in the order of their texts
	sum := sha256.Sum256([]byte(strings.Join(lines, "\n")))
	return hex.EncodeToString(sum[:8])
}

func (e *Event) line(lease int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %-8s %-8s %s", TimeOfDay(e.Time), e.Replica, e.Job, e.What)
	if e.What == Request {
		fmt.Fprintf(&b, " %s #%d %d %s sent %s", e.Op, lease, e.Status, e.Code, TimeOfDay(e.Sent))
		if !e.Heard.IsZero() {
			fmt.Fprintf(&b, " heard %s", TimeOfDay(e.Heard))
		}
		if r := e.Record; r != nil {
			request := r.Run.Request
			if IsSlot(e.Job) {
				request = "-" // it is random
			}
			fmt.Fprintf(&b, " {%d %s %s/%d %s through %s", r.Token, r.Run.Status, TimeOfDay(r.Run.Tick), r.Run.Attempt, request, TimeOfDay(r.Watermark))
			if r.Run.Stopping {
				b.WriteString(" stopping")
			}
			b.WriteByte('}')
		}
	}
	if e.Call != "" {
		b.WriteString(" " + e.Op + " " + e.Call)
	}
	if e.What == Ordered {
		b.WriteString(" " + e.Op)
	}
	if e.Token != 0 {
		fmt.Fprintf(&b, " token %d %s/%d/%d %s", e.Token, TimeOfDay(e.Tick), e.Attempt, e.Try, e.Request)
	}
	if !e.Cancelled.IsZero() {
		fmt.Fprintf(&b, " cancelled %s", TimeOfDay(e.Cancelled))
	}
	if !e.End.IsZero() {
		fmt.Fprintf(&b, " end %s", TimeOfDay(e.End))
	}
	if e.Cause != "" {
		fmt.Fprintf(&b, " (%s)", e.Cause)
	}
	if e.What == Mail {
		fmt.Fprintf(&b, " %s %s visible %s", e.Op, e.ID, TimeOfDay(e.End))
	}
	if e.Note != "" {
		b.WriteString(" " + e.Note)
	}
	return b.String()
}

func TimeOfDay(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format("15:04:05.000000000")
}

// Differs tells where two logs begin to differ.
func (l *Log) Differs(o *Log) string {
	var a, b strings.Builder
	l.Write(&a)
	o.Write(&b)
	as, bs := strings.Split(a.String(), "\n"), strings.Split(b.String(), "\n")
	for i := range min(len(as), len(bs)) {
		if as[i] != bs[i] {
			return fmt.Sprintf("line %d\n%s\n%s", i+1, as[i], bs[i])
		}
	}
	return "nowhere"
}

// A Fault is what happens to a request.
type Fault string

// All of them. A request that hangs ends with its context.
const (
	None       Fault = ""
	Drop       Fault = "request lost"        // and it hangs
	DropReply  Fault = "reply lost"          // applied, and it hangs
	Late       Fault = "delivered late"      // after up to three leases, when nobody waits any more
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
