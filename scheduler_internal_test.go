package soloist

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/internal/fields"
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

// A lock is known inside itself whatever kind of store it has, and one over another store is another lock.
func TestLockIsKnownInsideItself(t *testing.T) {
	one, other := &local.Memory{}, &local.Memory{}
	of := func(s store.Store) heldKey { return (&Lock{Name: "guard", Store: s}).heldKey() }
	for name, tt := range map[string]struct {
		a, b store.Store
		same bool
	}{
		"one":                   {one, one, true},
		"another":               {one, other, false},
		"wrapped":               {wrapStore{one}, wrapStore{one}, true},
		"mapped":                {mapStore{one, map[string]int{}}, mapStore{other, nil}, true},
		"wrapped around mapped": {wrapStore{mapStore{one, nil}}, mapStore{one, nil}, true},
		"mapped and not":        {mapStore{one, nil}, one, false},
	} {
		if got := of(tt.a) == of(tt.b); got != tt.same {
			t.Errorf("%s: the same lock: %t", name, got)
		}
	}
}

// The wall clock is read without the monotonic clock, which may stand still while the
// process is frozen: times with both are compared by that one alone.
func TestWallClockIsReadAlone(t *testing.T) {
	for name, now := range map[string]func() time.Time{"not set": nil, "set": time.Now} {
		if got := (&Scheduler{Now: now}).wall(); got != got.Round(0) {
			t.Errorf("%s: got %s", name, got)
		}
	}
}

// What a job says of late ticks reaches the decisions whole: a field that is lost on the way has no effect.
func TestLateReachesDecisions(t *testing.T) {
	var late Late
	n := 0
	for _, v := range fields.Of(&late) {
		if n++; v.Kind() == reflect.String {
			v.SetString(fmt.Sprint(n))
		} else {
			v.SetInt(int64(n))
		}
	}
	if got, want := fmt.Sprintf("%+v", late.policy()), fmt.Sprintf("%+v", late); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
