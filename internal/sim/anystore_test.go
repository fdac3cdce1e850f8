package sim_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist/host/azure"
	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/internal/blobtest"
	"github.com/soloist-go/soloist/internal/sim"
	"github.com/soloist-go/soloist/internal/sim/judge"
	"github.com/soloist-go/soloist/internal/sim/trace"
	"github.com/soloist-go/soloist/store"
)

// Every property holds over any store that keeps the contract.
func TestStores(t *testing.T) {
	for name, one := range map[string]struct {
		seeds  uint64
		length time.Duration
		open   func(*testing.T) store.Store
	}{
		"Memory": {4, 20 * time.Minute, func(*testing.T) store.Store { return new(local.Memory) }},
		"Azure":  {2, 10 * time.Minute, overBlob},
		"Dir":    {1, time.Minute, func(t *testing.T) store.Store { return local.Dir{Path: t.TempDir(), Now: time.Now} }},
	} {
		if *often {
			one.seeds *= 2
		}
		for s := range min(one.seeds, unlessShort(one.seeds, 2)) {
			t.Run(fmt.Sprint(name, s), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					l := sim.Simulate(sim.Config{Seed: s, Length: one.length, Store: one.open(t)})
					for _, v := range judge.Judge(l) {
						t.Error(v)
					}
				})
			})
		}
	}
}

// overBlob has no network between client library and service.
func overBlob(t *testing.T) store.Store {
	backend, err := azure.Open(azure.Config{
		ConnectionString: "BlobEndpoint=https://sim.blob.core.windows.net;SharedAccessSignature=sv=2026&sig=none",
		Transport:        new(blobtest.Blob)})
	if err != nil {
		t.Fatal(err)
	}
	return backend
}

// The same seed is the same simulation over each, as far as it can be: the
// stores differ in nothing that shows.
func TestStoresDoNotDiffer(t *testing.T) {
	t.Parallel()
	var first *trace.Log
	for _, open := range []func(*testing.T) store.Store{
		func(*testing.T) store.Store { return new(local.Memory) },
		func(*testing.T) store.Store { return new(local.Memory) },
		func(t *testing.T) store.Store { return local.Dir{Path: t.TempDir(), Now: time.Now} },
	} {
		synctest.Test(t, func(t *testing.T) {
			l := sim.Simulate(sim.Config{Seed: 3, Length: 2 * time.Minute, Store: open(t)})
			if first == nil {
				first = l
			} else if l.Hash() != first.Hash() {
				t.Error(first.Differs(l))
			}
		})
	}
}
