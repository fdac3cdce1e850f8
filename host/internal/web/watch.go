package web

import (
	"context"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/event"
)

// How often the records are read while a caller watches. A replica learns at once what
// happens on itself; about other replicas it learns from the records alone.
const (
	busyPace  = 700 * time.Millisecond // while a job runs, or a tick is due
	quietPace = 5 * time.Second
	leastPace = 250 * time.Millisecond // however much happens here
	tickDelay = 300 * time.Millisecond // from a tick to its claim
)

// watching is who waits for news.
type watching struct {
	all    map[chan struct{}]bool
	cancel context.CancelFunc // ends keepFresh
	poked  chan struct{}      // something has happened here
	closed chan struct{}      // the cache is closed, so no caller may watch any more
}

// watch returns a channel that gets a value after each reading that has something new.
// A slow caller misses some of the values, but not the last. The records are read as long as
// any caller watches.
func (c *Cache) watch() (changed <-chan struct{}, stop func()) {
	ch := make(chan struct{}, 1)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.watching.all[ch] = true
	if c.watching.cancel == nil {
		ctx, cancel := context.WithCancel(context.Background())
		c.watching.cancel = cancel
		c.readings.Go(func() { c.keepFresh(ctx) })
	}
	return ch, func() { c.unwatch(ch) }
}

func (c *Cache) unwatch(ch chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.watching.all, ch)
	if len(c.watching.all) == 0 {
		c.watching.cancel()
		c.watching.cancel = nil
	}
}

// tellWatching is called with the lock.
func (c *Cache) tellWatching() {
	for ch := range c.watching.all {
		select {
		case ch <- struct{}{}:
		default:
		}
	}
}

// keepFresh reads the records again and again.
func (c *Cache) keepFresh(ctx context.Context) {
	for ctx.Err() == nil {
		begin := time.Now()
		select {
		case <-c.reread():
		case <-ctx.Done():
			return
		}
		took := time.Since(begin)
		c.rest(ctx, c.pace(took), max(leastPace, took))
	}
}

// reread begins a reading even if the last one is not old, and returns its end.
func (c *Cache) reread() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.begin()
}

// rest waits for the pace, or for news of this replica and the least time.
func (c *Cache) rest(ctx context.Context, pace, least time.Duration) {
	for _, wait := range []struct {
		d      time.Duration
		events <-chan struct{}
	}{{least, nil}, {pace - least, c.watching.poked}} {
		t := time.NewTimer(wait.d)
		select {
		case <-t.C:
		case <-wait.events:
		case <-ctx.Done():
		}
		t.Stop()
	}
}

// pace is how long to wait for the next reading. A store that takes long is asked less
// often.
func (c *Cache) pace(took time.Duration) time.Duration {
	c.mu.Lock()
	all := c.last.all
	c.mu.Unlock()
	pace, now := quietPace, time.Now()
	for i := range all {
		if d := paceOf(&all[i], now); d < pace {
			pace = d
		}
	}
	return max(pace, 4*took, leastPace)
}

// paceOf says when something is likely to happen to a job. A singleton runs on and on.
func paceOf(st *soloist.JobStatus, now time.Time) time.Duration {
	switch {
	case st.EveryReplica, st.Err != nil:
		return quietPace
	case st.Record.MayRun() && !st.Singleton:
		return busyPace
	case st.Next.IsZero():
		return quietPace
	}
	return max(busyPace, st.Next.Sub(now)+tickDelay)
}

// Hear lets watching callers see at once what has happened on this replica.
func (c *Cache) Hear(e event.Event) {
	switch e.Kind {
	case event.Renewed, event.Detail, event.Skewed, event.Dropped:
		return
	}
	c.poke()
}

// poke has the records read soon, if somebody watches.
func (c *Cache) poke() {
	select {
	case c.watching.poked <- struct{}{}:
	default:
	}
}

// Close ends the streams of those who watch.
func (c *Cache) Close() { c.closing.Do(func() { close(c.watching.closed) }) }
