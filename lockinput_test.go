package soloist_test

import (
	"context"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/store"
)

// Bad input is an error that says which field, which value and what is allowed, from Validate and at
// once from each method.
func TestLockRefusesBadInput(t *testing.T) {
	good := func(ctx context.Context, _ *soloist.Run) error { return ctx.Err() }
	memory := &local.Memory{}
	for name, tt := range map[string]struct {
		lock *soloist.Lock
		want []string
	}{
		"no name":              {&soloist.Lock{Store: memory}, []string{"Name", `""`, "empty"}},
		"a long name":          {&soloist.Lock{Store: memory, Name: strings.Repeat("x", 600)}, []string{"Name", "xxx", "600", "512"}},
		"a name that is cut":   {&soloist.Lock{Store: memory, Name: strings.Repeat("Ü", 257)}, []string{"Name", "ÜÜ", "514", "512"}},
		"control characters":   {&soloist.Lock{Store: memory, Name: "a\x00b"}, []string{"Name", `"a\x00b"`, "printable"}},
		"a line break":         {&soloist.Lock{Store: memory, Name: "a\nb"}, []string{"Name", `"a\nb"`, "printable"}},
		"no UTF-8":             {&soloist.Lock{Store: memory, Name: "a\xff"}, []string{"Name", `"a\xff"`, "printable"}},
		"no store":             {&soloist.Lock{Name: "guard"}, []string{"guard", "Store", "nil"}},
		"negative slots":       {&soloist.Lock{Store: memory, Name: "guard", Slots: -1}, []string{"guard", "Slots", "-1", "1 to 100"}},
		"many slots":           {&soloist.Lock{Store: memory, Name: "guard", Slots: 101}, []string{"Slots", "101", "1 to 100"}},
		"very many slots":      {&soloist.Lock{Store: memory, Name: "guard", Slots: math.MaxInt}, []string{"Slots", "1 to 100"}},
		"a bare number":        {&soloist.Lock{Store: memory, Name: "guard", Lease: 30}, []string{"Lease", "30", "time.Second"}},
		"a negative lease":     {&soloist.Lock{Store: memory, Name: "guard", Lease: -time.Minute}, []string{"Lease", "-1m0s", "1s"}},
		"a long lease":         {&soloist.Lock{Store: memory, Name: "guard", Lease: time.Hour}, []string{"Lease", "1h0m0s", "1m0s"}},
		"half a second":        {&soloist.Lock{Store: memory, Name: "guard", Lease: 1500 * time.Millisecond}, []string{"Lease", "1.5s", "whole seconds"}},
		"a bad app":            {&soloist.Lock{Store: memory, Name: "guard", App: "My App"}, []string{"App", "My App", "lower-case"}},
		"a long replica":       {&soloist.Lock{Store: memory, Name: "guard", Replica: strings.Repeat("r", 300)}, []string{"Replica"}},
		"two mistakes at once": {&soloist.Lock{Slots: -1, Lease: 30}, []string{"Name", "Store", "Slots"}},
	} {
		t.Run(name, func(t *testing.T) {
			lock := tt.lock
			wantError(t, lock.Validate(), tt.want...)
			wantError(t, lock.Do(t.Context(), good), tt.want...)
			wantError(t, lock.TryDo(t.Context(), good), tt.want...)
		})
	}
	wantError(t, (&soloist.Lock{Store: memory, Name: "guard"}).Do(t.Context(), nil), "guard", "function", "nil")
	wantError(t, (&soloist.Lock{Store: memory, Name: "guard"}).TryDo(t.Context(), nil), "guard", "function", "nil")
}

// A lock needs no scheduler, and its zero values work.
func TestLockWithoutScheduler(t *testing.T) {
	inCluster(t, func(c *cluster) {
		l := &soloist.Lock{Name: "guard", Store: c.store}
		if err := l.Validate(); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if err := l.Do(c.t.Context(), c.watch("a", nil)); err != nil {
				t.Error(err)
			}
		}
		disjoint(t, c.all())
		if r := c.record("0-lock-guard"); r.Run.Lease != store.Seconds(30*time.Second) || !strings.HasPrefix(r.Run.Replica, "replica-") {
			t.Errorf("got %+v", r.Run)
		}
	})
}

// Fields that change after the first call have no effect.
func TestLockFieldsAreReadOnce(t *testing.T) {
	inCluster(t, func(c *cluster) {
		l := c.replica("a").guard()
		if err := l.Do(c.t.Context(), c.watch("a", nil)); err != nil {
			t.Error(err)
		}
		l.Slots, l.Lease = -1, 7
		if err := l.Do(c.t.Context(), c.watch("a", nil)); err != nil {
			t.Error(err)
		}
	})
}
