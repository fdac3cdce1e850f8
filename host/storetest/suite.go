package storetest

import (
	"slices"

	"github.com/soloist-go/soloist/store"
)

func suite() []property {
	over := []store.LeaseState{store.Available, store.Expired, store.Broken}
	return slices.Concat(outcomes(), contents(), calls(), lives, removals, unchanged, expiries, lates, races, records, keeps,
		documents, lists, logs, pairs, each("Create/", nothing, again), each("Keep/", keeper, outlives), each("Remove/", remover, removed), each("List/", lister, listed),
		each("ETag/acquire-", nothing, conditions, over...), each("Late/", nothing, overtaken, over...),
		each("BreakUnchanged/changed-", conditional, spared, store.Leased, store.Breaking, store.Expired, store.Broken))
}
