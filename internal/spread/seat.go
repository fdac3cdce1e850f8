package spread

import "time"

// A Seat decides whether this replica may acquire one shard.
type Seat struct {
	group *Group
	index int
}

// SeatOf returns the seat of the shard of that index.
func SeatOf(g *Group, i int) Seat { return Seat{g, i} }

// Take reports whether the replica may acquire the shard, which is free. If it may, Leave follows.
//
// A replica that has as many shards as it is to hold leaves a free one to the others. It takes it all
// the same if the shard has failed on another one, failedOn, which is up and would take it again; and
// if it is still free after a lease: the others may be unable to.
func (s Seat) Take(failedOn string) bool {
	g, now := s.group, time.Now()
	g.mu.Lock()
	defer g.mu.Unlock()
	p, full, failed := &g.places[s.index], g.full(now), g.isUp(failedOn)
	if full && !failed {
		if p.refused.IsZero() {
			p.refused = now
		}
		if left := g.phase == known && now.Sub(p.refused) >= g.length; !left {
			p.waiting = true
			g.ask()
			return false
		}
	}
	*p = place{holder: p.holder, taken: now}
	if failed {
		p.kept = now
	}
	if full {
		p.extra = now.Add(keepExtra * g.length)
	}
	if failed && full {
		p.kept = now.Add(keepFailed)
	}
	return true
}

// Leave says that the replica does not hold the shard any more, or has not acquired it, since another
// one was first. Then there may be room for a replica that was refused meanwhile.
func (s Seat) Leave() {
	g := s.group
	g.mu.Lock()
	defer g.unlock()
	p, full := &g.places[s.index], g.full(time.Now())
	*p = place{holder: p.holder}
	if full && !g.full(time.Now()) {
		g.hurry(all)
	}
}

// Follow says that another replica holds the shard, and whether it is about to hand it over. It
// reports whether this replica would acquire the shard.
func (s Seat) Follow(stopping bool) bool {
	g := s.group
	g.mu.Lock()
	defer g.mu.Unlock()
	p := &g.places[s.index]
	p.refused, p.waiting = time.Time{}, true
	full := g.full(time.Now())
	if stopping && full { // its holder may be a replica that ends
		g.ask()
	}
	return !full
}

// Listed reports whether listings take the place of reads: the shards are so many, and the last look
// has not failed.
func (s Seat) Listed() bool {
	s.group.mu.Lock()
	defer s.group.mu.Unlock()
	return s.group.listed() && !s.group.stale
}

// Hurried reports whether there is a chance since the shard was refused or followed, once.
func (s Seat) Hurried() bool {
	s.group.mu.Lock()
	defer s.group.mu.Unlock()
	p := &s.group.places[s.index]
	hurried := p.hurried
	p.hurried = false
	return hurried
}
