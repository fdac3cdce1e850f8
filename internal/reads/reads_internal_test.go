package reads

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist/internal/lease"
	"github.com/soloist-go/soloist/store"
)

// A listed store has some entries, and counts how they are read.
type listed struct {
	store.Store
	names        []string
	reads, lists atomic.Int64
}

func (l *listed) Read(context.Context, string) (store.Entry, error) {
	l.reads.Add(1)
	return store.Entry{Revision: store.Revision{ETag: "read"}}, nil
}

func (l *listed) List(_ context.Context, _ string, f func(string, store.Entry) bool) error {
	l.lists.Add(1)
	for _, name := range l.names {
		f(name, store.Entry{Revision: store.Revision{ETag: name, Date: time.Now()}})
	}
	return nil
}

// One listing answers all reads of an entry: its own runner reads it, and those that follow its job.
func TestListingAnswersAllReadsOfAnEntry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		clock := &lease.Clock{Wall: time.Now, Elapsed: func() time.Duration { return time.Since(begin) }}
		s, jitter := &listed{}, lease.NewJitter("a")
		var g Gathering
		for i := range listedFrom {
			s.names = append(s.names, fmt.Sprintf("app/job-%d", i))
			g.Add("app", s, jitter)
		}
		var all sync.WaitGroup
		for range 3 {
			for _, name := range s.names {
				c := &lease.Client{Store: s, Name: name, Length: 15 * time.Second, Clock: clock, Jitter: jitter}
				all.Go(func() {
					if e, err := g.Read(t.Context(), c); err != nil || e.ETag != name {
						t.Errorf("%s has the ETag %q, %v", name, e.ETag, err)
					}
				})
			}
		}
		all.Wait()
		if reads, lists := s.reads.Load(), s.lists.Load(); reads != 0 || lists != 1 {
			t.Errorf("%d reads and %d listings", reads, lists)
		}
	})
}
