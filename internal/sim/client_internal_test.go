package sim

import (
	"testing"
	"time"

	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/host/storetest"
	"github.com/soloist-go/soloist/internal/sim/world"
	"github.com/soloist-go/soloist/store"
)

// A client keeps the contract of a store over a line without faults: over the service, and over a
// store in its place.
func TestClient(t *testing.T) {
	for name, shared := range map[string]store.Store{"Service": nil, "Store": new(local.Memory)} {
		t.Run(name, func(t *testing.T) {
			storetest.Test(t, storetest.Harness{Virtual: true, New: func(t *testing.T) store.Store {
				c := &Cluster{log: newLog(), Config: Config{Store: shared}}
				if shared != nil {
					c.Store = new(local.Memory) // with the clock of this bubble
				}
				c.net = &world.Network{Log: c.log, Calm: time.Now(), Service: serviceOf(c.Store)}
				t.Cleanup(c.net.Late.Wait)
				return c.client((&world.Line{Network: c.net, Machine: world.NewMachine("r", 0, world.NewClock(0, 0), c.log, new(world.Traps))}).Send)
			}})
		})
	}
}

// What a replica has of a store is no more than the store has.
func TestClientHasTheInterfacesOfTheStore(t *testing.T) {
	m := new(local.Memory)
	for name, shared := range map[string]store.Store{
		"neither": struct{ store.Store }{m},
		"documents": struct {
			store.Store
			store.Documenter
		}{m, m},
		"breaks": struct {
			store.Store
			store.ConditionalBreaker
		}{m, m},
		"both": m,
	} {
		c := &Cluster{Config: Config{Store: shared}, ordered: keepsDocuments(shared)}
		got := c.store(nil)
		_, want := shared.(store.ConditionalBreaker)
		if _, ok := got.(store.ConditionalBreaker); ok != want {
			t.Errorf("%s: ConditionalBreaker: got %t, want %t", name, ok, want)
		}
		_, want = shared.(store.Documenter)
		if _, ok := got.(store.Documenter); ok != want {
			t.Errorf("%s: Documenter: got %t, want %t", name, ok, want)
		}
	}
}
