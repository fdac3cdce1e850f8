// Package reads reads the entries of a replica with many jobs: those that are read at the same moment by one
// listing, and few of them each by itself. No job depends on a listing.
package reads

import (
	"context"
	"io/fs"
	"sync"
	"time"

	"github.com/soloist-go/soloist/internal/lease"
	"github.com/soloist-go/soloist/internal/plan"
	"github.com/soloist-go/soloist/store"
)

const (
	// gatherFor is how long a read waits for others of the same moment. As long as they keep
	// coming it waits on, up to gatherMost.
	gatherFor  = 10 * time.Millisecond
	gatherMost = 300 * time.Millisecond

	// listAgain is how long each entry is read by itself after a listing that has failed, for
	// example for want of the right to list.
	listAgain = 5 * time.Minute
)

// A Gathering reads the entries of one replica. What a listing has counts as read when
// it began. An entry that it does not have, since it has failed or has come to no page for long,
// is read by itself: no job depends on the listing.
type Gathering struct {
	gate  // for reads of one entry, and for what else begins something
	app   string
	count int       // of the entries of the replica
	many  bool      // they are so many, and the store lists
	epoch time.Time // reads of all jobs come at instants that are counted from here; see together

	mu     sync.Mutex
	asks   []ask
	failed time.Time // when a listing has failed last
}

// An ask is a read that waits for others.
type ask struct {
	name   string
	answer chan answer // has room for one
}

// An answer comes from a listing; zero: it has none.
type answer struct {
	listed bool
	entry  store.Entry
	err    error
}

// Add counts another entry of the replica, before any is read.
func (g *Gathering) Add(app string, s store.Store, jitter *lease.Jitter) {
	if g.room == nil {
		g.gate = newGate()
	}
	_, lists := s.(store.Lister)
	g.app, g.count = app, g.count+1
	// Replicas that start together do not list together.
	if g.many = lists && g.count >= listedFrom; g.count == listedFrom {
		g.epoch = time.Now().Add(-jitter.UpTo(plan.LookEvery))
	}
}

// worth returns how many reads are worth a listing. One of thousands of entries is not worth a
// dozen of them.
func (g *Gathering) worth() int { return max(listedFrom, g.count/200) }

// together returns the first instant at or after another one at which this replica reads the
// entries of its jobs that are read once in a period.
func (g *Gathering) together(at time.Time, period time.Duration) time.Time {
	gone := at.Sub(g.epoch)
	return g.epoch.Add((gone + period - 1).Truncate(period))
}

// grid is how far apart the instants are at which the entries of many jobs are read. A wait
// that is shorter is left as it is: something is about to happen.
const grid = 200 * time.Millisecond

// Round returns how long it is until the first of those instants after a wait.
func (g *Gathering) Round(wait time.Duration) time.Duration {
	if !g.many || wait < grid {
		return wait
	}
	return time.Until(g.together(time.Now().Add(wait), grid))
}

// LookBy returns when an entry is read again that was looked at at an instant and is not
// expected to change.
func (g *Gathering) LookBy(looked time.Time) time.Time {
	return g.together(looked.Add(1), plan.LookEvery)
}

// Within returns a part of a window that is the same for all jobs with a tick at one instant.
// The replicas differ in it.
func (g *Gathering) Within(window time.Duration, tick time.Time) time.Duration {
	return tick.Sub(g.epoch).Abs() % max(window, 1)
}

// Many reports whether listings take the place of reads.
func (g *Gathering) Many() bool { return g.many }

// Read reads the entry of a client.
func (g *Gathering) Read(ctx context.Context, c *lease.Client) (store.Entry, error) {
	if !g.many {
		return g.readOne(ctx, c)
	}
	a, first := g.join(c.Name)
	if first {
		g.lead(ctx, c)
	}
	select {
	case got := <-a.answer:
		if got.listed {
			return got.entry, got.err
		}
	case <-ctx.Done():
	}
	return g.readOne(ctx, c)
}

// readOne reads one entry by itself.
func (g *Gathering) readOne(ctx context.Context, c *lease.Client) (store.Entry, error) {
	defer g.Pass(ctx)()
	return c.Read(ctx)
}

// join adds a read to those that wait. The first of them leads the others.
func (g *Gathering) join(name string) (a ask, first bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	a = ask{name, make(chan answer, 1)}
	g.asks = append(g.asks, a)
	return a, len(g.asks) == 1
}

// lead waits for the others, and lists if they are many enough. In the end all have an answer.
func (g *Gathering) lead(ctx context.Context, c *lease.Client) {
	g.wait(ctx)
	g.mu.Lock()
	asks := g.asks
	g.asks = nil
	worth := len(asks) >= g.worth() && (g.failed.IsZero() || time.Since(g.failed) > listAgain)
	g.mu.Unlock()
	if worth && !g.list(ctx, c, asks) {
		g.mu.Lock()
		g.failed = time.Now()
		g.mu.Unlock()
	}
	for _, a := range asks {
		select {
		case a.answer <- answer{}:
		default: // it has its answer
		}
	}
}

