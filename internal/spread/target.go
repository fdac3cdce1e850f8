package spread

import (
	"cmp"
	"slices"
)

// A member is a replica that is up, as one look at the store has it.
type member struct {
	entry   string // which distinguishes it from all others
	replica string // its name
	held    int    // shards that it holds
}

// target returns how many shards a member is to hold: each of them holds as many as the others, or
// one more. Members that see the same get targets whose sum is the number of shards, so that each
// shard has a place.
//
// Those that hold one more already are to go on with it, so that few shards move. The rest is given
// in the order of the entries: by what they hold it would change with each shard that is acquired.
func target(shards int, self string, members []member) int {
	if len(members) == 0 {
		return shards
	}
	share, extra := shards/len(members), shards%len(members)
	has := func(m member) int {
		if m.held > share {
			return 0
		}
		return 1
	}
	ranked := slices.SortedFunc(slices.Values(members), func(a, b member) int {
		return cmp.Or(cmp.Compare(has(a), has(b)), cmp.Compare(a.entry, b.entry))
	})
	switch rank := slices.IndexFunc(ranked, func(m member) bool { return m.entry == self }); {
	case rank < 0: // it is no member, so that it has no share
		return shards
	case rank < extra:
		share++
	}
	return share
}
