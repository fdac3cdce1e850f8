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
)

// keepExtra is for how many leases a replica keeps a shard beyond its target that no other one took.
const keepExtra = 10

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
	key    string        // tells it from others, and from the same name with another number of shards
	names  []string      // of the shards
	ask    func()        // for a look at the store before its time; it does not block

	mu     sync.Mutex
	phase  phase
	target int // how many shards this replica holds; meant for the phase known
	places []place
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
	extra   time.Time // until when it does not count, since no other replica took it
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

// staying returns the indexes of the shards that count, the ones taken last first. The caller
// holds mu.
func (g *Group) staying(now time.Time) (places []int) {
	for i, p := range g.places {
		if !p.taken.IsZero() && !p.leaving && !now.Before(p.extra) {
			places = append(places, i)
		}
	}
	slices.SortFunc(places, func(a, b int) int {
		return cmp.Or(g.places[b].taken.Compare(g.places[a].taken), cmp.Compare(b, a))
	})
	return places
}

// held returns how many shards this replica holds.
func (g *Group) held() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.staying(time.Now()))
}

// blind lets the group acquire what it finds, if nothing is known of the replicas.
func (g *Group) blind() {
	g.mu.Lock()
	var hurried []Holder
	if g.phase == closed {
		g.phase, hurried = unknown, g.hurry()
	}
	g.mu.Unlock()
	heed(hurried)
}

// aim sets how many shards this replica is to hold, and returns the shards to hand over.
func (g *Group) aim(target int) (surplus []int) {
	g.mu.Lock()
	rose := g.phase != known || target > g.target
	g.phase, g.target = known, target
	staying := g.staying(time.Now())
	for _, i := range staying[:max(0, len(staying)-target)] {
		g.places[i].leaving = true
		surplus = append(surplus, i)
	}
	var hurried []Holder
	if rose {
		hurried = g.hurry()
	}
	g.mu.Unlock()
	heed(hurried)
	return surplus
}

// hurry has all that wait look at their shards. The caller holds mu, and calls heed without it.
func (g *Group) hurry() (hurried []Holder) {
	for i := range g.places {
		if p := &g.places[i]; p.waiting {
			p.waiting, p.hurried = false, true
			hurried = append(hurried, p.holder)
		}
	}
	return hurried
}

func heed(holders []Holder) {
	for _, h := range holders {
		h.Heed()
	}
}

// handOver hands over a shard that is to leave.
func (g *Group) handOver(ctx context.Context, i int) {
	held, _ := g.places[i].holder.StepDown(ctx) // its end is that of the run, or of ctx
	if held {
		return
	}
	g.mu.Lock()
	g.places[i].leaving = false
	g.mu.Unlock()
}
