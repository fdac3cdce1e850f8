package soloist_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync/atomic"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/store"
)

// A counter is a store that lists, and counts calls.
type counter struct {
	lister
	creates atomic.Int64
	hangs   atomic.Bool // listings do
}

func (c *counter) Create(ctx context.Context, name string, record []byte) (store.Entry, error) {
	c.creates.Add(1)
	return c.Memory.Create(ctx, name, record)
}

func (c *counter) List(ctx context.Context, app string, f func(string, store.Entry) bool) error {
	if c.hangs.Load() {
		c.lists.Add(1)
		<-ctx.Done()
		return ctx.Err()
	}
	return c.lister.List(ctx, app, f)
}

func (c *counter) calls() string {
	return fmt.Sprintf("%d listings, %d reads, %d creations", c.lists.Load(), c.reads.Load(), c.creates.Load())
}

// listing starts a replica over a store that lists.
func (c *cluster) listing(backend *counter, work ...soloist.Work) *replica {
	backend.Memory = c.store
	r := c.replica("a", work...)
	r.Store = backend
	return c.launch(r)
}

// A start with many jobs is a listing, whether their entries exist or not. Entries that do not
// exist are created after it.
func TestStartWithManyJobsIsOneListing(t *testing.T) {
	crowded(t)
	inCluster(t, func(c *cluster) {
		first, again := &counter{}, &counter{}
		a := c.listing(first, crowd(300, "@hourly")...)
		time.Sleep(time.Second)
		a.stop()
		if got, want := first.calls(), "1 listings, 0 reads, 300 creations"; got != want {
			t.Errorf("the first start: %s, want %s", got, want)
		}
		c.listing(again, crowd(300, "@hourly")...)
		time.Sleep(time.Second)
		if got, want := again.calls(), "1 listings, 0 reads, 0 creations"; got != want {
			t.Errorf("another start: %s, want %s", got, want)
		}
		time.Sleep(time.Hour)
		if got := len(c.all()); got != 300 {
			t.Errorf("%d runs in an hour, want 300", got)
		}
	})
}

// Jobs that are read once a minute are read together, though their ticks are not.
func TestIdleJobsAreListedTogether(t *testing.T) {
	inCluster(t, func(c *cluster) {
		backend, minutes := &counter{}, 90
		c.listing(backend, many(60)...) // one has its tick in each minute
		time.Sleep(time.Duration(minutes)*time.Minute + 30*time.Second)
		if lists, reads := backend.lists.Load(), backend.reads.Load(); int(lists) > minutes+4 || reads > 60 { // one look before the first tick of each job, and two listings for jobs of other programs
			t.Errorf("%s in %d minutes", backend.calls(), minutes)
		}
		if got := len(c.all()); got != 90 {
			t.Errorf("%d runs, want 90", got)
		}
	})
}

// Jobs that come to a tick within a minute are not read in between, so they are not listed.
func TestJobsOfEachMinuteAreNotListed(t *testing.T) {
	crowded(t)
	inCluster(t, func(c *cluster) {
		backend := &counter{}
		c.listing(backend, crowd(40, "* * * * *")...)
		time.Sleep(30*time.Minute + 30*time.Second)
		if got, want := backend.calls(), "4 listings, 0 reads, 40 creations"; got != want { // one before the first tick, and two for jobs of other programs
			t.Errorf("%s in half an hour, want %s", got, want)
		}
	})
}

// No job depends on a listing: if it is refused, breaks or hangs, each entry is read by itself.
// It is not tried again with each read.
func TestJobsRunWithoutListing(t *testing.T) {
	for what, backend := range map[string]*counter{
		"no right to list":      {lister: lister{err: fs.ErrPermission}},
		"a listing that breaks": {lister: lister{err: errors.New("the network"), after: 20}},
		"a listing that hangs":  {},
	} {
		backend.hangs.Store(backend.err == nil)
		inCase(t, what, func(t *testing.T, c *cluster) {
			a := c.listing(backend, crowd(50, "* * * * *")...)
			time.Sleep(10*time.Minute + time.Second)
			a.stop()
			if got := len(c.all()); got != 500 {
				t.Errorf("%d runs in ten minutes, want 500", got)
			}
			for _, r := range c.all() {
				if late := r.start.Sub(r.Tick); late > time.Second {
					t.Errorf("%s started %s late", r.ID(), late)
				}
			}
			if lists := backend.lists.Load(); lists < 1 || lists > 3 {
				t.Errorf("%s in ten minutes", backend.calls())
			}
		})
	}
}

// A damaged entry is the trouble of its own job, though it was listed with the others.
func TestBadEntryAmongManyIsItsOwnTrouble(t *testing.T) {
	inCluster(t, func(c *cluster) {
		if _, err := c.store.Create(c.t.Context(), "soloist/job-7", []byte("rubbish")); err != nil {
			t.Fatal(err)
		}
		a := c.listing(&counter{}, crowd(30, "* * * * *")...)
		time.Sleep(5*time.Minute + time.Second)
		if got, broken := len(c.all()), a.Health().Broken; got != 29*5 || len(broken) != 1 || broken["job-7"] == nil {
			t.Errorf("%d runs, broken %v: want 145, and job-7 alone", got, broken)
		}
	})
}

// Few reads among many jobs are no listing, and hardly wait for others.
func TestLoneReadIsNoListing(t *testing.T) {
	inCluster(t, func(c *cluster) {
		backend := &counter{lister: lister{Memory: c.store}}
		a := c.replica("a", crowd(50, "@hourly")...)
		a.Store = backend
		begin := time.Now()
		if _, err := a.RunDue(c.t.Context(), soloist.Wake{Jobs: []string{"job-3"}}); err != nil {
			t.Fatal(err)
		}
		if got, want := backend.calls(), "0 listings, 1 reads, 1 creations"; got != want || time.Since(begin) > 20*time.Millisecond {
			t.Errorf("%s in %s, want %s", got, time.Since(begin), want)
		}
	})
}

// Two replicas whose jobs are all due at once look at the outcomes of the other by listings.
func TestFollowersOfManyJobsList(t *testing.T) {
	crowded(t)
	inCluster(t, func(c *cluster) {
		backends := []*counter{{lister: lister{Memory: c.store}}, {lister: lister{Memory: c.store}}}
		for i, b := range backends {
			r := c.replica(string(rune('a'+i)), crowd(100, "* * * * *")...)
			r.Store = b
			c.launch(r)
		}
		time.Sleep(10*time.Minute + 30*time.Second)
		if got := len(c.all()); got != 1000 {
			t.Errorf("%d runs in ten minutes, want 1000", got)
		}
		for _, b := range backends {
			if b.reads.Load() > 200 || b.lists.Load() > 60 {
				t.Errorf("%s in ten minutes", b.calls())
			}
		}
	})
}

// A listing without entries has no date. New jobs start by the clock of the store all the same,
// and not by that of a replica that is fast: they would rest until its time has come.
func TestNewJobsAmongManyStartByTheStoresClock(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.replica("a", crowd(20, "* * * * *")...).skewed(time.Hour)
		a.Store = &counter{lister: lister{Memory: c.store}}
		c.launch(a)
		time.Sleep(time.Second)
		if got := c.record("job-3").Watermark; got.After(time.Now()) {
			t.Errorf("the watermark is %s at %s", got, time.Now())
		}
		time.Sleep(10 * time.Minute)
		if got := len(c.all()); got != 200 {
			t.Errorf("%d runs in ten minutes, want 200", got)
		}
	})
}
