package soloist

import "strconv"

// maxShards bounds the shards of one name: each of them has an entry, a lease and calls of its own.
const maxShards = 256

// ShardNames returns the names of the shards of a job or singleton: "import-0" to "import-15" for
// the name "import" and 16 shards. Each of them is a job of that name to all that names one: entry,
// status, orders and log. Without shards it returns the name itself; so it does for a number of
// shards that [Scheduler.Validate] refuses.
func ShardNames(name string, shards int) []string {
	if !isSplit(shards) {
		return []string{name}
	}
	names := make([]string, shards)
	for i := range names {
		names[i] = name + "-" + strconv.Itoa(i)
	}
	return names
}

// isSplit reports whether there are shards. A number that is refused counts as none.
func isSplit(shards int) bool { return shards > 0 && shards <= maxShards }

// A part is a whole job or singleton, or one shard of it.
type part struct {
	name          string
	shard, shards int // 0 of 1: the whole
}

// partsOf returns the shards of a job or singleton, or the whole if it has none.
func partsOf(name string, shards int) []part {
	names := ShardNames(name, shards)
	parts := make([]part, len(names))
	for i := range parts {
		parts[i] = part{names[i], i, len(parts)}
	}
	return parts
}
