package beatmodel

import "hash/maphash"

// A set has the states that were visited, in the order of their first visits. It takes half the
// memory of a map: the table has their numbers alone.
type set struct {
	states []State
	from   []int32  // the number of the state that each was reached from
	table  []uint64 // by hash: its upper half, and 1 + the number of the state; 0: free
	seed   maphash.Seed
}

func newSet() *set { return &set{table: make([]uint64, 1<<16), seed: maphash.MakeSeed()} }

// add adds a state unless the set has it.
func (x *set) add(s *State, from int) {
	slot, hash := x.find(s)
	if x.table[slot] != 0 {
		return
	}
	x.states, x.from = append(x.states, *s), append(x.from, int32(from))
	x.table[slot] = hash | uint64(len(x.states))
	if 2*len(x.states) > len(x.table) {
		x.grow()
	}
}

const upper = ^uint64(1<<32 - 1)

// find returns where the state is in the table, or belongs, and the upper half of its hash.
func (x *set) find(s *State) (slot int, hash uint64) {
	sum, mask := maphash.Comparable(x.seed, *s), len(x.table)-1
	slot, hash = int(sum)&mask, sum&upper
	for x.table[slot] != 0 && !(x.table[slot]&upper == hash && x.states[uint32(x.table[slot])-1] == *s) {
		slot = (slot + 1) & mask
	}
	return slot, hash
}

func (x *set) grow() {
	x.table = make([]uint64, 2*len(x.table))
	for n := range x.states {
		slot, hash := x.find(&x.states[n])
		x.table[slot] = hash | uint64(n+1)
	}
}
