package world

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"net"
	"net/http"
	"strconv"
	"syscall"
	"time"

	"github.com/soloist-go/soloist/internal/blobtest"
	"github.com/soloist-go/soloist/internal/entry"
	"github.com/soloist-go/soloist/internal/sim/draw"
	"github.com/soloist-go/soloist/internal/sim/trace"
)

// A Line is one replica's way to the service.
type Line struct {
	*Network
	Machine    *Machine
	classifier Classifier
}

// A Call is one request on a line.
type Call struct {
	*Line
	*trace.Event
	Request *blobtest.Request
	roll    *draw.Roll
}

// Send takes a request to the service and its answer back.
func (l *Line) Send(ctx context.Context, r *blobtest.Request) (Reply, error) {
	c, err := l.open(ctx, r)
	if err != nil {
		return Reply{}, err
	}
	defer l.Log.EditAll(c.Event, func(e *trace.Event) { e.Done = time.Now() })
	if c.at(" before"); !c.goesOn() {
		return Reply{}, l.Machine.awake(ctx)
	}
	a, err := c.travel(ctx)
	if err != nil {
		return Reply{}, errors.Join(err, l.Machine.awake(ctx))
	}
	if !c.goesOn() {
		return Reply{}, l.Machine.awake(ctx)
	}
	l.Log.EditAll(c.Event, func(e *trace.Event) { e.Heard = time.Now() })
	if c.at(" after"); !c.goesOn() {
		return Reply{}, l.Machine.awake(ctx)
	}
	return a, nil
}

// goesOn waits while the machine is suspended; false: it is gone.
func (c *Call) goesOn() bool { return c.Machine.Sleep(context.Background(), 0, c.roll) }

// begin waits for a moment, so that the calls that a replica makes at one instant have an order, and returns the roll of
// this call. Calls of one kind that begin at one instant have equal rolls: they are answered at one instant, so that it
// does not matter which goroutine was first. The orders of operators are read by one caller at a time, for all, which may
// be any of them.
func (l *Line) begin(ctx context.Context, job, op string) (*draw.Roll, error) {
	if what, apart := ctx.Value(Apart{}).(string); apart && job != ofOrders {
		op += what
	}
	if err := l.Machine.awake(ctx); err != nil {
		return nil, err
	}
	r := draw.New(l.Seed, int(time.Now().UnixNano()), l.Machine.Name, job, op)
	if err := Pause(ctx, r.Between(0, 100*time.Microsecond)); err != nil {
		return nil, err
	}
	return r, l.Machine.awake(ctx)
}

// ofOrders is the document of orders in the place of a job.
const ofOrders = ".control"

// open notes a request.
func (l *Line) open(ctx context.Context, r *blobtest.Request) (*Call, error) {
	e := l.classifier.Event(r)
	roll, err := l.begin(ctx, e.Job, e.Op)
	if err != nil {
		return nil, err
	}
	return &Call{Line: l, Event: l.note(e, r), Request: r, roll: roll}, nil
}

// note adds the event of a request, which is sent now, and that of the one that belongs to it.
func (l *Line) note(e trace.Event, r *blobtest.Request) *trace.Event {
	e.What, e.Replica, e.Sent, e.Time = trace.Request, l.Machine.Name, time.Now(), time.Now()
	if !e.OfDocument() { // each order has a random id
		e.Note = Brief(string(r.Body))
	}
	added := l.Log.Add(e)
	if r.Then != nil {
		added.Then = l.note(l.classifier.Event(r.Then), r.Then)
	}
	return added
}

// travel takes a request there and its answer back, as the network pleases.
func (c *Call) travel(ctx context.Context) (Reply, error) {
	if c.Direct != nil {
		raw, err := c.Direct(ctx, c)
		return Reply{raw: raw}, err
	}
	there, back := c.latency(c.roll)
	fault := c.fault(c.Machine.Slot, c.Event, c.roll)
	if fault != trace.None {
		c.Log.EditAll(c.Event, func(e *trace.Event) { e.Cause = string(fault) })
	}
	switch fault {
	case trace.Drop:
		return Reply{}, hang(ctx)
	case trace.Refuse:
		return Reply{}, errors.Join(Pause(ctx, there), syscall.ECONNREFUSED)
	case trace.Late:
		c.Deliver(c.roll.Between(0, 3*longest))
		return Reply{}, hang(ctx)
	case trace.Throttle, trace.Internal, trace.Busy, trace.Denied, trace.ReadOnly:
		return c.refuse(ctx, fault, there+back)
	case trace.Page:
		which, now := stranger(c.roll)
		return Reply{Answer: blobtest.ByStranger(now, which)}, Pause(ctx, there+back)
	case trace.Slow:
		there += c.roll.Between(0, longest)
		back += c.roll.Between(0, longest)
	}
	a, err := c.Reach(ctx, there)
	if err != nil {
		return Reply{}, err
	}
	switch fault {
	case trace.DropReply:
		return Reply{}, hang(ctx)
	case trace.Reset:
		return Reply{}, &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
	case trace.Applied500:
		a = blobtest.Refused(time.Now(), http.StatusInternalServerError, "OperationTimedOut")
	}
	return Reply{Answer: a, cutOff: fault == trace.CutOff}, c.Wait(ctx, back)
}

