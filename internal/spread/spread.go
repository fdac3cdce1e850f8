// Package spread shares the shards of a singleton evenly among the replicas that are up.
//
// Each replica keeps a lease on a member entry, "<app>/0-member-<id>", as long as it is up. Once a
// lease, or three times if there are many shards, it lists the entries of the app. The listing has
// the members, and who holds which shard; so each replica knows how many shards it is to hold; see
// target. A replica that holds fewer acquires shards that are free. A replica that holds more hands
// some over, as at a stop.
//
// A replica looks before its time, up to six times a lease, if the last look has shown a change, or
// if a shard is free, or about to be, that it may not acquire: a replica may have gone.
//
// # What is not promised
//
// Anything but an even spread in time. That one replica holds a shard is a matter of its lease and its
// record alone. A count that is wrong or old makes the spread uneven for a while. It leaves no shard
// unheld: a shard that has been free for a lease is acquired whatever the counts say, and a shard that
// has failed on another replica at once. For such a shard another one is handed over later.
package spread

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/soloist-go/soloist/internal/lease"
	"github.com/soloist-go/soloist/store"
)

// A Config is what a Spread needs to know. All fields are needed.
type Config struct {
	App, Replica string
	Store        store.Store // a store.Lister
	Clock        *lease.Clock
	Jitter       *lease.Jitter
	IDs          *lease.Jitter // of member entries; two replicas that draw the same get different ones anyway
	Degraded     func() error  // why this replica starts nothing new, so that it is not to count; nil: it does
	Tell         func(error)   // after each look: why it has failed; nil: it has not
}

// A Spread is the membership of this replica, and what it decides for all groups.
type Spread struct {
	c      Config
	groups []*Group
	length time.Duration // of the member lease, and between two looks: the shortest lease of a group
	asked  chan struct{} // has room for one: a look before its time
	turn   chan struct{} // has room for one Run

	membership membership     // of the goroutine of Run
	last       look           // of Run alone; the last look with an answer
	calm       bool           // of Run alone; it was as the one before
	moving     sync.WaitGroup // shards that are being handed over
}

// New returns a Spread without groups, which does nothing before Run.
func New(c Config) *Spread {
	return &Spread{c: c, asked: make(chan struct{}, 1), turn: make(chan struct{}, 1)}
}

// Group adds the shards of a singleton, before Run.
func (s *Spread) Group(name string, shards []string, length time.Duration) *Group {
	g := newGroup(name, shards, length, func() {
		select {
		case s.asked <- struct{}{}:
		default: // a look is to come
		}
	})
	s.groups = append(s.groups, g)
	if s.length == 0 || length < s.length {
		s.length = length
	}
	return g
}

// Run keeps this replica a member and hands shards over until ctx ends. It returns when all that it
// has started has ended. A second Run waits for the first one to end.
func (s *Spread) Run(ctx context.Context) {
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return
	}
	defer s.moving.Wait()
	defer s.leave() // first, so that the others take over what this replica hands over when it stops
	for ctx.Err() == nil {
		err := s.balance(ctx)
		if err != nil {
			for _, g := range s.groups {
				g.blind()
			}
		}
		if ctx.Err() == nil && !lease.Definite(err) { // Definite: another replica was first to a member entry
			s.c.Tell(err)
		}
		s.pause(ctx)
	}
}

// balance looks at the store once, joins the members if need be, and acts upon what it sees. After
// a join it looks once more: replicas that have started at the same time have joined, too.
func (s *Spread) balance(ctx context.Context) error {
	if s.membership.session != nil && s.membership.session.Expired() || s.c.Degraded() != nil {
		s.leave()
	}
	seen, err := s.look(ctx)
	if err != nil {
		return err
	}
	if s.membership.session == nil && s.c.Degraded() == nil {
		if err := s.join(ctx, seen.free); err != nil {
			return err
		}
		if seen, err = s.look(ctx); err != nil {
			return err
		}
	}
	s.calm, s.last = seen.same(&s.last), seen
	for _, g := range s.groups {
		members := seen.of(g, s.membership.entry)
		g.meet(members)
		g.open(seen.open)
		s.settle(ctx, g, g.aim(target(len(g.names), s.membership.entry, members)))
	}
	return nil
}

// settle hands over the surplus of a group. It begins with one shard after the other, within a third
// of a lease, so that all of it is over within a lease. The run of each has its grace, so that several
// may be about to end.
func (s *Spread) settle(ctx context.Context, g *Group, surplus []int) {
	for n, i := range surplus {
		s.moving.Go(func() {
			lease.Sleep(ctx, time.Duration(n)*g.length/3/time.Duration(len(surplus)))
			g.handOver(ctx, i)
		})
	}
}

// pause returns when the next look is due: after a period, or after a sixth of a lease if it was
// asked for. The loss of the membership and the end of ctx end it as well.
func (s *Spread) pause(ctx context.Context) {
	least, period := s.length/6, s.period()
	if s.wait(ctx, least, nil) {
		s.wait(ctx, period-s.c.Jitter.UpTo(period/8)-least, s.asked)
	}
}

// period returns how far apart two looks are: a lease; a third of it if there are many shards, and
// if something has changed, since the other replicas decide again, too.
func (s *Spread) period() time.Duration {
	if !s.calm || slices.ContainsFunc(s.groups, (*Group).listed) {
		return s.length / 3
	}
	return s.length
}

// wait returns true after d, false if something else comes first.
func (s *Spread) wait(ctx context.Context, d time.Duration, asked <-chan struct{}) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-asked:
	case <-s.membership.lost():
	case <-ctx.Done():
	}
	return false
}
