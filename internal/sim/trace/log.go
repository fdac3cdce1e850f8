package trace

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
)

// A Violation is a property that a log contradicts.
type Violation struct {
	Property string
	Time     time.Time
	Text     string
}

func (v Violation) String() string { return v.Property + " at " + TimeOfDay(v.Time) + ": " + v.Text }

// A Log is all that a simulation leaves behind.
type Log struct {
	Events []*Event
	Fleet  map[string][]Definition // by replica: what it does

	Locks map[string]Lock // by name
	Onces map[string]Once // by entry
	Zero  *Zero           // the platform that scales the cluster to zero; nil: replicas are up all the time

	Around bool // each run has what it was given as the last success

	// Watch gets each request once the service has applied it, in the order of the
	// service. The log then keeps no events. Nil: it keeps them all.
	Watch func(*Event)

	mu    sync.Mutex
	order int
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

// EditAll edits an event, and what else its call asks for.
func (l *Log) EditAll(e *Event, f func(*Event)) {
	l.Edit(func() {
		for ; e != nil; e = e.Then {
			f(e)
		}
	})
}

// Apply has the service do what the request e asks for, which f does. No two requests are applied at
// once: the log has the order of the service.
func (l *Log) Apply(e *Event, f func() (status int, code string)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	status, code := f()
	for ; e != nil; e = e.Then {
		e.Status, e.Code = status, code
		l.order++
		if e.Time, e.order = time.Now(), l.order; l.Watch != nil {
			l.Watch(e)
		}
	}
}

// AddWith is Add for an effect of a request: the event gets the request's time and order.
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
	for _, text := range []string{string(e.Result), string(e.Why), e.Note} {
		if text != "" {
			b.WriteString(" " + text)
		}
	}
	return b.String()
}

func TimeOfDay(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format("15:04:05.000000000")
}

// Differs reports where two logs begin to differ.
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
