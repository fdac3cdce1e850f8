package sim

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strconv"
	"syscall"
	"time"

	"github.com/soloist-go/soloist/internal/blobtest"
	"github.com/soloist-go/soloist/internal/sim/draw"
	"github.com/soloist-go/soloist/internal/sim/trace"
)

// A line is one replica's way to the service.
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
	roll    *draw.Roll
}

// A reply is an answer as it comes back.
type reply struct {
	blobtest.Answer
	cutOff bool           // its body, if it has one, cannot be read to its end
	raw    *http.Response // what a script has made of it; nil: nothing
}

// send takes a request to the service and its answer back.
func (l *line) send(ctx context.Context, r *blobtest.Request) (reply, error) {
	c, err := l.open(ctx, r)
	if err != nil {
		return reply{}, err
	}
	defer func() { l.log.Edit(func() { c.Done = time.Now() }) }()
	if c.at(" before"); !c.goesOn() {
		return reply{}, l.machine.awake(ctx)
	}
	a, err := c.travel(ctx)
	if err != nil {
		return reply{}, errors.Join(err, l.machine.awake(ctx))
	}
	if !c.goesOn() {
		return reply{}, l.machine.awake(ctx)
	}
	l.log.Edit(func() { c.Heard = time.Now() })
	if c.at(" after"); !c.goesOn() {
		return reply{}, l.machine.awake(ctx)
	}
	return a, nil
}

// goesOn waits while the machine is suspended; false: it is gone.
func (c *call) goesOn() bool { return c.machine.sleep(context.Background(), 0, c.roll) }

// begin waits for a moment, so that of the calls that a replica makes at one instant one is the first,
// and returns the roll of this call. Calls of one kind that begin at one instant have equal rolls: they are
// answered at one instant, so that it does not matter which goroutine was first. The orders of operators are
// read by one caller at a time, for all, which may be any of them.
func (l *line) begin(ctx context.Context, job, op string) (*draw.Roll, error) {
	if what, apart := ctx.Value(apart{}).(string); apart && job != ofOrders {
		op += what
	}
	if err := l.machine.awake(ctx); err != nil {
		return nil, err
	}
	r := draw.New(l.seed, int(time.Now().UnixNano()), l.machine.name, job, op)
	if err := pause(ctx, r.Between(0, 100*time.Microsecond)); err != nil {
		return nil, err
	}
	return r, l.machine.awake(ctx)
}

// ofOrders is the document of orders in the place of a job.
const ofOrders = ".control"

// open notes a request.
func (l *line) open(ctx context.Context, r *blobtest.Request) (*call, error) {
	e := l.classifier.event(r)
	roll, err := l.begin(ctx, e.Job, e.Op)
	if err != nil {
		return nil, err
	}
	e.What, e.Replica, e.Sent, e.Time = trace.Request, l.machine.name, time.Now(), time.Now()
	if !e.OfDocument() { // each order has a random id
		e.Note = brief(string(r.Body))
	}
	return &call{line: l, Event: l.log.Add(e), request: r, roll: roll}, nil
}

// travel takes a request there and its answer back, as the network pleases.
func (c *call) travel(ctx context.Context) (reply, error) {
	if c.direct != nil {
		raw, err := c.direct(ctx, c)
		return reply{raw: raw}, err
	}
	there, back := c.roll.Latency(), c.roll.Latency()
	fault := c.fault(c.machine.slot, c.Event, c.roll)
	c.count(fault)
	if fault != trace.None {
		c.log.Edit(func() { c.Cause = string(fault) })
	}
	switch fault {
	case trace.Drop:
		return reply{}, hang(ctx)
	case trace.Refuse:
		return reply{}, errors.Join(pause(ctx, there), syscall.ECONNREFUSED)
	case trace.Late:
		c.deliver(c.roll.Between(0, 3*longest))
		return reply{}, hang(ctx)
	case trace.Throttle, trace.Internal, trace.Busy, trace.Denied, trace.ReadOnly:
		return c.refuse(ctx, fault, there+back)
	case trace.Page:
		which, now := stranger(c.roll)
		return reply{Answer: blobtest.ByStranger(now, which)}, pause(ctx, there+back)
	case trace.Slow:
		there += c.roll.Between(0, longest)
		back += c.roll.Between(0, longest)
	}
	a, err := c.reach(ctx, there)
	if err != nil {
		return reply{}, err
	}
	switch fault {
	case trace.DropReply:
		return reply{}, hang(ctx)
	case trace.Reset:
		return reply{}, &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
	case trace.Applied500:
		a = blobtest.Refused(time.Now(), http.StatusInternalServerError, "OperationTimedOut")
	}
	return reply{Answer: a, cutOff: fault == trace.CutOff}, c.wait(ctx, back)
}

// wrongBy is by how much the clock of another server may be wrong.
var wrongBy = []time.Duration{0, time.Second, -time.Minute, 10 * time.Minute, -time.Hour, time.Hour, -10 * 365 * 24 * time.Hour, 10 * 365 * 24 * time.Hour}

// stranger is which answer of another server a request gets, and what the clock of
// that server shows.
func stranger(r *draw.Roll) (which int, now time.Time) {
	n := r.Below(blobtest.Strangers * len(wrongBy))
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
func (c *call) reach(ctx context.Context, there time.Duration) (blobtest.Answer, error) {
	sent := time.Now()
	if err := pause(ctx, there); err != nil {
		c.deliver(there - time.Since(sent))
		return blobtest.Answer{}, err
	}
	a := c.apply(c.Event, c.request)
	c.at(" applied")
	return a, nil
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
func (c *call) refuse(ctx context.Context, f trace.Fault, d time.Duration) (reply, error) {
	if err := pause(ctx, d); err != nil {
		return reply{}, err
	}
	a := blobtest.Refused(time.Now(), refusals[f].status, refusals[f].code)
	if c.roll.Chance(0.5) && (f == trace.Throttle || f == trace.Busy) {
		a.Header.Set("Retry-After", strconv.Itoa([]int{1, 50, 300}[c.roll.Below(3)]))
	}
	return reply{Answer: a}, nil
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