// wait returns when no more reads come.
func (g *Gathering) wait(ctx context.Context) {
	waiting := func() int {
		g.mu.Lock()
		defer g.mu.Unlock()
		return len(g.asks)
	}
	for begin, before := time.Now(), 0; ctx.Err() == nil && time.Since(begin) < gatherMost; {
		n := waiting()
		if n == before {
			return
		}
		before = n
		lease.Sleep(ctx, gatherFor)
	}
}

// list answers what one listing can answer, and reports whether that has succeeded. The end of
// ctx is no failure of the listing.
func (g *Gathering) list(ctx context.Context, c *lease.Client, asks []ask) bool {
	names := make(map[string][]ask, len(asks)) // several may read one entry: the entry of a job which others follow
	for _, a := range asks {
		names[a.name] = append(names[a.name], a)
	}
	tell := func(name string, got answer) {
		for _, a := range names[name] {
			a.answer <- got
		}
		delete(names, name)
	}
	all := list(ctx, g.app, c, func(name string, e store.Entry) { tell(name, answer{true, e, nil}) })
	if all.whole && !all.date.IsZero() { // a new entry starts from that date
		for name := range names {
			e, err := all.missing()
			tell(name, answer{true, e, err})
		}
	}
	return all.whole || ctx.Err() != nil
}

const (
	// gateRoom is how many reads, creations and acquisitions of a replica are under way at once.
	// A thousand at the same moment make the store answer each of them so late that some run
	// out of their time, and their ticks with them.
	gateRoom = 64

	// gateTime is how long a call counts. A call that hangs, of a job whose entry hangs, makes no
	// other job wait for longer.
	gateTime = time.Second
)

// A gate bounds the calls by which the jobs of a replica begin something. They pass in the order
// in which they come. What follows an acquisition never waits here: the claim, the outcome, and
// above all renewals and the release.
type gate struct{ room chan struct{} }

func newGate() gate { return gate{make(chan struct{}, gateRoom)} }

// Pass waits until there is room for a call that begins something in the store, or ctx ends. The caller calls done after it.
func (g gate) Pass(ctx context.Context) (done func()) {
	select {
	case g.room <- struct{}{}:
	case <-ctx.Done():
		return func() {}
	}
	leave := sync.OnceFunc(func() { <-g.room })
	late := time.AfterFunc(gateTime, leave)
	return func() {
		late.Stop()
		leave()
	}
}

// listedFrom is from how many entries on one listing takes the place of a read of each.
// The Blob service bills a listing about like twelve reads of properties.
const listedFrom = 12

// A Listing is what one listing of an app has returned.
type Listing struct {
	entries map[string]store.Entry // by name
	whole   bool                   // an entry that is not in it does not exist
	date    time.Time              // the store's, of its last entry, or the earliest that it can be; zero: not known
}

// list calls f for each entry of an app, over the store of a client. What it has not returned is read by itself.
func list(ctx context.Context, app string, c *lease.Client, f func(name string, e store.Entry)) Listing {
	date, err := c.List(ctx, app, f)
	// Without entries there is no date, and the wall clock may be fast.
	if date.IsZero() {
		date = c.Clock.Now().Earliest
	}
	return Listing{whole: err == nil, date: date}
}

// missing is the answer for an entry that a whole listing does not have. It has the date of the
// listing, from which a new entry starts.
func (l *Listing) missing() (store.Entry, error) {
	return store.Entry{Revision: store.Revision{Date: l.date}}, fs.ErrNotExist
}

// Entry returns what the listing has of an entry, and reads the entry if that is nothing.
func (l *Listing) Entry(ctx context.Context, c *lease.Client) (store.Entry, error) {
	if e, ok := l.entries[c.Name]; ok {
		return e, nil
	}
	if l.whole {
		return l.missing()
	}
	return c.Read(ctx)
}

// List lists the entries of some clients of an app if that is cheaper than to read each of them. It
// returns an empty listing otherwise, and what it has got if the listing fails, for
// example for want of the right to list.
func List(ctx context.Context, app string, clients []*lease.Client) Listing {
	if len(clients) < listedFrom {
		return Listing{}
	}
	if _, lists := clients[0].Store.(store.Lister); !lists {
		return Listing{}
	}
	ours, got := make(map[string]bool, len(clients)), make(map[string]store.Entry, len(clients))
	for _, c := range clients {
		ours[c.Name] = true
	}
	all := list(ctx, app, clients[0], func(name string, e store.Entry) {
		if ours[name] {
			got[name] = e
		}
	})
	all.entries = got
	return all
}
