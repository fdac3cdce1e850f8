package storetest_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/host/storetest"
	"github.com/soloist-go/soloist/store"
)

// limited is a store with limits of its own.
type limited struct {
	*local.Memory
	shortest, longest time.Duration
}

func (s limited) Limits() (shortest, longest time.Duration) { return s.shortest, s.longest }

func (s limited) Lease(name, id string) store.Lease {
	return limitedLease{s.Memory.Lease(name, id), s}
}

type limitedLease struct {
	store.Lease
	s limited
}

func (l limitedLease) Acquire(ctx context.Context, d time.Duration, etag string) (store.Revision, error) {
	if d < l.s.shortest || d > l.s.longest {
		return store.Revision{}, fmt.Errorf("a lease of %s is not within %s and %s", d, l.s.shortest, l.s.longest)
	}
	return l.Lease.Acquire(ctx, d, etag)
}

// A store may have one length of leases, or two that are near each other.
func TestNearLimits(t *testing.T) {
	for _, s := range []limited{{shortest: 30 * time.Second, longest: 30 * time.Second}, {shortest: 20 * time.Second, longest: 21 * time.Second}, {shortest: time.Second, longest: time.Minute}} {
		t.Run(fmt.Sprint(s.shortest, " to ", s.longest), func(t *testing.T) {
			storetest.Test(t, storetest.Harness{Virtual: true, New: func(*testing.T) store.Store {
				return limited{&local.Memory{}, s.shortest, s.longest}
			}})
		})
	}
}
