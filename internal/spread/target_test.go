package spread

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

func TestTargets(t *testing.T) {
	for _, tt := range []struct {
		shards int
		held   []int
		want   []int
	}{
		{16, []int{16}, []int{16}},
		{16, []int{0, 0}, []int{8, 8}},
		{16, []int{6, 5, 5, 0}, []int{4, 4, 4, 4}},
		{16, []int{4, 4, 4, 4, 0}, []int{4, 3, 3, 3, 3}},
		{16, []int{0, 4, 4, 4, 4}, []int{3, 4, 3, 3, 3}}, // one that has more goes on with it
		{16, []int{3, 3, 3, 4, 3}, []int{3, 3, 3, 4, 3}}, // nothing moves
		{16, []int{2, 3, 1, 3, 2}, []int{4, 3, 3, 3, 3}}, // what they hold on the way does not count
		{16, []int{3, 3, 3, 3, 0}, []int{4, 3, 3, 3, 3}}, // one has died
		{3, []int{0, 1, 1, 0, 1}, []int{0, 1, 1, 0, 1}},  // fewer shards than members
		{3, []int{0, 0, 0, 0, 0}, []int{1, 1, 1, 0, 0}},  // likewise
		{7, []int{5, 0, 2}, []int{3, 2, 2}},              // two have to move
	} {
		for i, want := range tt.want {
			if got := target(tt.shards, entry(i), membersOf(tt.held)); got != want {
				t.Errorf("%d shards, held %v: member %d is to hold %d, want %d", tt.shards, tt.held, i, got, want)
			}
		}
	}
	for held, members := range map[string][]member{"none": nil, "others": membersOf([]int{3, 2})} {
		if got := target(5, "0-member-x", members); got != 5 {
			t.Errorf("no member, beside %s: %d, want all", held, got)
		}
	}
}

func entry(i int) string { return fmt.Sprintf("0-member-%03d", i) }

func membersOf(held []int) (members []member) {
	for i, n := range held {
		members = append(members, member{entry: entry(i), held: n})
	}
	return members
}

// Whatever is held, each shard has a place, and no member has two more than another.
func TestTargetsSumUp(t *testing.T) {
	for range 2000 {
		shards, held := 1+rand.IntN(60), make([]int, 1+rand.IntN(20))
		for i := range held {
			held[i] = rand.IntN(8)
		}
		sum, least, most := 0, shards, 0
		for i := range held {
			n := target(shards, entry(i), membersOf(held))
			sum, least, most = sum+n, min(least, n), max(most, n)
		}
		if sum != shards || most-least > 1 {
			t.Fatalf("%d shards, held %v: the targets sum up to %d, from %d to %d", shards, held, sum, least, most)
		}
	}
}
