package lease

import (
	"context"
	"sync"
	"time"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/store"
)

// Hold acquires the lease as Acquire does, and renews it at each third of its length until
// Stop or GiveUp. The end of ctx does not end the lease: its holder may have a run to end and
// an outcome to write. Trouble receives why a call has failed again, and nil once it
// succeeds; emit receives Renewed, and Lost at the end of the trust, unless the caller has
// ended it. Several goroutines call both; neither may block.
func Hold(ctx context.Context, c *Client, etag string, rec *store.Record, length time.Duration, trouble func(error), emit func(event.Event)) (*Session, error) {
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
	s.giveUp = giveUp
	// The deadline is a chore of its own: a renewal may hang beyond it.
	deadline := newChore(min(s.Left(), s.lookAgain()), s.watchDeadline)
	s.mu.Lock()
	s.trust.watch = deadline
	s.mu.Unlock()
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
