package local_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/store"
)

// A play lets several processes work on one document, one file operation at a time, in an order that is drawn: now
// one of them does many, now all do some. Nothing else is random, so a seed plays the same again but for names.
type play struct {
	t       *testing.T
	r       *rand.Rand
	dir     local.Dir
	actors  []*actor
	now     int // counts operations
	states  []sight
	changes []change
	views   []sight
}

// An actor is a process. It is in the midst of an operation, or stopped before one.
type actor struct {
	turn, stopped chan bool // stopped gets false when it has ended
	over          bool
}

// A change is a call that has succeeded. Its ETags are empty where the document is not there.
type change struct {
	from, to    string
	began, done int
}

// A sight is what a read has returned, or what was there for some time.
type sight struct {
	etag        string
	began, done int
}

const document = "app/.doc"

func newPlay(t *testing.T, seed uint64) *play {
	p := &play{t: t, r: rand.New(rand.NewPCG(seed, 0)), dir: local.Dir{Path: inMemory(t)}, states: make([]sight, 1)}
	for range 2 + p.r.IntN(2) {
		a := &actor{turn: make(chan bool), stopped: make(chan bool)}
		d := p.dir.Stopping(func(string, string) { a.stopped <- true; <-a.turn })
		plan := make([]int, 4+p.r.IntN(8))
		for i := range plan {
			plan[i] = p.r.IntN(10)
		}
		p.actors = append(p.actors, a)
		go func() {
			<-a.turn
			for _, what := range plan {
				p.do(d, what)
			}
			a.stopped <- false
		}()
	}
	return p
}

// do is one thing that an actor does: it looks, and changes what it has seen.
func (p *play) do(d local.Dir, what int) {
	ctx := context.Background()
	began := p.now
	doc, err := d.ReadDocument(ctx, document, "")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		p.t.Error(err)
	}
	p.views = append(p.views, sight{doc.ETag, began, p.now})
	if what == 0 {
		return
	}
	began = p.now
	var to store.Revision
	if what == 1 && doc.ETag != "" {
		err = d.Remove(ctx, document, doc.ETag)
	} else {
		to, err = d.WriteDocument(ctx, document, doc.ETag, fmt.Append(nil, began))
	}
	if err == nil {
		p.changes = append(p.changes, change{doc.ETag, to.ETag, began, p.now})
	} else if !errors.Is(err, store.ErrChanged) && !errors.Is(err, fs.ErrNotExist) {
		p.t.Error(err)
	}
}

// run plays to the end.
func (p *play) run() {
	at := 0
	for left := len(p.actors); left > 0; {
		if p.actors[at].over || p.r.IntN(1+p.r.IntN(30)) == 0 {
			at = p.r.IntN(len(p.actors))
			continue
		}
		a := p.actors[at]
		p.now++
		a.turn <- true
		if !<-a.stopped {
			a.over = true
			left--
		}
		p.watch()
	}
}

// watch notes the state after an operation.
func (p *play) watch() {
	doc, err := p.dir.ReadDocument(p.t.Context(), document, "")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		p.t.Fatal(err)
	}
	if last := &p.states[len(p.states)-1]; last.etag != doc.ETag {
		last.done = p.now - 1
		p.states = append(p.states, sight{doc.ETag, p.now, math.MaxInt})
	}
}

// judge checks that each call that has succeeded was one change of the state in its time, that nothing else
// has changed it, and that each read was of a state that was there in its time.
func (p *play) judge(seed uint64) {
	made := map[int]bool{}
	for _, c := range p.changes {
		i := slices.IndexFunc(p.states, func(s sight) bool { return s.etag == c.to && c.began < s.began && s.began <= c.done })
		if i < 1 || p.states[i-1].etag != c.from || made[i] {
			p.t.Errorf("seed %d: %v has succeeded and changed nothing", seed, c)
		}
		made[i] = true
	}
	if len(made) != len(p.states)-1 {
		p.t.Errorf("seed %d: %d changes, by %d calls", seed, len(p.states)-1, len(made))
	}
	for _, v := range p.views {
		if !slices.ContainsFunc(p.states, func(s sight) bool { return s.etag == v.etag && s.began <= v.done && s.done >= v.began }) {
			p.t.Errorf("seed %d: %v has seen what was not there", seed, v)
		}
	}
}

var plays = flag.Int("plays", 40, "how many orders TestDirInterleavings draws")

// Processes that change one document in any order of their file operations do so one after the other.
func TestDirInterleavings(t *testing.T) {
	changes := 0
	for seed := range uint64(*plays) {
		p := newPlay(t, seed)
		p.run()
		p.judge(seed)
		changes += len(p.changes)
		if t.Failed() {
			return
		}
	}
	if changes < 5**plays {
		t.Errorf("only %d changes", changes)
	}
}
