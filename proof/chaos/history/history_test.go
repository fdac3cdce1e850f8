package history_test

import (
	"cmp"
	"io/fs"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/internal/blobtest"
	"github.com/soloist-go/soloist/store"
)

// most is how many clients one entry has at most. Few of them see how a lease
// ends that nobody else wants.
const most = 4

// A session is what the clients of one entry do.
type session struct {
	seed  uint64
	name  string        // of the entry
	calls int           // of all together
	crowd int           // so many clients, whose calls often begin at the same instants; zero: a few, by the seed
	lasts time.Duration // in real time: no call is made later
	late  time.Duration // until so long after its begin, what was answered unclearly may be applied
	model model

	oneWay time.Duration // how far the clients are from the store at most; their answers get lost now and then. Zero: no distance
}

func (s session) clients() int { return cmp.Or(s.crowd, 1+int(s.seed%most)) }

// record has each client call its store.
func (s session) record(backend func(n int) store.Store) *history {
	h := newHistory(s.model.porcupine(), s.late)
	var all sync.WaitGroup
	for n := range s.clients() {
		all.Go(func() { newClient(h, backend(n), n, s).run() })
	}
	all.Wait()
	return h
}

// patience bounds the search for one history. It takes milliseconds, unless many
// calls were unclear.
const patience = 10 * time.Second

// notAnswered is what is said of a history that the checker rejects.
const notAnswered = "nothing that keeps the contract answers like this"

// A tally is what was checked: how often which call was answered in which way.
type tally struct {
	histories, undecided int
	met                  map[string]int
}

func (y *tally) check(t *testing.T, h *history, seed uint64) {
	t.Helper()
	if y.met == nil {
		y.met = map[string]int{}
	}
	y.histories++
	for what, n := range h.met {
		y.met[what] += n
	}
	switch h.check(patience) {
	case porcupine.Unknown:
		y.undecided++
	case porcupine.Illegal:
		t.Errorf("seed %d: %s:\n%s", seed, notAnswered, h.text())
	}
}

// end insists on answers without which histories would show little.
func (y *tally) end(t *testing.T, wanted []string) {
	t.Helper()
	t.Logf("%d histories, %d undecided: %v", y.histories, y.undecided, y.met)
	for _, what := range wanted {
		if y.met[what] == 0 {
			t.Errorf("never met: %s", what)
		}
	}
	if y.undecided > y.histories/10 {
		t.Errorf("%d histories undecided: want hardly any", y.undecided)
	}
}

// every answer but those of a store that is away.
var every = func() (all []string) {
	held, changed, lost := store.ErrHeld.Error(), store.ErrChanged.Error(), store.ErrLost.Error()
	for op, answers := range map[string][]string{
		"create":  {string(store.Available), fs.ErrExist.Error()},
		"read":    {string(store.Available), string(store.Leased), string(store.Expired), string(store.Breaking), string(store.Broken), fs.ErrNotExist.Error()},
		"acquire": {"done", held, changed},
		"write":   {"done", lost, changed},
		"save":    {"done", lost, changed},
		"load":    {"done", lost, changed},
		"renew":   {"done", lost},
		"release": {"done", lost},
		"break":   {"done", lost},

		"break unchanged": {"done", lost, changed},
	} {
		for _, a := range answers {
			all = append(all, op+": "+a)
		}
	}
	return append(all, unclear)
}()

// inBubble records histories in virtual time.
func inBubble(t *testing.T, seeds uint64, record func(seed uint64) *history) {
	t.Helper()
	var y tally
	for seed := range seeds {
		var h *history
		synctest.Test(t, func(*testing.T) { h = record(seed) })
		if y.check(t, h, seed); t.Failed() {
			return // one such history says enough
		}
	}
	y.end(t, every)
}

// alone skips a test in real time where only quick ones are wanted.
func alone(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("takes real time: run it without -short")
	}
	t.Parallel()
}

// some answers are met in real time: which others are depends on the machine.
var some = []string{"acquire: done", "renew: done", "write: done", "release: done", unclear}

// inReality records histories at once, in real time. It wants more answers than some.
func inReality(t *testing.T, seeds uint64, record func(seed uint64) *history, more ...string) {
	t.Helper()
	all := make([]*history, seeds)
	var recording sync.WaitGroup
	for seed := range seeds {
		recording.Go(func() { all[seed] = record(seed) })
	}
	recording.Wait()
	var y tally
	for seed, h := range all {
		if y.check(t, h, uint64(seed)); t.Failed() {
			return // one such history says enough
		}
	}
	y.end(t, slices.Concat(some, more))
}

// overNetwork has each client its own line to a service, and its own client library.
func overNetwork(seed uint64, service transport, ills int) *history {
	n := network{seed: seed, service: service, most: time.Second, ills: ills}
	defer n.late.Wait()
	return session{seed: seed, name: "app/job", calls: 80, late: latest + 2*time.Second}.record(n.open)
}

// The documented service, by the real client library, over a network that loses
// and delays.
func TestDocumentedService(t *testing.T) {
	inBubble(t, 200, func(seed uint64) *history { return overNetwork(seed, new(blobtest.Blob), int(seed%3)*10) })
}

// of has the clients share one store.
func (s session) of(backend store.Store) *history {
	return s.record(func(int) store.Store { return backend })
}

func TestMemory(t *testing.T) {
	inBubble(t, 400, func(seed uint64) *history {
		return session{seed: seed, name: "app/job", calls: 96, oneWay: 60 * time.Millisecond}.of(new(local.Memory))
	})
}
