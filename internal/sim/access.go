package sim

import (
	"github.com/soloist-go/soloist/host/azure"
	"github.com/soloist-go/soloist/internal/blobtest"
	"github.com/soloist-go/soloist/internal/sim/draw"
	"github.com/soloist-go/soloist/internal/sim/world"
	"github.com/soloist-go/soloist/store"
)

// service is what a cluster runs over. Blobs keep no log of their own.
func (cfg *Config) service() world.Service {
	if cfg.Store != nil {
		return world.Stored{Store: cfg.Store}
	}
	return &blobtest.Blob{Forgets: true}
}

// whole is what a machine has of the store that all share, with documents.
func (c *Cluster) whole(l *world.Line) wholeStore {
	if !c.piped {
		able := c.Store != nil && draw.New(c.Seed, 0, "able").Chance(0.5) // the store has all that no blob has
		return world.Client{Send: l.Send, Combines: able || draw.Combines(c.Seed), Brief: able}
	}
	config := l.Machine.Azure
	if config.Transport = l; config.AccountName == "" && config.ConnectionString == "" {
		config.ConnectionString = bySignature
	}
	backend, err := azure.Open(config)
	if err != nil {
		panic(err)
	}
	return backend
}

const bySignature = "BlobEndpoint=https://sim.blob.core.windows.net;SharedAccessSignature=sv=2026&sig=none"

// A wholeStore is all that a replica can make use of.
type wholeStore interface {
	bareStore
	store.Documenter
}

// A bareStore has no documents.
type bareStore interface {
	store.Store
	store.LeaseBreaker
	store.ConditionalBreaker
	store.Lister
}

// store is whole, without documents where there are no orders of operators.
func (c *Cluster) store(m *world.Machine) store.Store {
	s := c.whole(&world.Line{Network: c.net, Machine: m})
	if c.ordered {
		return s
	}
	return struct{ bareStore }{s}
}
