package history_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host/azure"
	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/internal/azurite"
	"github.com/soloist-go/soloist/internal/blobtest"
	"github.com/soloist-go/soloist/store"
)

// A safeSource lets several goroutines of one client draw.
type safeSource struct {
	mu sync.Mutex
	of rand.PCG
}

func (s *safeSource) Uint64() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.of.Uint64()
}

func safeDice(seed, n uint64) *rand.Rand {
	s := &safeSource{}
	s.of.Seed(seed, n)
	return rand.New(s)
}

// A lockSession is what the callers of one lock do.
type lockSession struct {
	seed    uint64
	name    string
	calls   int // of each client
	lease   time.Duration
	longest time.Duration // that it is held, most of the time
	ills    bool          // answers get lost
}

func (s lockSession) slots() int { return 1 + int(s.seed%2) }

// record has each client call a lock of its own, as a replica would.
func (s lockSession) record(backend func(n int) store.Store) *lockHistory {
	h := &lockHistory{start: time.Now(), ills: s.ills, met: map[string]int{}}
	var all sync.WaitGroup
	for n := range 2 + int(s.seed%3) {
		b := backend(n)
		l := &soloist.Lock{Name: s.name, Store: b, Slots: s.slots(), Lease: s.lease, Replica: fmt.Sprint("r", n), Logger: slog.New(slog.DiscardHandler)}
		all.Go(func() {
			dice := rand.New(rand.NewPCG(s.seed, uint64(n)))
			for range s.calls {
				time.Sleep(time.Duration(dice.Int64N(int64(s.longest) + 1)))
				h.call(n, l, dice, s.longest, s.ills)
			}
		})
	}
	all.Wait()
	return h
}

// call makes one call of Do or TryDo. If long, some functions take longer than the lease.
func (h *lockHistory) call(client int, l *soloist.Lock, dice *rand.Rand, longest time.Duration, long bool) {
	from, takes := time.Since(h.start), time.Duration(dice.Int64N(int64(longest)+1))
	by, trying := l.Do, dice.IntN(3) == 0
	if trying {
		by = l.TryDo
	}
	if long && dice.IntN(5) == 0 {
		takes += l.Lease
	}
	var hold turn
	var let time.Duration
	err := by(context.Background(), func(ctx context.Context, run *soloist.Run) error {
		hold = h.begun(run.ID(), run.Token)
		h.add(client, hold, from, time.Since(h.start))
		select {
		case <-time.After(takes):
		case <-ctx.Done():
		}
		let = time.Since(h.start)
		return context.Cause(ctx)
	})
	switch to := time.Since(h.start); {
	case hold.what != "":
		hold.what = "end"
		h.add(client, hold, let, to)
	case trying && errors.Is(err, store.ErrHeld) && l.Slots == 1: // of several slots, each may have been held at another time
		h.add(client, turn{what: "held"}, from, to)
		return
	}
	if err != nil {
		h.fail()
	}
}

// check has the checker decide whether a lock can have been held so. If a call has failed, or answers
// were lost, it may have kept the lock from others for a while, and may not have let it go before its
// lease ran out.
func (h *lockHistory) check(slots int) porcupine.CheckResult {
	if h.ills {
		h.ops = slices.DeleteFunc(h.ops, func(op porcupine.Operation) bool { return op.Input.(turn).what == "held" })
		for i := range h.ops {
			if h.ops[i].Input.(turn).what == "end" {
				h.ops[i].Return = int64(never)
			}
		}
	}
	return porcupine.CheckOperationsTimeout(lockModel(slots), h.ops, patience)
}

// lockTally counts what was met, and tells of histories that no lock can have.
type lockTally struct {
	histories, undecided int
	met                  map[string]int
}

func (y *lockTally) check(t *testing.T, h *lockHistory, s lockSession) {
	t.Helper()
	if y.met == nil {
		y.met = map[string]int{}
	}
	y.histories++
	for what, n := range h.met {
		y.met[what] += n
	}
	switch h.check(s.slots()) {
	case porcupine.Unknown:
		y.undecided++
	case porcupine.Illegal:
		t.Errorf("seed %d: no lock of %d slots can have been held like this:\n%s", s.seed, s.slots(), h.text())
	}
}

func (y *lockTally) end(t *testing.T) {
	t.Helper()
	t.Logf("%d histories, %d undecided: %v", y.histories, y.undecided, y.met)
	if y.met["begin"] == 0 || y.met["held"] == 0 || y.undecided > y.histories/10 {
		t.Errorf("%v met, %d histories of %d undecided: want holds, refusals, and hardly any", y.met, y.undecided, y.histories)
	}
}

// locksInBubble records histories of locks in virtual time. Answers get lost in two of three.
func locksInBubble(t *testing.T, seeds uint64, record func(lockSession) *lockHistory) {
	t.Helper()
	var y lockTally
	for seed := range seeds {
		s := lockSession{seed: seed, name: "north", calls: 12, lease: 15 * time.Second, longest: 2 * time.Second, ills: seed%3 > 0}
		var h *lockHistory
		synctest.Test(t, func(*testing.T) { h = record(s) })
		if y.check(t, h, s); t.Failed() {
			return
		}
	}
	y.end(t)
}

func locksFromAfar(backend store.Store) func(lockSession) *lockHistory {
	return func(s lockSession) *lockHistory {
		return s.record(func(n int) store.Store {
			return far{Store: backend, dice: safeDice(s.seed, uint64(most+n)), most: 60 * time.Millisecond, ills: int(s.seed%3) * 8}
		})
	}
}

func TestLockOverMemory(t *testing.T) {
	locksInBubble(t, 100, func(s lockSession) *lockHistory { return locksFromAfar(new(local.Memory))(s) })
}

func TestLockOverDocumentedService(t *testing.T) {
	locksInBubble(t, 60, func(s lockSession) *lockHistory {
		service, late := new(blobtest.Blob), new(sync.WaitGroup)
		defer late.Wait()
		return s.record(func(n int) store.Store {
			backend, err := azure.Open(azure.Config{ServiceURL: "https://sim.blob.core.windows.net/?sig=x", Transport: &line{
				service: service, late: late, most: 100 * time.Millisecond, ills: int(s.seed%3) * 8, dice: safeDice(s.seed, uint64(most+n))}})
			if err != nil {
				panic(err)
			}
			return backend
		})
	})
}

// locksInReality records the histories of some locks at once, in real time.
func locksInReality(t *testing.T, locks uint64, calls int, record func(lockSession) *lockHistory) {
	t.Helper()
	all, sessions := make([]*lockHistory, locks), make([]lockSession, locks)
	var recording sync.WaitGroup
	for seed := range locks {
		recording.Go(func() {
			sessions[seed] = lockSession{seed: seed, name: fmt.Sprint("north-", seed), calls: calls, lease: 15 * time.Second, longest: 50 * time.Millisecond}
			all[seed] = record(sessions[seed])
		})
	}
	recording.Wait()
	var y lockTally
	for seed, h := range all {
		y.check(t, h, sessions[seed])
	}
	y.end(t)
}

func TestLockOverDir(t *testing.T) {
	t.Parallel()
	backend := local.Dir{Path: t.TempDir()}
	locksInReality(t, 12, 10, func(s lockSession) *lockHistory { return s.record(func(int) store.Store { return backend }) })
}

func TestLockOverAzurite(t *testing.T) {
	t.Parallel()
	server := azurite.Start(t)
	locksInReality(t, 12, 10, func(s lockSession) *lockHistory {
		return s.record(func(int) store.Store {
			backend, err := azure.Open(azure.Config{ConnectionString: server.ConnectionString(), Transport: &http.Client{Transport: &http.Transport{IdleConnTimeout: 2 * time.Second}}})
			if err != nil {
				t.Error(err)
			}
			return backend
		})
	})
}

// The checker is checked: of these histories it takes the first alone for that of a lock.
func TestLockHistories(t *testing.T) {
	begin := func(hold, slot int, token int64) turn { return turn{"begin", hold, slot, token} }
	end := func(hold, slot int, token int64) turn { return turn{"end", hold, slot, token} }
	for name, told := range map[string]struct {
		want  porcupine.CheckResult
		slots int
		turns []turn // one in each second
	}{
		"one after the other, and two at once": {porcupine.Ok, 2, []turn{begin(1, 0, 7), begin(2, 1, 7), {what: "held"}, end(2, 1, 7), end(1, 0, 7), begin(3, 0, 8), end(3, 0, 8)}},
		"two holders":                          {porcupine.Illegal, 1, []turn{begin(1, 0, 7), begin(2, 0, 8), end(2, 0, 8), end(1, 0, 7)}},
		"a token that comes again":             {porcupine.Illegal, 1, []turn{begin(1, 0, 7), end(1, 0, 7), begin(2, 0, 7), end(2, 0, 7)}},
		"held by nobody":                       {porcupine.Illegal, 1, []turn{begin(1, 0, 7), end(1, 0, 7), {what: "held"}}},
		"held though a slot is free":           {porcupine.Illegal, 2, []turn{begin(1, 0, 7), {what: "held"}, end(1, 0, 7)}},
	} {
		h := &lockHistory{met: map[string]int{}}
		for i, one := range told.turns {
			h.add(i, one, time.Duration(i)*time.Second, time.Duration(i)*time.Second+1)
		}
		if got := h.check(told.slots); got != told.want {
			t.Errorf("%s: got %s, want %s", name, got, told.want)
		}
	}
}

// A store whose leases stay after their release keeps a lock from all, and the histories show it.
func TestLockOverBrokenStore(t *testing.T) {
	for fault, want := range map[string]porcupine.CheckResult{"": porcupine.Ok, "release does nothing": porcupine.Illegal} {
		s := lockSession{name: "north", calls: 30, lease: 15 * time.Second, longest: time.Second}
		var h *lockHistory
		synctest.Test(t, func(*testing.T) { h = locksFromAfar(&toy{fault: fault})(s) })
		if got := h.check(s.slots()); got != want {
			t.Errorf("%s: got %s, want %s", fault, got, want)
		}
	}
}
