package runner

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/internal/control"
	"github.com/soloist-go/soloist/internal/lease"
	"github.com/soloist-go/soloist/internal/plan"
	"github.com/soloist-go/soloist/internal/supervise"
	"github.com/soloist-go/soloist/store"
)

// lateSpread is how much later than its time a tick is reported at most during a run.
const lateSpread = time.Second

// judge notes in a record that is about to be written which ticks are late, and returns those that
// were not reported before. The view holds the record before that: what it has settled is reported too if
// no program before this one has asked for it.
func (r *Runner) judge(rec *store.Record) plan.Lateness {
	r.judged(rec)
	return r.job.Policy.Judge(rec, r.now(), r.orders())
}

// tell is judge for a write with no other purpose.
func (r *Runner) tell(rec *store.Record) plan.Lateness {
	r.judged(rec)
	return r.job.Policy.Tell(rec, r.now(), r.orders())
}

// judged has a record that says nothing of late ticks begin with what the view has settled.
func (r *Runner) judged(rec *store.Record) {
	if r.job.Policy.FinishBy > 0 && rec.Past.Judged.IsZero() {
		rec.Past.Judged = r.view.rec.Watermark
	}
}

// emitLate reports late ticks, once the record says that they are reported. err is the write's: if
// it may have been taken, they are reported now, since nothing reports them later.
func (r *Runner) emitLate(late plan.Lateness, err error) {
	if late.Count == 0 || err != nil && surelyNotWritten(err) || !late.Tick.After(r.view.toldLate) {
		return
	}
	r.view.toldLate = late.Tick
	r.emit(event.Event{Kind: event.Late, Run: event.Run{Tick: late.Tick}, Count: late.Count, Note: late.Why})
}

// tellLate writes which ticks are late into the record of an entry that was seen free.
func (r *Runner) tellLate(ctx context.Context, rest time.Duration) time.Duration {
	if r.denial.bars(time.Now()) {
		return rest
	}
	var late plan.Lateness
	err := r.annotate(ctx, func(rec *store.Record) { late = r.tell(rec) })
	r.emitLate(late, err)
	if err != nil {
		return r.notAnnotated(ctx, err)
	}
	return 0
}

// watchLate reports ticks that become late while this replica runs the job: no other replica can write
// meanwhile. It returns what ends that, and waits for its end.
func (h *hold) watchLate() (end func()) {
	if h.job.Policy.FinishBy == 0 {
		return func() {}
	}
	s := h.session
	ctx, cancel := context.WithCancel(s.Context())
	over := make(chan struct{})
	rec := s.Record()
	jitter := lease.NewJitter(fmt.Sprint(h.replica.Name, h.Name(), rec.Token)) // of its own: it does not matter what else draws meanwhile
	go func() {
		defer close(over)
		for least := time.Duration(0); ; {
			rec := s.Record()
			wait := h.job.Policy.UntilTell(&rec, h.now(), h.orders())
			// A little later, so that the writes of jobs with one schedule do not come at one time.
			lease.Sleep(ctx, min(max(wait, least), maxSleep)+jitter.UpTo(lateSpread))
			if ctx.Err() != nil {
				return
			}
			if wait > maxSleep { // timers stand still while a machine is suspended
				least = 0
				continue
			}
			least = maxSleep // if the write fails
			h.tellLateUnder(ctx)
		}
	}()
	return func() { cancel(); <-over }
}

// tellLateUnder writes which ticks are late under the lease of a run. If that fails, the end of the run
// or the next claim reports them.
func (h *hold) tellLateUnder(ctx context.Context) {
	s := h.session
	rec := s.Record()
	if h.judge(&rec).Count == 0 || s.Expired() { // the next holder reports them, or did while this machine was suspended
		return
	}
	ctx, cancel := context.WithTimeout(ctx, s.CallTimeout())
	defer cancel()
	var late plan.Lateness
	err := s.WriteOrForget(ctx, func(rec *store.Record) { late = h.tell(rec) })
	h.emitLate(late, err)
}

// replacing ends the run of rec once a newer tick is due that takes its place, and that can start: why
// returns what keeps it from that. Both replica and tick are known here, so this asks no store.
func (r *Runner) replacing(rec *store.Record, now func() time.Time, why func() error, end context.CancelCauseFunc) (done func()) {
	p := &r.job.Policy
	if p.Overlap != plan.Replace || rec.Run.Request != "" {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	of := rec.Clone() // the runner goes on with its own
	var watch sync.WaitGroup
	watch.Go(func() {
		for ctx.Err() == nil {
			v := plan.View{Record: &of, Now: now(), Control: r.orders()}
			wait := p.UntilReplaced(v)
			if tick := p.ReplacedBy(v); !tick.IsZero() {
				if why() == nil {
					end(supervise.Replaced(tick))
					return
				}
				wait = min(wait, control.Again)
			}
			lease.Sleep(ctx, wait)
		}
	})
	return func() {
		cancel()
		watch.Wait()
	}
}

// cannotFollow returns why a tick that is due under the run of a call would not start after it.
func (r *Runner) cannotFollow(stop context.Context, c *call) error {
	if stop.Err() != nil {
		return context.Cause(stop)
	}
	if c.bounded && !c.queuesNext() {
		return errLeft
	}
	if err := r.replica.Degraded(); err != nil {
		return err
	}
	if err := r.fits(stop, c); err != nil || r.job.EveryReplica {
		return err
	}
	return r.replica.Orders.Stale()
}

// errLeft keeps a tick from taking the place of a run.
var errLeft = errors.New("the tick is left to the next call")

// obeyingHere is obeying for a run without a record, which no operator can end.
func (r *Runner) obeyingHere(stop context.Context, c *call, a *supervise.Attempt) (done func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	a.Under.Cancelled = ctx
	rec := store.Record{Run: store.Run{Tick: a.Info.Tick, Request: a.Info.Request}}
	replaced := r.replacing(&rec, r.replica.Wall, func() error { return r.cannotFollow(stop, c) }, cancel)
	return func() {
		replaced()
		cancel(nil)
	}
}
