package sim

import (
	"testing"
	"time"

	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/host/storetest"
	"github.com/soloist-go/soloist/internal/sim/world"
	"github.com/soloist-go/soloist/store"
)

// A client keeps the contract of a store, over a line without faults.
func TestClient(t *testing.T) {
	t.Run("blobs", func(t *testing.T) {
		testClient(t, world.Client{}, func() world.Store { return nil })
	})
	t.Run("a store", func(t *testing.T) {
		testClient(t, world.Client{Combines: true, Brief: true}, func() world.Store { return new(local.Memory) })
	})
}

func testClient(t *testing.T, client world.Client, over func() world.Store) {
	storetest.Test(t, storetest.Harness{Virtual: true, New: func(t *testing.T) store.Store {
		c := &Cluster{Config: Config{Store: over()}, log: newLog()}
		c.net = &world.Network{Log: c.log, Calm: time.Now(), Service: c.service()}
		t.Cleanup(c.net.Late.Wait)
		one := client
		one.Send = (&world.Line{Network: c.net, Machine: c.machine("r", 0)}).Send
		return one
	}})
}
