package sim

import (
	"bytes"
	"context"
	"errors"
	"github.com/soloist-go/soloist/internal/blobtest"
	"github.com/soloist-go/soloist/internal/sim/trace"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// A Network lies between the replicas and the one service. What it does to a
// request follows from the seed, the replica, the job, the operation and how
// many of them there were.
type Network struct {
	seed     uint64
	blob     *blobtest.Blob
	log      *trace.Log
	records  reader
	faults   []NetworkFault
	contract contractChecker                                      // of [Config.Store]
	calm     time.Time                                            // from then on nothing goes wrong
	direct   func(context.Context, *call) (*http.Response, error) // instead of chance; nil: nobody does

	late sync.WaitGroup // requests that are still under way though nobody waits
	mu   sync.Mutex
	met  map[trace.Fault]int
	more []NetworkFault // beside faults: what was not planned
}

// ills are the faults that a request may meet by itself. Whoever is denied has
// a reason for longer.
var ills = []trace.Fault{trace.Drop, trace.DropReply, trace.Late, trace.Refuse, trace.Reset, trace.Throttle, trace.Internal, trace.Applied500, trace.Busy, trace.Slow, trace.CutOff}

// A NetworkFault is a time in which a share of all requests meets a fault.
type NetworkFault struct {
	From, To time.Time
	Slot     int         // whose; negative: everybody's
	Job      string      // about which; empty: any
	Fault    trace.Fault // empty: any
	Share    float64
}

// hits reports whether a request from a slot can meet the fault.
func (s *NetworkFault) hits(slot int, e *trace.Event) bool {
	return (s.Slot < 0 || s.Slot == slot) && (s.Job == "" || s.Job == e.Job) && (s.Fault != trace.ReadOnly || e.Writes())
}

// fault is what one request meets.
func (n *Network) fault(slot int, e *trace.Event, r *roll) trace.Fault {
	now := time.Now()
	if !now.Before(n.calm) {
		return trace.None
	}
	n.mu.Lock()
	more := n.more
	n.mu.Unlock()
	for _, s := range slices.Concat(n.faults, more) {
		if !now.Before(s.From) && now.Before(s.To) && s.hits(slot, e) && r.chance(s.Share) {
			if s.Fault != trace.None {
				return s.Fault
			}
			return ills[r.below(len(ills))]
		}
	}
	return trace.None
}

func (n *Network) count(f trace.Fault) {
	if f == trace.None {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.met == nil {
		n.met = map[trace.Fault]int{}
	}
	n.met[f]++
}

// apply has the service do what the request of an event asks for.
func (n *Network) apply(e *trace.Event, r *blobtest.Request) (resp *http.Response) {
	n.log.Apply(e, func() (int, string) {
		resp = n.blob.Serve(r)
		return resp.StatusCode, resp.Header.Get("X-Ms-Error-Code")
	})
	return resp
}

// A line is one replica's way to the service: a transport below the real
// client library.
type line struct {
	*Network
	machine    *machine
	classifier classifier
}

// A call is one request on a line.
type call struct {
	*line
	*trace.Event
	request *blobtest.Request
	roll    *roll
}

// Do makes it a transport.
func (l *line) Do(r *http.Request) (*http.Response, error) {
	ctx := r.Context()
	c, err := l.open(r)
	if err != nil {
		return nil, failed(r, err)
	}
	defer func() { l.log.Edit(func() { c.Done = time.Now() }) }()
	if c.at(" before"); !l.machine.sleep(context.Background(), 0, c.roll) {
		return nil, failed(r, l.machine.awake(ctx))
	}
	resp, err := c.travel(ctx)
	if err != nil {
		return nil, failed(r, errors.Join(err, l.machine.awake(ctx)))
	}
	if !l.machine.sleep(context.Background(), 0, c.roll) {
		return nil, failed(r, l.machine.awake(ctx))
	}
	l.log.Edit(func() { c.Heard = time.Now() })
	if c.at(" after"); !l.machine.sleep(context.Background(), 0, c.roll) {
		return nil, failed(r, l.machine.awake(ctx))
	}
	return resp, nil
}

// begin waits for a moment, so that of the calls that a replica makes at one
// instant one is the first, and returns the roll of this one. A call that ends
// before does not count: whether it began, nobody can tell. The orders of operators
// are read by one caller at a time, for all: which one that is, nobody can tell either.
func (l *line) begin(ctx context.Context, job, op string) (*roll, error) {
	if what, apart := ctx.Value(apart{}).(string); apart && job != ofOrders {
		op += what
	}
	kind, moment := job+" "+op, 100*time.Microsecond
	among := []string{l.machine.name, job, op}
	if l.machine.Frozen() > 0 {
		among = append(among, trace.TimeOfDay(time.Now())) // others of its kind may wait with it
	}
	if err := l.machine.awake(ctx); err != nil {
		return nil, err
	}
	if err := pause(ctx, newRoll(l.seed, l.machine.count(kind)+1, among...).between(0, moment)); err != nil {
		return nil, err
	}
	if err := l.machine.awake(ctx); err != nil {
		return nil, err
	}
	r := newRoll(l.seed, l.machine.nth(kind), l.machine.name, job, op)
	r.between(0, moment)
	return r, nil
}

// ofOrders is the document of orders in the place of a job.
const ofOrders = ".control"

// open notes a request. Its body is read now, since a late one outlives the
// call that brings it.
func (l *line) open(r *http.Request) (*call, error) {
	req, err := blobtest.Parse(r)
	if err != nil {
		return nil, err
	}
	e := l.classifier.event(req, &l.records)
	roll, err := l.begin(r.Context(), e.Job, e.Op)
	if err != nil {
		return nil, err
	}
	e.What, e.Replica, e.Sent, e.Time = trace.Request, l.machine.name, time.Now(), time.Now()
	if !e.OfDocument() { // each order has a random id
		e.Note = brief(string(req.Body))
	}
	return &call{line: l, Event: l.log.Add(e), request: req, roll: roll}, nil
}

// travel takes a request there and its answer back, as the network pleases.
func (c *call) travel(ctx context.Context) (*http.Response, error) {
	if c.direct != nil {
		return c.direct(ctx, c)
	}
	there, back := c.roll.latency(), c.roll.latency()
	fault := c.fault(c.machine.slot, c.Event, c.roll)
	c.count(fault)
	if fault != trace.None {
		c.log.Edit(func() { c.Cause = string(fault) })
	}
	switch fault {
	case trace.Drop:
		return nil, hang(ctx)
	case trace.Refuse:
		return nil, errors.Join(pause(ctx, there), syscall.ECONNREFUSED)
	case trace.Late:
		c.deliver(c.roll.between(0, 3*longest))
		return nil, hang(ctx)
	case trace.Throttle, trace.Internal, trace.Busy, trace.Denied, trace.ReadOnly:
		return c.refuse(ctx, fault, there+back)
	case trace.Page:
		which, now := c.roll.stranger()
		return blobtest.ByStranger(c.request.HTTP, now, which), pause(ctx, there+back)
	case trace.Slow:
		there += c.roll.between(0, longest)
		back += c.roll.between(0, longest)
	}
	resp, err := c.reach(ctx, there)
	if err != nil {
		return nil, err
	}
	switch fault {
	case trace.DropReply:
		return nil, hang(ctx)
	case trace.Reset:
		return nil, &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
	case trace.Applied500:
		resp = blobtest.Refusal(c.request.HTTP, time.Now(), http.StatusInternalServerError, "OperationTimedOut")
	case trace.CutOff:
		if c.request.HTTP.Method != http.MethodHead {
			resp.Body = io.NopCloser(io.MultiReader(bytes.NewReader([]byte(" ")), brokenBody{}))
		}
	}
	return resp, c.wait(ctx, back)
}

// wrongBy is by how much the clock of another server may be wrong.
var wrongBy = []time.Duration{0, time.Second, -time.Minute, 10 * time.Minute, -time.Hour, time.Hour, -10 * 365 * 24 * time.Hour, 10 * 365 * 24 * time.Hour}

// stranger is which answer of another server a request gets, and what the clock of
// that server shows.
func (r *roll) stranger() (which int, now time.Time) {
	n := r.below(blobtest.Strangers * len(wrongBy))
	return n % blobtest.Strangers, time.Now().Add(wrongBy[n/blobtest.Strangers])
}

// wait is pause on a machine that may be suspended meanwhile: it then finds the
// answer when it goes on, however late that is.
func (c *call) wait(ctx context.Context, d time.Duration) error {
	begin := time.Now()
	err := pause(ctx, d)
	if err != nil && c.machine.Frozen() > 0 {
		time.Sleep(d - time.Since(begin))
		return nil
	}
	return err
}

// longest is a long lease: delays are told in it.
const longest = 20 * time.Second

// reach brings the request to the service. One whose caller gives up meanwhile
// is on its way all the same.
func (c *call) reach(ctx context.Context, there time.Duration) (*http.Response, error) {
	sent := time.Now()
	if err := pause(ctx, there); err != nil {
		c.deliver(there - time.Since(sent))
		return nil, err
	}
	resp := c.apply(c.Event, c.request)
	c.at(" applied")
	return resp, nil
}

// deliver applies the request after d, when nobody waits for the answer.
func (c *call) deliver(d time.Duration) {
	c.late.Go(func() {
		time.Sleep(d)
		if time.Now().Before(c.calm) {
			c.apply(c.Event, c.request)
		}
	})
}

// refuse answers in the service's stead.
func (c *call) refuse(ctx context.Context, f trace.Fault, d time.Duration) (*http.Response, error) {
	if err := pause(ctx, d); err != nil {
		return nil, err
	}
	status := map[trace.Fault]int{trace.Throttle: http.StatusTooManyRequests, trace.Internal: http.StatusInternalServerError, trace.Busy: http.StatusServiceUnavailable, trace.Denied: http.StatusForbidden, trace.ReadOnly: http.StatusForbidden}[f]
	code := map[trace.Fault]string{trace.Throttle: "ServerBusy", trace.Internal: "InternalError", trace.Busy: "ServerBusy", trace.Denied: "AuthorizationPermissionMismatch", trace.ReadOnly: "AuthorizationPermissionMismatch"}[f]
	resp := blobtest.Refusal(c.request.HTTP, time.Now(), status, code)
	if c.roll.chance(0.5) && (f == trace.Throttle || f == trace.Busy) {
		resp.Header.Set("Retry-After", strconv.Itoa([]int{1, 50, 300}[c.roll.below(3)]))
	}
	return resp, nil
}

// failed is how net/http tells a failure.
func failed(r *http.Request, err error) error {
	return &url.Error{Op: r.Method, URL: r.URL.String(), Err: err}
}

func hang(ctx context.Context) error {
	<-ctx.Done()
	return ended(ctx)
}

// ended is why ctx has ended. Where it was cancelled at its deadline, it is that:
// which came first, nobody can tell.
func ended(ctx context.Context) error {
	if at, ok := ctx.Deadline(); ok && ctx.Err() != nil && !time.Now().Before(at) {
		return context.DeadlineExceeded
	}
	return ctx.Err()
}

func pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ended(ctx)
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ended(ctx)
	}
}

type brokenBody struct{}

func (brokenBody) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }
