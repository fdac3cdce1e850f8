package history_test

import (
	"io/fs"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/soloist-go/soloist/host/azure"
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
	lasts time.Duration // in real time: no call is made later
	late  time.Duration // until so long after its begin, what was answered unclearly may be applied
}

func (s session) clients() int { return 1 + int(s.seed%most) }

// record has each client call its store.
func (s session) record(backend func(n int) store.Store) *history {
	h := newHistory(s.late)
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

// A tally is what was checked: how often which call was answered in which way.
type tally struct {
	histories, calls, unclear, undecided int
	met                                  map[string]int
}

func (y *tally) check(t *testing.T, h *history, m model, seed uint64) {
	t.Helper()
	if y.met == nil {
		y.met = map[string]int{}
	}
	y.histories++
	for what, n := range h.met {
		y.met[what] += n
		if y.calls += n; strings.HasSuffix(what, errUnclear.Error()) {
			y.unclear += n
		}
	}
	switch h.check(m, patience) {
	case porcupine.Unknown:
		y.undecided++
	case porcupine.Illegal:
		t.Errorf("seed %d: no store that keeps the contract answers like this:\n%s", seed, h.text())
	}
}

// end tells what was checked, and insists on answers without which histories
// would show little.
func (y *tally) end(t *testing.T, wanted map[string][]string) {
	t.Helper()
	t.Logf("%d histories of %d calls, %d of them unclear; %d histories undecided", y.histories, y.calls, y.unclear, y.undecided)
	for _, op := range slices.Sorted(maps.Keys(wanted)) {
		for _, answer := range wanted[op] {
			if y.met[op+": "+answer] == 0 {
				t.Errorf("%s was never answered by: %s", op, answer)
			}
		}
	}
	if y.unclear == 0 || y.undecided > y.histories/10 {
		t.Errorf("%d unclear answers, %d histories undecided: want some and hardly any", y.unclear, y.undecided)
	}
	t.Log(y.met)
}

// every answer but those of a store that is away.
var every = func() map[string][]string {
	held, changed, lost := store.ErrHeld.Error(), store.ErrChanged.Error(), store.ErrLost.Error()
	return map[string][]string{
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
	}
}()

// inBubble records histories in virtual time.
func inBubble(t *testing.T, seeds uint64, record func(seed uint64) *history) {
	t.Helper()
	var y tally
	for seed := range seeds {
		var h *history
		synctest.Test(t, func(*testing.T) { h = record(seed) })
		if y.check(t, h, model{}, seed); t.Failed() {
			return // one such history says enough
		}
	}
	y.end(t, every)
}

// overNetwork has each client its own line to a service, and its own client
// library.
func overNetwork(seed uint64, service transport, ills int) *history {
	late := new(sync.WaitGroup)
	defer late.Wait()
	return session{seed: seed, name: "app/job", calls: 80, late: latest + 2*time.Second}.record(func(n int) store.Store {
		s, err := azure.Open(azure.Config{ServiceURL: "https://sim.blob.core.windows.net/?sig=x", Transport: &line{
			service: service, late: late, most: time.Second, ills: ills, dice: rand.New(rand.NewPCG(seed, uint64(most+n))),
		}})
		if err != nil {
			panic(err)
		}
		return s
	})
}

// The documented service, by the real client library, over a network that loses
// and delays.
func TestDocumentedService(t *testing.T) {
	inBubble(t, 200, func(seed uint64) *history { return overNetwork(seed, new(blobtest.Blob), int(seed%3)*10) })
}

// fromAfar has clients of one store so far from it, the answers of which get lost
// now and then.
func (s session) fromAfar(backend store.Store, oneWay time.Duration) *history {
	return s.record(func(n int) store.Store {
		return far{Store: backend, dice: rand.New(rand.NewPCG(s.seed, uint64(most+n))), most: oneWay, ills: int(s.seed%3) * 8}
	})
}

func fromAfar(seed uint64, backend store.Store) *history {
	return session{seed: seed, name: "app/job", calls: 96}.fromAfar(backend, 60*time.Millisecond)
}

func TestMemory(t *testing.T) {
	inBubble(t, 400, func(seed uint64) *history { return fromAfar(seed, new(local.Memory)) })
}
