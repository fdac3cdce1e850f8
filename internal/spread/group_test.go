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
	asked  int // to step down
}

func (h *holder) Heed() { h.heeded++ }
func (h *holder) StepDown(context.Context) (bool, error) {
	h.asked++
	return h.holds, nil
}

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
		if SeatOf(g, 0).Take("") {
			t.Error("it takes a shard before it knows of any replica")
		}
		g.aim(2)
		if !SeatOf(g, 0).Hurried() || SeatOf(g, 0).Hurried() || SeatOf(g, 1).Hurried() || holders[0].heeded != 1 {
			t.Error("only a shard that was refused is looked at, once")
		}
		for i := range 4 {
			SeatOf(g, i).Take("")
		}
		if got := taken(g); !slices.Equal(got, []int{0, 1}) {
			t.Errorf("it holds %v, and is to hold two", got)
		}
		if *asked == 0 {
			t.Error("it asks for no look, and two shards are free")
		}
		SeatOf(g, 0).Leave()
		if !SeatOf(g, 3).Take("") {
			t.Error("it does not take another one in place of one that is gone")
		}
		g.aim(3)
		if !SeatOf(g, 2).Hurried() || !SeatOf(g, 2).Take("") {
			t.Error("it does not take what it is to hold now")
		}
	})
}

// Without a listing whatever is free is acquired.
func TestBlindGroupTakesAll(t *testing.T) {
	g, _, _ := groupOf(3)
	SeatOf(g, 0).Take("")
	g.blind()
	if !SeatOf(g, 0).Hurried() || !SeatOf(g, 0).Take("") || !SeatOf(g, 2).Take("") || !SeatOf(g, 1).Follow(false) {
		t.Error("it leaves out shards")
	}
	g.aim(1)
	g.blind() // one listing that fails changes nothing
	if SeatOf(g, 1).Take("") {
		t.Error("it forgets what it has known")
	}
}

// Where listings take the place of reads, the shards are read while they fail.
func TestShardsAreReadWhileLooksFail(t *testing.T) {
	g, holders, _ := groupOf(listedFrom)
	g.aim(0)
	s := SeatOf(g, 0)
	for range 2 {
		if s.Follow(false); !s.Listed() || s.Hurried() {
			t.Error("a shard is read while looks succeed")
		}
		g.blind()
		if s.Listed() || !s.Hurried() {
			t.Error("a shard is not read after a look has failed")
		}
		s.Follow(false)
		g.blind()
		if s.Listed() || s.Hurried() {
			t.Error("a shard is read out of turn once more")
		}
		g.aim(0)
	}
	if n := holders[0].heeded; n != 2 {
		t.Errorf("its holder was asked %d times, want once for each time that looks fail", n)
	}
}

func TestGroupHandsOverItsSurplus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, holders, _ := groupOf(6)
		g.aim(6)
		for _, i := range []int{5, 0, 1, 2} {
			SeatOf(g, i).Take("")
			time.Sleep(time.Second)
		}
		if got := g.aim(2); !slices.Equal(got, []int{2, 1}) {
			t.Errorf("it hands over %v, want those that it took last", got)
		}
		if got := g.aim(2); got != nil {
			t.Errorf("it hands over %v as well, while others are on their way", got)
		}
		if SeatOf(g, 3).Take("") {
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
		SeatOf(g, 0).Take("")
		SeatOf(g, 1).Take("")
		time.Sleep(length - time.Second)
		SeatOf(g, 2).Take("")
		if got := taken(g); !slices.Equal(got, []int{0}) {
			t.Errorf("it holds %v, and is to hold one", got)
		}
		time.Sleep(time.Second)
		SeatOf(g, 2).Follow(false) // somebody has it by now
		if !SeatOf(g, 1).Take("") || SeatOf(g, 2).Take("") {
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
	SeatOf(g, 0).Take("")
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
	SeatOf(g, 0).Take("")
	SeatOf(g, 1).Take("")
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

// A listing shows that a shard is free which was followed: it is looked at, once.
func TestOpenShardIsLookedAt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, holders, _ := groupOf(3)
		g.names = []string{"feed-0", "feed-1", "feed-2"}
		g.aim(0)
		SeatOf(g, 0).Follow(false)
		SeatOf(g, 1).Follow(false)
		g.open([]string{"feed-1", "feed-2"})
		for i, want := range []bool{false, true, false} {
			if got := SeatOf(g, i).Hurried(); got != want || (holders[i].heeded > 0) != want {
				t.Errorf("shard %d is looked at: %t, want %t", i, got, want)
			}
		}
		SeatOf(g, 1).Take("")
		if g.open([]string{"feed-1"}); SeatOf(g, 1).Hurried() {
			t.Error("a shard that was refused is looked at with each listing")
		}
	})
}

// A shard that failed on a replica that is up is taken whatever is held already. Others are handed over
// for it; not itself, until other replicas are up, or an hour has passed.
func TestFailedShardIsTakenAndKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, _, _ := groupOf(4)
		two := []member{{entry: "1", replica: "here"}, {entry: "2", replica: "sick"}}
		g.meet(two)
		g.aim(2)
		SeatOf(g, 0).Take("")
		SeatOf(g, 1).Take("")
		if SeatOf(g, 2).Take("gone") || !SeatOf(g, 2).Take("sick") || !SeatOf(g, 3).Take("sick") {
			t.Errorf("it holds %v, want all that failed on a replica that is up", taken(g))
		}
		if got := g.aim(2); got != nil {
			t.Errorf("it hands over %v at once", got)
		}
		time.Sleep(keepExtra * length)
		if got := g.aim(1); !slices.Equal(got, []int{1, 0}) {
			t.Errorf("it hands over %v, want those that did not fail", got)
		}
		g.meet(append(two, member{entry: "3"}))
		if got := g.aim(1); !slices.Equal(got, []int{3}) {
			t.Errorf("it hands over %v, want one: another replica is up", got)
		}
		SeatOf(g, 3).Leave()
		SeatOf(g, 3).Take("sick")
		time.Sleep(keepFailed - time.Second)
		if got := g.aim(0); !slices.Equal(got, []int{2}) {
			t.Errorf("it hands over %v, want the one that failed before", got)
		}
		time.Sleep(time.Second)
		if got := g.aim(0); !slices.Equal(got, []int{3}) {
			t.Errorf("it hands over %v, want the one that was kept for an hour", got)
		}
	})
}

// What is to be handed over is asked again when its time comes.
func TestHandOverIsDecidedAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, holders, _ := groupOf(3)
		for i := range holders {
			holders[i].holds = true
		}
		begin := func(target int) []int {
			g.aim(3)
			for i := range 3 {
				SeatOf(g, i).Take("")
			}
			return g.aim(target)
		}
		surplus := begin(2)
		SeatOf(g, surplus[0]).Leave()
		SeatOf(g, surplus[0]).Take("")
		g.handOver(t.Context(), surplus[0])
		if holders[surplus[0]].asked > 0 {
			t.Error("a shard is handed over that was acquired anew since")
		}
		holders[surplus[0]].asked = 0
		surplus = begin(1)
		g.aim(2)
		for _, i := range surplus {
			g.handOver(t.Context(), i)
		}
		if n := holders[0].asked + holders[1].asked + holders[2].asked; n != 1 {
			t.Errorf("%d shards are handed over, want one: this replica is to hold two by now", n)
		}
	})
}
