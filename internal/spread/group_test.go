package spread

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

const length = 15 * time.Second

// A holder of a test counts what it is asked for.
type holder struct {
	heeded int
	holds  bool
}

func (h *holder) Heed()                                  { h.heeded++ }
func (h *holder) StepDown(context.Context) (bool, error) { return h.holds, nil }

// groupOf returns a group, its holders, and how often it has asked for a look.
func groupOf(shards int) (g *Group, holders []*holder, asked *int) {
	asked = new(int)
	g = newGroup("feed", make([]string, shards), length, func() { *asked++ })
	for i := range shards {
		holders = append(holders, &holder{})
		g.Add(i, holders[i])
	}
	return g, holders, asked
}

func taken(g *Group) (shards []int) {
	for i, p := range g.places {
		if !p.taken.IsZero() {
			shards = append(shards, i)
		}
	}
	return shards
}

func TestGroupTakesUpToItsTarget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, holders, asked := groupOf(4)
		if SeatOf(g, 0).Take() {
			t.Error("it takes a shard before it knows of any replica")
		}
		g.aim(2)
		if !SeatOf(g, 0).Hurried() || SeatOf(g, 0).Hurried() || SeatOf(g, 1).Hurried() || holders[0].heeded != 1 {
			t.Error("only a shard that was refused is looked at, once")
		}
		for i := range 4 {
			SeatOf(g, i).Take()
		}
		if got := taken(g); !slices.Equal(got, []int{0, 1}) {
			t.Errorf("it holds %v, and is to hold two", got)
		}
		if *asked == 0 {
			t.Error("it asks for no look, and two shards are free")
		}
		SeatOf(g, 0).Leave()
		if !SeatOf(g, 3).Take() {
			t.Error("it does not take another one in place of one that is gone")
		}
		g.aim(3)
		if !SeatOf(g, 2).Hurried() || !SeatOf(g, 2).Take() {
			t.Error("it does not take what it is to hold now")
		}
	})
}

// Without a listing whatever is free is acquired.
func TestBlindGroupTakesAll(t *testing.T) {
	g, _, _ := groupOf(3)
	SeatOf(g, 0).Take()
	g.blind()
	if !SeatOf(g, 0).Hurried() || !SeatOf(g, 0).Take() || !SeatOf(g, 2).Take() || !SeatOf(g, 1).Follow(false) {
		t.Error("it leaves out shards")
	}
	g.aim(1)
	g.blind() // one listing that fails changes nothing
	if SeatOf(g, 1).Take() {
		t.Error("it forgets what it has known")
	}
}

func TestGroupHandsOverItsSurplus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, holders, _ := groupOf(6)
		g.aim(6)
		for _, i := range []int{5, 0, 1, 2} {
			SeatOf(g, i).Take()
			time.Sleep(time.Second)
		}
		if got := g.aim(2); !slices.Equal(got, []int{2, 1}) {
			t.Errorf("it hands over %v, want those that it took last", got)
		}
		if got := g.aim(2); got != nil {
			t.Errorf("it hands over %v as well, while others are on their way", got)
		}
		if SeatOf(g, 3).Take() {
			t.Error("it takes one while others are on their way")
		}
		holders[2].holds = true
		for _, i := range []int{1, 2} {
			g.handOver(t.Context(), i) // the holder of 1 does not hold it yet
		}
		if got := g.aim(2); !slices.Equal(got, []int{1}) {
			t.Errorf("it hands over %v, want the one that stayed", got)
		}
	})
}

// A shard that stays free is acquired in the end, and kept for a while.
func TestFreeShardIsTakenAfterALease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, _, _ := groupOf(3)
		g.aim(1)
		SeatOf(g, 0).Take()
		SeatOf(g, 1).Take()
		time.Sleep(length - time.Second)
		SeatOf(g, 2).Take()
		if got := taken(g); !slices.Equal(got, []int{0}) {
			t.Errorf("it holds %v, and is to hold one", got)
		}
		time.Sleep(time.Second)
		SeatOf(g, 2).Follow(false) // somebody has it by now
		if !SeatOf(g, 1).Take() || SeatOf(g, 2).Take() {
			t.Errorf("it holds %v: want the shard too that was free for a lease", taken(g))
		}
		if got := g.aim(1); got != nil {
			t.Errorf("it hands over %v, which no other replica took", got)
		}
		time.Sleep(keepExtra * length)
		if got := g.aim(1); len(got) != 1 {
			t.Errorf("it hands over %v, want one: others may take it by now", got)
		}
	})
}

func TestFollowerHurriesOnlyIfItWouldTake(t *testing.T) {
	g, _, asked := groupOf(2)
	g.aim(1)
	if !SeatOf(g, 0).Follow(true) || *asked > 0 {
		t.Error("it would take a shard that is handed over")
	}
	SeatOf(g, 0).Take()
	if SeatOf(g, 1).Follow(false) || *asked > 0 {
		t.Error("it has what it is to hold")
	}
	if SeatOf(g, 1).Follow(true) || *asked == 0 {
		t.Error("the holder may be about to end: it looks at who is up")
	}
}

// A race for one shard that is lost leaves room for another one, which was refused meanwhile.
func TestLostRaceLeavesRoom(t *testing.T) {
	g, holders, _ := groupOf(4)
	g.aim(1)
	SeatOf(g, 0).Take()
	SeatOf(g, 1).Take()
	SeatOf(g, 2).Follow(false)
	SeatOf(g, 0).Leave()
	for i, want := range []bool{false, true, true, false} {
		if got := SeatOf(g, i).Hurried(); got != want || (holders[i].heeded > 0) != want {
			t.Errorf("shard %d is looked at: %t, want %t", i, got, want)
		}
	}
}

func TestKeyTellsGroupsApart(t *testing.T) {
	keys := map[string]bool{}
	for _, g := range []*Group{newGroup("a", make([]string, 2), 0, nil), newGroup("a", make([]string, 3), 0, nil), newGroup("b", make([]string, 2), 0, nil)} {
		keys[g.key] = true
	}
	if len(keys) != 3 {
		t.Errorf("got %v, want three", keys)
	}
}
