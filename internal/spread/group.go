package spread

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/soloist-go/soloist/internal/instant"
)

const (
	// keepExtra is for how many leases a shard does not count that a replica took beyond its target.
	keepExtra = 10

	// keepFailed is for how long a shard is not handed over that a replica took beyond its target since
	// it had failed on another one: it would fail there again.
	keepFailed = time.Hour
)

// A Holder holds a shard on this replica, or waits for it. It is the runner of the shard.
type Holder interface {
	// StepDown hands the shard over. It returns false if this replica does not hold it.
	StepDown(ctx context.Context) (held bool, err error)
	// Heed makes the holder look at its shard soon.
	Heed()
}

// A Group is the shards of one singleton on this replica.
type Group struct {
	length time.Duration // of a lease
	key    string        // distinguishes it from others, and from the same name with another number of shards
	names  []string      // of the shards
	ask    func()        // for a look at the store before its time; it does not block

	mu      sync.Mutex
	phase   phase
	target  int      // how many shards this replica holds; meant for the phase known
	members []member // also for the phase known; the replicas that are up
	stale   bool     // the last look has failed, so no look shows a chance
	places  []place
	hurried []Holder // since mu was locked; see unlock
}

// A phase is what a group knows of the replicas.
type phase int

const (
	closed  phase = iota // nothing yet, and the first look is near: nothing is acquired
	unknown              // the store could not be listed: whatever is free is acquired
	known
)

// A place is what this replica knows of one shard.
type place struct {
	holder  Holder
	taken   time.Time // since when it is held here, or being acquired; zero: it is not
	leaving bool      // it is being handed over
	extra   time.Time // until when it does not count, since it was taken beyond the target; zero: it was not
	kept    time.Time // until when it is not handed over, since it failed on another replica; zero: it did not
	refused time.Time // since when it is free and may not be acquired here; zero: it is not
	waiting bool      // its holder waits for a chance to acquire it
	hurried bool      // there is such a chance
}

func newGroup(name string, shards []string, length time.Duration, ask func()) *Group {
	sum := sha256.Sum256([]byte(name + "\x00" + strconv.Itoa(len(shards))))
	return &Group{length: length, key: hex.EncodeToString(sum[:4]), names: shards, ask: ask, places: make([]place, len(shards))}
}

// Add sets who holds the shard of that index.
func (g *Group) Add(i int, h Holder) { g.places[i].holder = h }

// listedFrom is from how many shards on a listing in each third of a lease is cheaper than a read of
// each shard that another replica holds. The Blob service bills a listing about like twelve reads.
const listedFrom = 12

func (g *Group) listed() bool { return len(g.names) >= listedFrom }

// full reports whether this replica has what it is to hold. The caller holds mu.
func (g *Group) full(now time.Time) bool {
	return g.phase == closed || g.phase == known && len(g.staying(now)) >= g.target
}

// staying returns the indexes of the shards that count, those first that are handed over first: the
// ones taken last, and after them the ones that others were unable to hold. The caller holds mu.
func (g *Group) staying(now time.Time) (places []int) {
	for i, p := range g.places {
		if !p.taken.IsZero() && !p.leaving && !now.Before(p.extra) {
			places = append(places, i)
		}
	}
	slices.SortFunc(places, func(a, b int) int {
		p, q := &g.places[a], &g.places[b]
		return cmp.Or(p.kept.Compare(q.kept), p.extra.Compare(q.extra), q.taken.Compare(p.taken), cmp.Compare(b, a))
	})
	return places
}

// held returns how many shards this replica holds.
func (g *Group) held() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.staying(time.Now()))
}

// blind says that a look has failed. If nothing is known of the replicas, the group acquires what it
// finds. All that wait for a look read their shards themselves from now on.
func (g *Group) blind() {
	g.mu.Lock()
	defer g.unlock()
	if g.phase == closed || !g.stale && g.listed() {
		g.hurry(all)
	}
	if g.stale = true; g.phase == closed {
		g.phase = unknown
	}
}

// meet takes in the replicas that are up. If others are up than before, what is held beyond the target
// is for them, too.
func (g *Group) meet(members []member) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !slices.EqualFunc(members, g.members, func(a, b member) bool { return a.entry == b.entry }) {
		now := time.Now()
		for i := range g.places {
			p := &g.places[i]
			p.extra, p.kept = instant.Earlier(p.extra, now), instant.Earlier(p.kept, now)
		}
	}
	g.members = members
}

// open has the holders look at shards that they follow, and that no replica has by now.
func (g *Group) open(shards []string) {
	g.mu.Lock()
	defer g.unlock()
	g.hurry(func(i int) bool { return g.places[i].refused.IsZero() && slices.Contains(shards, g.names[i]) })
}

// isUp reports whether a replica is up, as far as it is known. The caller holds mu.
func (g *Group) isUp(replica string) bool {
	return slices.ContainsFunc(g.members, func(m member) bool { return m.replica == replica })
}

// aim sets how many shards this replica is to hold, and returns the shards to hand over.
func (g *Group) aim(target int) (surplus []int) {
	g.mu.Lock()
	defer g.unlock()
	rose := g.phase != known || target > g.target
	g.phase, g.target, g.stale = known, target, false
	now := time.Now()
	staying := g.staying(now)
	for _, i := range staying[:max(0, len(staying)-target)] {
		if now.Before(g.places[i].kept) { // and so are the others
			break
		}
		g.places[i].leaving = true
		surplus = append(surplus, i)
	}
	if rose {
		g.hurry(all)
	}
	return surplus
}

// hurry makes the holders of some shards look at them that wait. The caller holds mu, and ends with unlock.
func (g *Group) hurry(which func(i int) bool) {
	for i := range g.places {
		if p := &g.places[i]; p.waiting && which(i) {
			p.waiting, p.hurried = false, true
			g.hurried = append(g.hurried, p.holder)
		}
	}
}

func all(int) bool { return true }

// unlock unlocks mu, and then has the holders look that hurry has named: they may ask the group.
func (g *Group) unlock() {
	hurried := g.hurried
	g.hurried = nil
	g.mu.Unlock()
	for _, h := range hurried {
		h.Heed()
	}
}

// handOver hands over a shard that is to leave, if it still is.
func (g *Group) handOver(ctx context.Context, i int) {
	h := g.leaves(i)
	if h == nil {
		return
	}
	if held, _ := h.StepDown(ctx); held { // it ends with the run, or with ctx
		return
	}
	g.mu.Lock()
	g.places[i].leaving = false
	g.mu.Unlock()
}

// leaves returns the holder of a shard that is to be handed over now, nil if it is to stay: it was
// acquired again, or the target has risen since.
func (g *Group) leaves(i int) Holder {
	g.mu.Lock()
	defer g.mu.Unlock()
	p := &g.places[i]
	if len(g.staying(time.Now())) < g.target {
		p.leaving = false
	}
	if !p.leaving {
		return nil
	}
	return p.holder
}
