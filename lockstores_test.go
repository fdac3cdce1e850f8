package soloist_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/store"
)

// Stores that wrap another one, by value: a mapStore cannot be compared, and so cannot a wrapStore
// around it.
type (
	wrapStore struct{ store.Store }
	mapStore  struct {
		store.Store
		calls map[string]int
	}
)

// nested takes locks of one name inside of each other, over these stores, and returns the error of the
// innermost one.
func nested(ctx context.Context, stores ...store.Store) (err error) {
	l := &soloist.Lock{Name: "guard", Store: stores[0], Lease: D}
	failed := l.Do(ctx, func(ctx context.Context, _ *soloist.Run) error {
		if len(stores) > 1 {
			err = nested(ctx, stores[1:]...)
		}
		return nil
	})
	return errors.Join(failed, err)
}

// A lock inside itself is refused at once, whatever kind of store it has.
func TestLockInsideItselfOverStores(t *testing.T) {
	for name, other := range map[string]store.Store{
		"pointer":               &local.Memory{},
		"wrapped":               wrapStore{&local.Memory{}},
		"mapped":                mapStore{&local.Memory{}, map[string]int{}},
		"wrapped around mapped": wrapStore{mapStore{&local.Memory{}, map[string]int{}}},
	} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			begin, first := time.Now(), &local.Memory{}
			wantError(t, nested(c.within(time.Hour), other, other), "held by the caller already")
			wantError(t, nested(c.within(time.Hour), first, other, first), "held by the caller already")
			wantError(t, nested(c.within(time.Hour), other, first, other), "held by the caller already")
			if err := nested(c.within(time.Hour), other, first); err != nil {
				t.Errorf("over another store: %v", err)
			}
			if took := time.Since(begin); took > time.Minute {
				t.Errorf("refused after %s", took)
			}
		})
	}
}
