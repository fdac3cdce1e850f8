package past

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host/internal/app"
	"github.com/soloist-go/soloist/internal/history"
)

const (
	staleAfter = 5 * time.Minute  // then a log is read again, since its oldest part may be gone
	failedFor  = 10 * time.Second // so long a log that could not be read is not read again
	readTime   = 10 * time.Second // bounds one reading

	newest   = 1000   // outcomes that are read where none in particular are asked for
	mostRead = 20_000 // outcomes that are read at most; the command history reads all
	mostKept = 60_000 // outcomes of all jobs, in memory
)

// A Cache keeps what logs had when they were asked for. The record brings it up to date, so
// however many ask, a log is read once in some minutes. One log is read at a time.
type Cache struct {
	app *app.App

	reading chan struct{} // full: a log is being read

	mu  sync.Mutex
	all map[string]*kept
}

// kept is what is known of one job's log.
type kept struct {
	lines Lines     // the oldest first
	since time.Time // they are all since then; zero: all there are
	whole bool      // they are
	read  time.Time
	used  time.Time
	err   error // why the log could not be read
}

// NewCache returns an empty cache of a program's logs.
func NewCache(a *app.App) *Cache {
	return &Cache{app: a, reading: make(chan struct{}, 1), all: map[string]*kept{}}
}

// On reports whether the program keeps logs.
func (c *Cache) On() bool { return c.app.Logs != nil && c.app.Settings.History > 0 }

// Of returns the newest outcomes of a job, the newest first: enough for the filter, or as
// many as are read at most. whole reports whether there are no more of them. If the log
// cannot be read, it returns the record's outcomes and an error.
func (c *Cache) Of(ctx context.Context, st *soloist.JobStatus, f Filter) (lines Lines, whole bool, err error) {
	k := c.known(st, f)
	if k == nil {
		k = c.wait(ctx, st, f)
	}
	if k.err != nil {
		return OfRecord(st), false, notRead(k.err)
	}
	lines = slices.Clone(k.lines)
	slices.Reverse(lines)
	return lines, k.reaches(f.Since), nil
}

// wait waits for its turn to read a log. Others may wait for the same one, so it goes on
// when the caller is gone.
func (c *Cache) wait(ctx context.Context, st *soloist.JobStatus, f Filter) *kept {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readTime)
	defer cancel()
	select {
	case c.reading <- struct{}{}:
		defer func() { <-c.reading }()
	case <-ctx.Done():
		return &kept{err: ctx.Err()}
	}
	if k := c.known(st, f); k != nil { // another request has read it
		return k
	}
	return c.read(ctx, st, f)
}

// known returns what is kept of a job, brought up to date; nil if that does not do.
func (c *Cache) known(st *soloist.JobStatus, f Filter) *kept {
	c.mu.Lock()
	defer c.mu.Unlock()
	k, now := c.all[st.Name], time.Now()
	switch {
	case k == nil:
		return nil
	case k.err != nil:
		if now.Sub(k.read) < failedFor {
			return k
		}
		return nil
	case now.Sub(k.read) >= staleAfter, !k.answers(f):
		return nil
	}
	lines, ok := history.Update(k.lines, &st.Record)
	if !ok {
		return nil
	}
	up := *k
	up.lines, up.used = lines, now
	c.all[st.Name] = &up
	return &up
}

// answers reports whether a reading would find no more.
func (k *kept) answers(f Filter) bool { return len(k.lines) >= enough(f) || k.reaches(f.Since) }

// reaches reports whether all outcomes since an instant are there.
func (k *kept) reaches(since time.Time) bool {
	return k.whole && !k.since.After(since) || len(k.lines) > 0 && k.lines[0].At().Before(since)
}

// enough is how many outcomes are read for a filter.
func enough(f Filter) int {
	if f.Any() {
		return newest
	}
	return mostRead
}

// read reads a log, and keeps what it has.
func (c *Cache) read(ctx context.Context, st *soloist.JobStatus, f Filter) *kept {
	k := &kept{since: f.Since}
	k.lines, k.whole, k.err = history.Newest(ctx, c.app.Logs, entryOf(c.app, st), f.Since, enough(f), &st.Record)
	if k.whole && (len(k.lines) == 0 || !k.lines[0].At().Before(f.Since)) {
		k.since = time.Time{} // the reading came to the beginning of the log: there is nothing further back
	}
	k.read = time.Now()
	k.used = k.read
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all[st.Name] = k
	c.shrink()
	return k
}

// shrink forgets the logs that were not asked for for the longest time.
func (c *Cache) shrink() {
	for len(c.all) > 1 {
		total, oldest := 0, ""
		for job, k := range c.all {
			total += len(k.lines)
			if oldest == "" || k.used.Before(c.all[oldest].used) {
				oldest = job
			}
		}
		if total <= mostKept {
			return
		}
		delete(c.all, oldest)
	}
}
