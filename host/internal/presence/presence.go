// Package presence shows which replicas of an app are up.
//
// Each replica that serves writes an entry about itself into one document of the store,
// "<app>/.replicas": when it starts, when its health changes, regularly, and when it
// stops. A replica that is killed leaves an entry that grows old. All times in the document
// are the store's, so no clocks of two machines are compared.
//
// # What is not promised
//
// That the document is complete or new. It decides only how long a singleton goes on after a
// stop: which replica runs what is a matter of leases and records alone. So a replica that
// cannot write it works on, and tries again later.
package presence

import (
	"context"
	crand "crypto/rand"
	"errors"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/soloist-go/soloist/internal/ontime"
	"github.com/soloist-go/soloist/store"
)

const (
	lookTime   = 5 * time.Second  // how often a replica checks its own health, from memory
	leastTime  = 15 * time.Second // between two writes, however often its health changes
	repeatTime = 15 * time.Second // after a write that has failed
	leaveTime  = 2 * time.Second  // for the last write, which the end of the process waits for
)

// A Config is what a Beacon needs to know. All fields but Woken and Saw are needed.
type Config struct {
	App, Replica string
	Store        store.Documenter
	Every        time.Duration // the longest time between two writes
	Woken        bool          // a platform wakes the program up, and calls Pass
	Self         func() Self   // this replica now, from memory
	Work         Work
	Saw          func(Reading) // gets what the document has, at each write
	Log          *slog.Logger
}

// A Beacon writes that this replica is up.
type Beacon struct {
	c     Config
	id    string
	begun time.Time

	mu      sync.Mutex
	started time.Time // by the store's clock; zero: it has not answered yet
	said    Self      // what was written last
	next    time.Time // when to write again
	least   time.Time // not before, even if the health changes
	told    string    // the trouble that was logged last

	lossy sync.Mutex           // never held during a call
	lost  map[string]time.Time // replicas to be marked as lost, and when the run began that was settled
}

// New returns a Beacon that writes nothing before Run or Pass.
func New(c Config) *Beacon { return &Beacon{c: c, id: crand.Text()[:12], begun: time.Now()} }

// Run writes until ctx ends. The caller then calls Leave, after its work has ended.
func (b *Beacon) Run(ctx context.Context) {
	for wait := rand.N(time.Second); ontime.Sleep(ctx, wait); wait = lookTime {
		b.Pass(ctx)
	}
}

// Pass writes if that is due. Two calls at the same time make one write.
func (b *Beacon) Pass(ctx context.Context) {
	if !b.mu.TryLock() {
		return
	}
	defer b.mu.Unlock()
	self, now, lost := b.c.Self(), time.Now(), b.losses(nil)
	if len(lost) == 0 && now.Before(b.next) && (now.Before(b.least) || b.said.looks(self)) {
		return
	}
	b.next = time.Now().Add(b.c.Every - rand.N(b.c.Every/4))
	err := b.update(ctx, self, false)
	if err == nil {
		b.losses(lost)
	}
	if err != nil && !errors.Is(err, ErrForeign) {
		b.next = time.Now().Add(min(b.c.Every, repeatTime) - rand.N(repeatTime/4))
	}
	b.said, b.least = self, time.Now().Add(leastTime)
	b.trouble(err)
}

// Lose notes that this replica has settled another replica's run, which has no end: that replica is shown as lost
// from the next Pass on, until it writes again. run is when the run began.
func (b *Beacon) Lose(replica string, run time.Time) {
	b.lossy.Lock()
	defer b.lossy.Unlock()
	if b.lost == nil {
		b.lost = map[string]time.Time{}
	}
	b.lost[replica] = run
}

// losses returns the replicas that are to be marked, without those that are.
func (b *Beacon) losses(marked map[string]time.Time) map[string]time.Time {
	b.lossy.Lock()
	defer b.lossy.Unlock()
	for name, run := range marked {
		if b.lost[name].Equal(run) {
			delete(b.lost, name)
		}
	}
	return maps.Clone(b.lost)
}

// looks reports whether two states differ in nothing that is worth a write before its time.
func (s Self) looks(other Self) bool {
	return s.Health == other.Health && slices.Equal(s.Reasons, other.Reasons)
}

// Leave writes that this replica has stopped. It takes two seconds at most.
func (b *Beacon) Leave() {
	ctx, cancel := context.WithTimeout(context.Background(), leaveTime)
	defer cancel()
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.started.IsZero() {
		_ = b.update(ctx, b.said, true) // without it the replica is shown as silent
	}
}

// update writes the entry of this replica.
func (b *Beacon) update(ctx context.Context, self Self, leaves bool) error {
	reader := Reader{Store: b.c.Store, App: b.c.App}
	return known(reader.document().Update(ctx, func(body []byte, now time.Time) ([]byte, error) {
		doc, err := decode(body, b.c.App)
		if err != nil {
			return nil, err
		}
		if b.started.IsZero() {
			b.started = now.Add(-time.Since(b.begun)).Truncate(time.Millisecond)
		}
		entry := Replica{ID: b.id, Started: b.started, Seen: now, Every: int((b.c.Every + time.Second - 1) / time.Second), Woken: b.c.Woken, Self: self}
		if leaves {
			if doc.Replicas[clip(b.c.Replica, longName)].ID != b.id {
				return nil, nil // another process has the name by now
			}
			entry.Left = now
		}
		for name, run := range b.losses(nil) {
			doc.lose(name, run, now)
		}
		doc.put(b.c.Replica, entry, b.c.Work)
		if b.c.Saw != nil {
			b.c.Saw(Reading{now, doc})
		}
		return doc.encode()
	}))
}

// trouble logs once that the document is not one of Soloist. Of an outage the log has lines
// already.
func (b *Beacon) trouble(err error) {
	text := ""
	if errors.Is(err, ErrForeign) {
		text = err.Error()
	}
	if text != "" && text != b.told {
		b.c.Log.Warn("this replica is not shown among the replicas: correct or delete the document", "document", Name(b.c.App), "error", err)
	}
	b.told = text
}
