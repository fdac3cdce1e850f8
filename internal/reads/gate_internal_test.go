package reads

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// So many calls pass at once; the others follow in the order in which they came.
func TestGateLetsSoManyPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		var passed [3 * gateRoom]time.Duration
		var all sync.WaitGroup
		begin := time.Now()
		for i := range passed {
			all.Go(func() {
				done := g.Pass(t.Context())
				passed[i] = time.Since(begin)
				time.Sleep(100 * time.Millisecond)
				done()
			})
			synctest.Wait() // it passes, or waits
		}
		all.Wait()
		for i, got := range passed {
			if want := time.Duration(i/gateRoom) * 100 * time.Millisecond; got != want {
				t.Errorf("call %d passed after %s, want %s", i, got, want)
			}
		}
	})
}

// Calls that hang keep others for a second, and a stop keeps none.
func TestCallsThatHangKeepOthersForASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, begin := newGate(), time.Now()
		var hang []func()
		for range gateRoom {
			hang = append(hang, g.Pass(t.Context()))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second/2)
		defer cancel()
		g.Pass(ctx)()
		if took := time.Since(begin); took != time.Second/2 {
			t.Errorf("a call whose context has ended waited %s, want half a second", took)
		}
		done := g.Pass(t.Context())
		if took := time.Since(begin); took != gateTime {
			t.Errorf("a call waited %s for calls that hang, want %s", took, gateTime)
		}
		done()
		for _, done := range hang {
			done()
		}
		if len(g.room) != 0 {
			t.Errorf("%d calls are counted that are over", len(g.room))
		}
	})
}
