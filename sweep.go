package soloist

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/soloist-go/soloist/internal/mutex"
	"github.com/soloist-go/soloist/store"
)

// minUnused is the least time after which a lock counts as unused. It is much longer than any lease.
const minUnused = 10 * time.Minute

// Sweep removes the entries of locks of an app that no caller has held for so long, at least ten minutes,
// so that locks which are used once do not pile up, and returns their names. What [Run.Save] has put
// there goes with them. It is safe while replicas are up. A lock that is used again starts with a
// larger token than it ever had. Entries of jobs, singletons and [Once] stay. A document of the app notes what was
// removed; in a store without documents the first use of a process that knew a lock can take one lease longer.
//
// The store has to implement [store.Lister] and [store.Remover]. If the error is not nil, some entries
// may be removed.
func Sweep(ctx context.Context, backend store.Store, app string, unused time.Duration) (removed []string, err error) {
	s, ok := backend.(mutex.Sweeper)
	switch {
	case backend == nil:
		return nil, wrong("Store", "nil", "a place for leases and records")
	case !ok:
		return nil, errors.New("the store cannot remove entries: it does not implement store.Lister and store.Remover")
	case !appRule.MatchString(app):
		return nil, wrong("App", quote(app), "a lower-case letter or digit, then up to 62 of them or hyphens")
	case unused < minUnused:
		return nil, wrong("the time for which a lock was not used", unused, fmt.Sprintf("%s or more", minUnused))
	}
	return mutex.Sweep(ctx, s, app, unused)
}
