package lease

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/internal/record"
)

// Hold acquires the lease as Acquire does, and renews it at each third of its length until
// Stop or GiveUp. The end of ctx does not end the lease: its holder may have a run to end and
// an outcome to write. Trouble receives why a call has failed again, and nil once it
// succeeds; emit receives Renewed, and Lost at the end of the trust, unless the caller has
// ended it. Several goroutines call both; neither may block.
func Hold(ctx context.Context, c *Client, etag string, rec *record.Record, length time.Duration, trouble func(error), emit func(event.Event)) (*Session, error) {
	s, err := Acquire(ctx, c, etag, rec, length)
	if err != nil {
		return s, err
	}
	s.news = news{trouble, emit}
	s.keep(context.WithoutCancel(ctx))
	return s, nil
}

// keep starts the renewals and the watch of the deadline. ctx must outlive a stop of the
// replica: the session ends when its caller says so.
func (s *Session) keep(ctx context.Context) {
	trusted, end := context.WithCancelCause(ctx)
	var once sync.Once
	// The event comes before the end of the context: it precedes the outcome of a run that ends with the context.
	s.trusted, s.lose = trusted, func(cause error) {
		once.Do(func() {
			if cause != nil {
				s.news.emit(event.Event{Kind: event.Lost, Err: cause})
			}
			end(cause)
		})
	}
	renewals, giveUp := context.WithCancel(s.trusted)
	s.giveUp, s.renewals = giveUp, renewals
	// The deadline is a chore of its own: a renewal may hang beyond it.
	deadline := newChore(min(s.Left(), s.client.briefly(lookAgain)), s.watchDeadline)
	s.trust.mu.Lock()
	s.watch = deadline
	s.trust.mu.Unlock()
	chores := []*chore{deadline, newChore(s.untilRenewal(), func() (time.Duration, bool) { return s.renewAgain(renewals) })}
	if s.client.Beat > 0 {
		chores = append(chores, newChore(s.untilBeat(), func() (time.Duration, bool) { return s.beatAgain(renewals) }))
	}
	s.stop = sync.OnceFunc(func() {
		giveUp()
		for _, c := range chores {
			c.stop()
		}
	})
}

// lookAgain is how often, at least, the deadline is compared with elapsed time: timers stand still
// while a machine is suspended, and the first beat of a run moves the deadline backwards.
const lookAgain = time.Second

// watchDeadline ends the trust in time, however long a renewal hangs. It is a chore.
func (s *Session) watchDeadline() (pause time.Duration, again bool) {
	left := s.Left()
	if left <= 0 {
		s.lose(ErrNotRenewed)
	}
	return min(left, s.client.briefly(lookAgain)), s.trusted.Err() == nil
}

// renewAgain renews the lease, unless ctx has ended, and returns when to do so again. It is a
// chore, but Check and settle may call Renew at the same time.
func (s *Session) renewAgain(ctx context.Context) (pause time.Duration, again bool) {
	switch err := s.inTime(ctx, s.Length/30, s.renewOnce); {
	case err == nil:
	case s.leaving.Load() && !errors.Is(err, ErrNotRenewed): // who writes the outcome finds out what has ended it
		s.giveUp()
	default:
		s.lose(err)
	}
	return s.untilRenewal(), ctx.Err() == nil
}

// beatAgain sends a beat if one is due, and returns when the next one is. It is a chore.
func (s *Session) beatAgain(ctx context.Context) (pause time.Duration, again bool) {
	if err := s.beatInTime(ctx); err != nil && ctx.Err() == nil {
		s.lose(err)
	}
	if pause = s.untilBeat(); pause <= 0 {
		pause = s.client.Beat / 30
	}
	return pause, ctx.Err() == nil
}
