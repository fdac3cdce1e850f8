package storetest

import (
	"errors"
	"io/fs"
	"strconv"
	"sync/atomic"

	"github.com/soloist-go/soloist/store"
)

// races is about many who want the same at once.
var races = []property{
	{"Race/create", nothing, func(c *check) {
		name := newName()
		records := make([]string, 16)
		c.race(len(records), fs.ErrExist, func(i int) error {
			record := strconv.Itoa(i)
			_, err := c.store.Create(c.ctx, name, []byte(record))
			if err == nil {
				records[i] = record
			}
			return err
		})
		e, err := c.store.Read(c.ctx, name)
		c.must("read", err)
		if i, err := strconv.Atoi(string(e.Record)); err != nil || records[i] == "" {
			c.errorf("record %q is not that of the winner", e.Record)
		}
	}},
	{"Race/acquire", nothing, func(c *check) {
		s := c.subject()
		leases := make([]store.Lease, 64)
		for i := range leases {
			leases[i] = s.lease()
		}
		winner := c.race(len(leases), store.ErrHeld, func(i int) error {
			return errOf(leases[i].Acquire(c.ctx, s.longest(), s.etag))
		})
		for i, l := range leases {
			if i != winner {
				s.write("loser's write", l, store.ErrLost)
			}
		}
		s.write("winner's write", leases[winner], nil)
	}},
	{"Race/acquire-expired", nothing, func(c *check) {
		s := c.expired()
		c.race(16, store.ErrHeld, func(int) error { return errOf(s.lease().Acquire(c.ctx, s.longest(), s.etag)) })
		s.renew("old renew", s.own, store.ErrLost)
	}},
	{"Race/counter", nothing, counter},
	{"Race/view", nothing, func(c *check) {
		for i := range 12 {
			c.subject().view(i)
		}
	}},
}

// race checks that exactly one of n calls succeeds, and returns which; the
// others have to fail with loss.
func (c *check) race(n int, loss error, call func(i int) error) (winner int) {
	winners := make(chan int, n)
	together(n, func(i int) {
		if err := call(i); err == nil {
			winners <- i
		} else {
			c.want("call of a loser", err, loss)
		}
	})
	if got := len(winners); got != 1 {
		c.fatalf("%d of %d calls succeeded, want 1", got, n)
	}
	return <-winners
}

// view lets many read while one acquires the lease and then writes. It never
// releases, so no view has the ETag of the write and the lease from before.
func (s *subject) view(turn int) {
	const goroutines, looks = 6, 4
	old := s.etag
	together(goroutines, func(i int) {
		if i == turn%goroutines { // the order in which they start may be a fixed one
			_, err := s.own.Acquire(s.ctx, s.longest(), old)
			if err == nil {
				_, err = s.own.Write(s.ctx, old, []byte(first))
			}
			s.want("acquire and write", err, nil)
			return
		}
		for range looks {
			e, err := s.store.Read(s.ctx, s.name)
			s.want("read", err, nil)
			if err == nil && e.ETag != old && e.State != store.Leased {
				s.errorf("a read tells the ETag of a write under a lease, and a lease that is %q", e.State)
			}
		}
	})
}

// counter lets many add to the record and to a number that nothing but the
// lease protects.
func counter(c *check) {
	s := c.subject()
	s.acquire(s.own, s.longest())
	c.must("first write", errOf(s.own.Write(c.ctx, s.etag, []byte("0"))))
	c.must("first release", s.own.Release(c.ctx))
	var inside, total atomic.Int64 // atomic to please the race detector; the sum is not
	c.count(func() bool { return s.add(&inside, &total) })
	if got := string(s.read().Record); got != strconv.Itoa(additions) || total.Load() != additions {
		c.errorf("the record counts %s, the memory %d, want %d", got, total.Load(), additions)
	}
}

const goroutines, rounds, additions = 5, 6, 5 * 6

// count has many add until each has done so often enough.
func (c *check) count(add func() (done bool)) {
	together(goroutines, func(int) {
		for range rounds {
			for !add() {
				if !c.pause() {
					c.errorf("no turn came")
					return
				}
			}
		}
	})
}

// add is one turn at the counter. False: another was faster.
func (s *subject) add(inside, total *atomic.Int64) (done bool) {
	e, l := s.read(), s.lease()
	_, err := l.Acquire(s.ctx, s.longest(), e.ETag)
	if errors.Is(err, store.ErrHeld) || errors.Is(err, store.ErrChanged) {
		return false
	}
	s.must("acquire", err)
	if n := inside.Add(1); n != 1 {
		s.errorf("%d hold the lease at once", n)
	}
	seen := total.Load()
	s.pause() // so that the others meet a holder
	n, err := strconv.Atoi(string(e.Record))
	if err == nil {
		_, err = l.Write(s.ctx, e.ETag, []byte(strconv.Itoa(n+1)))
	}
	total.Store(seen + 1)
	inside.Add(-1)
	s.want("write and release", errors.Join(err, l.Release(s.ctx)), nil)
	return true
}