// wrongBy is by how much the clock of another server may be wrong.
var wrongBy = []time.Duration{0, time.Second, -time.Minute, 10 * time.Minute, -time.Hour, time.Hour, -10 * 365 * 24 * time.Hour, 10 * 365 * 24 * time.Hour}

// stranger is which answer of another server a request gets, and what the clock of
// that server shows.
func stranger(r *draw.Roll) (which int, now time.Time) {
	n := r.Below(blobtest.Strangers * len(wrongBy))
	return n % blobtest.Strangers, time.Now().Add(wrongBy[n/blobtest.Strangers])
}

// Wait is pause on a machine that may be suspended meanwhile: it then finds the
// answer when it goes on, however late that is.
func (c *Call) Wait(ctx context.Context, d time.Duration) error {
	begin := time.Now()
	err := Pause(ctx, d)
	if err != nil && c.Machine.Frozen() > 0 {
		time.Sleep(d - time.Since(begin))
		return nil
	}
	return err
}

// longest is a long lease, the unit of delays.
const longest = 20 * time.Second

// Reach brings the request to the service. If the caller gives up meanwhile, the request arrives anyway.
func (c *Call) Reach(ctx context.Context, there time.Duration) (blobtest.Answer, error) {
	sent := time.Now()
	if err := Pause(ctx, there); err != nil {
		c.Deliver(there - time.Since(sent))
		return blobtest.Answer{}, err
	}
	a := c.Apply(c.Event, c.Request)
	c.at(" applied")
	return a, nil
}

// Deliver applies the request after d, when no caller waits for the answer.
func (c *Call) Deliver(d time.Duration) {
	c.later(d, func() { c.Apply(c.Event, c.Request) })
}

// refusals are the answers of a service that has not applied the request.
var refusals = map[trace.Fault]struct {
	status int
	code   string
}{
	trace.Throttle: {http.StatusTooManyRequests, "ServerBusy"},
	trace.Busy:     {http.StatusServiceUnavailable, "ServerBusy"},
	trace.Internal: {http.StatusInternalServerError, "InternalError"},
	trace.Denied:   {http.StatusForbidden, "AuthorizationPermissionMismatch"},
	trace.ReadOnly: {http.StatusForbidden, "AuthorizationPermissionMismatch"},
}

// refuse answers in the service's stead.
func (c *Call) refuse(ctx context.Context, f trace.Fault, d time.Duration) (Reply, error) {
	if err := Pause(ctx, d); err != nil {
		return Reply{}, err
	}
	a := blobtest.Refused(time.Now(), refusals[f].status, refusals[f].code)
	if c.roll.Chance(0.5) && (f == trace.Throttle || f == trace.Busy) {
		a.Header.Set("Retry-After", strconv.Itoa([]int{1, 50, 300}[c.roll.Below(3)]))
	}
	return Reply{Answer: a}, nil
}

// at is machine.at for one part of a call.
func (c *Call) at(when string) {
	for e := c.Event; e != nil; e = e.Then {
		c.Machine.At(pointOf(e.Job, e.Op+when))
	}
}

func pointOf(job, point string) string {
	switch n, _ := entry.Parse(job); {
	case n.Kind == entry.Group:
		return draw.OfGroup + point
	case n.Kind == entry.Member:
		return draw.OfMember + point
	case trace.IsSlot(job):
		return draw.OfLock + point
	}
	return point
}

// Apart is a value of the contexts of calls that are made for the alarm, or by one of several passes: they are apart from
// the calls of the others, since two reads of one entry at one instant have no defined order.
type Apart struct{}

// Do makes a line a transport below the real client library. A body is read now, since a late
// request outlives the call that brings it.
func (l *Line) Do(r *http.Request) (*http.Response, error) {
	req, err := blobtest.Parse(r)
	if err != nil {
		return nil, failed(r, err)
	}
	a, err := l.Send(r.Context(), req)
	switch {
	case err != nil:
		return nil, failed(r, err)
	case a.raw != nil:
		return a.raw, nil
	}
	resp := a.Response(r)
	if a.cutOff && r.Method != http.MethodHead {
		resp.Body = io.NopCloser(io.MultiReader(bytes.NewReader([]byte(" ")), brokenBody{}))
	}
	return resp, nil
}

// Brief keeps long texts out of a log, and different ones apart.
func Brief(text string) string {
	if len(text) <= 40 {
		return text
	}
	h := fnv.New32a()
	h.Write([]byte(text))
	return fmt.Sprintf("%.20s... %d bytes, hash %x", text, len(text), h.Sum32())
}
