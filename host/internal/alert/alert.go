// Package alert sends a message when something is wrong with a job, and one when it is right
// again, and pings a dead-man's switch for each run.
//
// What is wrong is an incident. Each replica finds the incidents of jobs in their records, so
// that one is also found if the replica that has to do with it is gone. The replicas agree by
// one document of the store, "<app>/.alerts": it has the open incidents, and which replica
// has taken a message to send and until when. All times in it are the store's, so no clocks
// of two machines are compared.
//
// # What is not promised
//
// That a message is sent once if its sender dies between the send and the note of it, or if
// the answer of the receiver is lost: then another replica sends it again, when the claim of
// the first has expired. Both messages have the same id. A living replica that can reach the
// store does not send a message twice after it was confirmed.
package alert

import (
	"context"
	crand "crypto/rand"
	"errors"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/internal/desk"
	"github.com/soloist-go/soloist/internal/ontime"
	"github.com/soloist-go/soloist/internal/record"
	"github.com/soloist-go/soloist/store"
)

const (
	idlePace = 30 * time.Second // how often the records are looked at
	busyPace = 5 * time.Second  // while a message waits, or a tick seems overdue
	restPace = 2 * time.Second  // from an event to the look: records are cached for so long
)

// A Notifier finds incidents and sends messages about them.
type Notifier struct {
	c     Config
	me    string // distinguishes the claims of this process from an earlier one's with the same name
	poked chan struct{}

	// These belong to the goroutine of Run.
	shared *shared
	jobs   detector        // finds what is wrong with jobs
	here   local           // finds what is wrong with this replica
	sent   map[string]bool // messages that were confirmed, until the document says so
	forgot int             // document.Forgot at the last look
	busy   bool            // the next look comes soon
	told   string          // the last trouble with the document

	mu      sync.Mutex
	failing map[string]bool // jobs that have an open incident
}

// NewNotifier returns a Notifier, which does nothing before Run.
func NewNotifier(c Config) *Notifier {
	return &Notifier{c: c, me: c.Replica + "-" + crand.Text()[:8], poked: make(chan struct{}, 1), sent: map[string]bool{},
		shared: newShared(&c), jobs: newDetector(&c), here: newLocal(&c)}
}

// Hear takes an event of the scheduler. It does not block.
func (n *Notifier) Hear(e event.Event) {
	if e.Kind == event.Skewed {
		n.here.hear(e.Skew)
	}
	n.mu.Lock()
	good := e.Kind == event.Ended && e.Outcome.Status == event.Succeeded && !n.failing[e.Job]
	n.mu.Unlock()
	switch e.Kind {
	case event.Ended, event.Settled, event.NoProgress, event.Skewed, event.StoreBack:
		if good {
			return
		}
		select {
		case n.poked <- struct{}{}:
		default:
		}
	}
}

// Run finds and sends until ctx ends. A message that is being sent then has its time.
func (n *Notifier) Run(ctx context.Context) {
	for n.rest(ctx) {
		n.step(ctx)
	}
}

// rest waits for the next look. It returns false once ctx has ended.
func (n *Notifier) rest(ctx context.Context) bool {
	pace := idlePace
	if n.busy {
		pace = busyPace
	}
	if !ontime.Sleep(ctx, restPace) {
		return false
	}
	t := time.NewTimer(pace - restPace - rand.N(pace/4)) // replicas that look at the same time get in each other's way
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-n.poked:
		return ontime.Sleep(ctx, restPace)
	case <-ctx.Done():
		return false
	}
}

// step is one look and the messages that follow from it.
func (n *Notifier) step(ctx context.Context) {
	n.busy = n.here.look()
	n.deliverLocal(ctx)
	seen, suspect := n.jobs.detect(ctx)
	n.busy = n.busy || suspect
	var due []Message
	var dropped []string
	begun := n.c.Elapsed()
	err := n.shared.update(ctx, func(d *content, now time.Time) bool {
		begun = n.shared.sentAt
		for i := range seen {
			seen[i].date(now, begun)
		}
		n.startAfresh(d, seen)
		changed := n.note(d, now, nil)
		changed = d.observe(seen, n.jobs.floors, now) || changed
		due, dropped = d.take(n.me, now)
		return changed || len(due)+len(dropped) > 0
	})
	if n.trouble(err); err != nil {
		return
	}
	n.gaveUp(dropped)
	results := n.send(ctx, due, begun)
	if len(results) > 0 {
		n.trouble(n.shared.update(context.WithoutCancel(ctx), func(d *content, now time.Time) bool {
			return n.note(d, now, results)
		}))
	}
	n.remember()
}

