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
				return c.client((&world.Line{Network: c.net, Machine: c.machine("r", 0)}).Send)
			}})
		})
	}
}

// A replica has documents only where the store has them.
func TestClientHasTheInterfacesOfTheStore(t *testing.T) {
	m := new(local.Memory)
	for _, shared := range []store.Store{m, struct{ store.Store }{m}} {
		c := &Cluster{Config: Config{Store: shared}, ordered: keepsDocuments(shared)}
		_, want := shared.(store.Documenter)
		if _, got := c.store(nil).(store.Documenter); got != want {
			t.Errorf("%T: Documenter: got %t, want %t", shared, got, want)
		}
	}
}
