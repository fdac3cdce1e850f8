package alarm

import (
	"context"
	"sync"
	"time"

	"github.com/soloist-go/soloist/internal/ontime"
)

// A guard is a message that wakes the app up if this process dies: it is put off as long as the process lives.
type guard struct {
	mailbox
	span time.Duration // for which the message is invisible

	receipt Receipt
	pending bool
}

// Guard keeps a message in the queue that becomes visible within span after the death of this process. It is for work that
// no other message wakes anybody up for. It is put off each third of span, the new message before the old one is deleted.
//
// A release ends that, and waits for the end. If the work is done it deletes the message; otherwise it leaves that to wake
// the app up. What cannot be put is logged, and tried again.
func (c *Clock) Guard(ctx context.Context, span time.Duration) (release func(done bool)) {
	g := &guard{mailbox: *c.mailbox(), span: span}
	living, end := context.WithCancel(context.WithoutCancel(ctx))
	var keeper sync.WaitGroup
	keeper.Go(func() {
		for g.renew(living); ontime.Sleep(living, span/3); {
			g.renew(living)
		}
	})
	return func(done bool) {
		end()
		keeper.Wait()
		if done && g.pending {
			g.drop(context.WithoutCancel(ctx), g.receipt)
		}
	}
}

// renew puts the message that is visible after the span, and then deletes the one before.
func (g *guard) renew(ctx context.Context) {
	at := g.now().Add(g.span)
	receipt, err := g.putOnce(ctx, newMessage(g.app, at, at), g.span)
	if err != nil {
		if ctx.Err() == nil {
			g.log.Warn("no message is set that wakes the app up if this process dies: it is tried again", "in", g.span/3, "error", err)
		}
		return
	}
	if g.pending {
		g.drop(ctx, g.receipt)
	}
	g.receipt, g.pending = receipt, true
}
