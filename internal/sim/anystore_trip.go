package sim

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"time"

	"github.com/soloist-go/soloist/internal/sim/trace"
	"github.com/soloist-go/soloist/store"
)

// serve has the store do what an event asks for. One call at a time, so that
// the order of the log is that of the store.
func (n *Network) serve(e *trace.Event, x errand) (got result) {
	n.log.Apply(e, func() (int, string) {
		x.do(context.Background(), &got)
		now := time.Now()
		for _, wrong := range n.contract.judge(e, x, got, now) {
			note := fmt.Sprintf("%s of %s by %s: %s", e.Op, e.Job, e.Replica, wrong)
			n.log.Events = append(n.log.Events, &trace.Event{What: trace.Broke, Time: now, Replica: e.Replica, Job: e.Job, Note: note})
		}
		return verdict(got.err)
	})
	return got
}

// verdict tells an answer as HTTP would. A store that is unclear by itself has
// failed: here it is only the network that may be.
func verdict(err error) (status int, code string) {
	for _, v := range []struct {
		err    error
		status int
	}{
		{fs.ErrExist, http.StatusConflict},
		{fs.ErrNotExist, http.StatusNotFound},
		{store.ErrHeld, http.StatusConflict},
		{store.ErrChanged, http.StatusPreconditionFailed},
		{store.ErrLost, http.StatusPreconditionFailed},
		{store.ErrUnchanged, http.StatusNotModified},
	} {
		if errors.Is(err, v.err) {
			return v.status, v.err.Error()
		}
	}
	if err != nil {
		return http.StatusInternalServerError, err.Error()
	}
	return http.StatusOK, ""
}

// A trip is one call of a store, there and back: what [line.Do] is for a
// request, with the same faults from the same dice.
type trip struct {
	*call
	errand errand
}

func (c *client) send(ctx context.Context, x errand) result {
	t, err := c.leave(ctx, x)
	if err != nil {
		return result{err: err}
	}
	m := c.machine
	if t.at(" before"); !t.goesOn() {
		return result{err: m.awake(ctx)}
	}
	got, err := t.travel(ctx)
	if err != nil {
		got.err = errors.Join(err, m.awake(ctx))
		return got
	}
	if !t.goesOn() {
		return result{err: m.awake(ctx)}
	}
	t.log.Edit(func() { t.Heard = time.Now() })
	if t.at(" after"); !t.goesOn() {
		return result{err: m.awake(ctx)}
	}
	return got
}

// dated is an answer that has nothing but a date.
func dated(now time.Time) (r result) {
	r.Date = now
	return r
}

// goesOn waits while the machine is suspended; false: it is gone.
func (t *trip) goesOn() bool { return t.machine.sleep(context.Background(), 0, t.roll) }

// leave notes the call.
func (c *client) leave(ctx context.Context, x errand) (*trip, error) {
	r, err := c.begin(ctx, x.Job, x.Op)
	if err != nil {
		return nil, err
	}
	x.What, x.Replica, x.Sent, x.Time = trace.Request, c.machine.name, time.Now(), time.Now()
	return &trip{&call{line: c.line, Event: c.log.Add(x.Event), roll: r}, x}, nil
}

// travel takes the call there and the answer back, as the network pleases.
func (t *trip) travel(ctx context.Context) (result, error) {
	there, back := t.roll.latency(), t.roll.latency()
	fault := t.fault(t.machine.slot, t.Event, t.roll)
	t.count(fault)
	if fault != trace.None {
		t.log.Edit(func() { t.Cause = string(fault) })
	}
	broken := fmt.Errorf("the network: %s", fault)
	if fault == trace.Denied || fault == trace.ReadOnly {
		broken = fs.ErrPermission
	}
	switch fault {
	case trace.Drop:
		return result{}, hang(ctx)
	case trace.Refuse:
		return result{}, errors.Join(pause(ctx, there), broken)
	case trace.Late:
		t.deliver(t.roll.between(0, 3*longest))
		return result{}, hang(ctx)
	case trace.Throttle, trace.Internal, trace.Busy, trace.Denied, trace.ReadOnly:
		return result{}, errors.Join(pause(ctx, there+back), broken)
	case trace.Page:
		_, now := t.roll.stranger()
		return dated(now), errors.Join(pause(ctx, there+back), broken)
	case trace.Slow:
		there += t.roll.between(0, longest)
		back += t.roll.between(0, longest)
	}
	a, err := t.reach(ctx, there)
	if err != nil {
		return result{}, err
	}
	switch fault {
	case trace.DropReply:
		return result{}, hang(ctx)
	case trace.Reset:
		return result{}, broken
	case trace.Applied500, trace.CutOff:
		return result{}, errors.Join(t.wait(ctx, back), broken)
	}
	return a, t.wait(ctx, back)
}

// reach brings the call to the store. One whose caller gives up meanwhile is on
// its way all the same.
func (t *trip) reach(ctx context.Context, there time.Duration) (result, error) {
	sent := time.Now()
	if err := pause(ctx, there); err != nil {
		t.deliver(there - time.Since(sent))
		return result{}, err
	}
	a := t.serve(t.Event, t.errand)
	t.at(" applied")
	return a, nil
}

// deliver applies the call after d, when nobody waits for the answer.
func (t *trip) deliver(d time.Duration) {
	t.late.Go(func() {
		time.Sleep(d)
		if time.Now().Before(t.calm) {
			t.serve(t.Event, t.errand)
		}
	})
}
