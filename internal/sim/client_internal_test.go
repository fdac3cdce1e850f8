package sim

import (
	"testing"
	"time"

	"github.com/soloist-go/soloist/host/storetest"
	"github.com/soloist-go/soloist/internal/sim/world"
	"github.com/soloist-go/soloist/store"
)

// A client keeps the contract of a store, over a line without faults.
func TestClient(t *testing.T) {
	storetest.Test(t, storetest.Harness{Virtual: true, New: func(t *testing.T) store.Store {
		c := &Cluster{log: newLog()}
		c.net = &world.Network{Log: c.log, Calm: time.Now(), Service: c.service()}
		t.Cleanup(c.net.Late.Wait)
		return world.Client{Send: (&world.Line{Network: c.net, Machine: c.machine("r", 0)}).Send}
	}})
}