// startAfresh raises the floors as at a first look if the document has lost something since the last look:
// what is over by now has been reported.
func (n *Notifier) startAfresh(d *content, seen []condition) {
	if d.Forgot == n.forgot {
		return
	}
	n.forgot = d.Forgot
	for i := range seen {
		if c := &seen[i]; !c.timed {
			n.jobs.floors[c.Job] = max(n.jobs.floors[c.Job], c.Version)
		}
	}
}

// deliverLocal sends the messages about this replica.
func (n *Notifier) deliverLocal(ctx context.Context) {
	due, dropped := n.here.incidents.take(n.me, n.here.now())
	n.gaveUp(dropped)
	results := n.send(ctx, n.here.dated(due), n.c.Elapsed())
	n.note(&n.here.incidents, n.here.now(), results)
	for id := range results {
		delete(n.sent, id)
	}
	for _, i := range n.here.incidents.Incidents {
		n.busy = n.busy || i.waits()
	}
}

// note writes into the document what became of messages: of the last sends, and of earlier
// ones that could not be noted.
func (n *Notifier) note(d *content, now time.Time, results map[string]error) (changed bool) {
	for _, i := range slices.Clone(d.Incidents) {
		id := i.message()
		_, tried := results[id]
		switch {
		case n.sent[id]:
			d.sent(i, now)
		case tried && i.Claim.By == n.me:
			i.failed(now)
		default:
			continue
		}
		changed = true
	}
	return changed
}

// remember keeps from the document what the next look needs.
func (n *Notifier) remember() {
	failing, known := map[string]bool{}, map[string]bool{}
	for _, i := range n.shared.last.Incidents {
		failing[i.Job] = failing[i.Job] || i.Over.IsZero()
		known[i.message()] = true
		n.busy = n.busy || i.waits()
	}
	for id := range n.sent {
		if !known[id] {
			delete(n.sent, id)
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.failing = failing
}

// send sends messages at the same time, and returns what became of those that were sent. A
// claim that may have expired by the end of the call is not used.
func (n *Notifier) send(ctx context.Context, due []Message, begun time.Duration) map[string]error {
	results := map[string]error{}
	var mu sync.Mutex
	var all sync.WaitGroup
	for _, m := range due {
		if n.c.Elapsed()-begun > claimFor-2*sendTime {
			break
		}
		all.Go(func() {
			err := n.c.Webhook.send(context.WithoutCancel(ctx), m)
			mu.Lock()
			defer mu.Unlock()
			results[m.ID] = err
		})
	}
	all.Wait()
	for id, err := range results {
		if err == nil {
			n.sent[id] = true
			n.c.Log.Info("alert sent", "message", id)
			continue
		}
		n.c.Log.Warn("the receiver of alerts has not taken a message: it is sent again later", "message", id, "error", err)
	}
	return results
}

// gaveUp logs the messages that are not sent any more.
func (n *Notifier) gaveUp(dropped []string) {
	for _, id := range dropped {
		n.c.Log.Error("the receiver of alerts has not taken a message for a day: it is not sent any more", "message", id)
	}
}

// trouble logs that the document cannot be used, once for each reason.
func (n *Notifier) trouble(err error) {
	if err == nil || errors.Is(err, context.Canceled) {
		n.told = ""
		return
	}
	n.busy = true
	if text := err.Error(); text != n.told {
		n.told = text
		n.c.Log.Warn("alerts wait: the replicas cannot agree on who sends them", "error", err)
	}
}

// A Config is what a Notifier needs to know. All fields are needed.
type Config struct {
	App, Replica string
	Store        store.Documenter
	Webhook      *Webhook
	Failures     int // failures in a row that are an incident

	Look    func(context.Context) []desk.Status           // what the records say, from a cache
	Health  func() soloist.Health                         // of this replica
	Control func(context.Context) (record.Control, error) // what operators have ordered
	Late    func(job string) time.Duration                // how late a tick may be claimed
	Now     func() time.Time                              // the wall clock
	Elapsed func() time.Duration                          // counts the time in suspension
	Log     *slog.Logger
}
