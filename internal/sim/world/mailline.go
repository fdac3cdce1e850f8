package world

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/soloist-go/soloist/internal/alarm"
	"github.com/soloist-go/soloist/internal/sim/draw"
	"github.com/soloist-go/soloist/internal/sim/trace"
)

// A MailLine is one replica's way to the queue of alarms.
type MailLine struct {
	*Line
	Box  *Mailbox
	Ills []draw.NetworkFault // the faults of calls to the queue
}

// Put implements [alarm.Queue].
func (l *MailLine) Put(ctx context.Context, body []byte, hidden time.Duration) (alarm.Receipt, error) {
	body = slices.Clone(body)
	if hidden < 0 || hidden > 7*24*time.Hour {
		return alarm.Receipt{}, fmt.Errorf("the queue hides no message for %s", hidden)
	}
	var r alarm.Receipt // a call that is applied late sets it when it is not read any more
	err := l.call(ctx, "put mail", "", func() {
		m := l.Box.Put(l.Machine.Name, body, hidden)
		r = alarm.Receipt{ID: m.Id, Pop: m.Pop()}
	})
	if err != nil {
		return alarm.Receipt{}, err
	}
	return r, nil
}

// Receive implements [alarm.Queue].
func (l *MailLine) Receive(ctx context.Context, most int, hide time.Duration) ([]alarm.Message, error) {
	if most < 1 || most > 32 || hide < time.Second {
		return nil, fmt.Errorf("the queue gives no %d messages for %s", most, hide)
	}
	var all []alarm.Message // see Put
	err := l.call(ctx, "take mail", "", func() {
		for _, m := range l.Box.Take(l.Machine.Name, most, hide) {
			inserted := m.Inserted
			if l.Box.Whole {
				inserted = inserted.Truncate(time.Second)
			}
			all = append(all, alarm.Message{Receipt: alarm.Receipt{ID: m.Id, Pop: m.Pop()}, Body: m.Body, Inserted: inserted, Dequeued: m.Pops})
		}
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

// Delete implements [alarm.Queue].
func (l *MailLine) Delete(ctx context.Context, r alarm.Receipt) error {
	return l.call(ctx, "drop mail", r.ID, func() { l.Box.Drop(l.Machine.Name, r.ID, r.Pop) })
}

// mailPatience is how long a client waits for an answer of the queue.
const mailPatience = 10 * time.Second

// call takes a call to the queue and its answer back, as the network pleases.
func (l *MailLine) call(ctx context.Context, op, about string, apply func()) error {
	ctx, cancel := context.WithTimeout(ctx, mailPatience)
	defer cancel()
	r, err := l.begin(ctx, about, op)
	if err != nil {
		return err
	}
	m := l.Machine
	if m.At(op + " before"); !m.Sleep(context.Background(), 0, r) {
		return m.awake(ctx)
	}
	if err := l.way(ctx, r, op, apply); err != nil {
		return errors.Join(err, m.awake(ctx))
	}
	if m.At(op + " after"); !m.Sleep(context.Background(), 0, r) {
		return m.awake(ctx)
	}
	return nil
}

// way is the way there and back.
func (l *MailLine) way(ctx context.Context, r *draw.Roll, op string, apply func()) error {
	there, back := r.Latency(), r.Latency()
	fault := l.ill(r)
	broken := fmt.Errorf("the network: %s", fault)
	if fault != trace.None {
		l.Log.Add(trace.Event{What: trace.Mail, Replica: l.Machine.Name, Op: trace.MailFault, Cause: string(fault), Note: op})
	}
	switch fault {
	case trace.Drop:
		return hang(ctx)
	case trace.Denied:
		broken = fs.ErrPermission
		fallthrough
	case trace.Refuse, trace.Throttle, trace.Internal, trace.Busy, trace.Page, trace.ReadOnly:
		return errors.Join(Pause(ctx, there), broken)
	case trace.Late:
		l.later(r.Between(0, 3*longest), apply)
		return hang(ctx)
	case trace.Slow:
		there += r.Between(0, mailPatience/2)
	}
	sent := time.Now()
	if err := Pause(ctx, there); err != nil {
		l.later(there-time.Since(sent), apply)
		return err
	}
	apply()
	l.Machine.At(op + " applied")
	switch fault {
	case trace.DropReply:
		return hang(ctx)
	case trace.Reset, trace.Applied500, trace.CutOff:
		return errors.Join(Pause(ctx, back), broken)
	}
	return Pause(ctx, back)
}

// ill is what a call meets.
func (l *MailLine) ill(r *draw.Roll) trace.Fault {
	now := time.Now()
	if !now.Before(l.Calm) {
		return trace.None
	}
	for _, f := range l.Ills {
		if !now.Before(f.From) && now.Before(f.To) && (f.Slot < 0 || f.Slot == l.Machine.Slot) && r.Chance(f.Share) {
			if f.Fault != trace.None {
				return f.Fault
			}
			return ills[r.Below(len(ills))]
		}
	}
	return trace.None
}
