package history_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
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
func (s lockSession) record(backend func(n int) store.Store) *history {
	h := newHistory(lockModel(s.slots()), 0)
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
	if s.ills || h.failed {
		return h.forgiving()
	}
	return h
}

// call makes one call of Do or TryDo. If long, some functions take longer than the lease.
func (h *history) call(client int, l *soloist.Lock, dice *rand.Rand, longest time.Duration, long bool) {
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
		h.turn(client, hold, from, time.Since(h.start))
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
		h.turn(client, hold, let, to)
	case trying && errors.Is(err, store.ErrHeld) && l.Slots == 1: // of several slots, each may have been held at another time
		h.turn(client, turn{what: "held"}, from, to)
		return
	}
	if err != nil {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.failed = true
	}
}

// holds are what histories of locks have to have.
var holds = []string{"begin", "held"}

// virtualTime is a session in virtual time. Answers get lost in two of three.
func virtualTime(seed uint64) lockSession {
	return lockSession{seed: seed, name: "north", calls: 12, lease: 15 * time.Second, longest: 2 * time.Second, ills: seed%3 > 0}
}

func (s lockSession) fromAfar(backend store.Store) *history {
	return s.record(func(n int) store.Store {
		return far{Store: backend, dice: safeDice(s.seed, uint64(most+n)), most: 60 * time.Millisecond, ills: int(s.seed%3) * 8}
	})
}

func TestLockOverMemory(t *testing.T) {
	inBubble(t, 100, holds, func(seed uint64) *history { return virtualTime(seed).fromAfar(new(local.Memory)) })
}

func TestLockOverDocumentedService(t *testing.T) {
	inBubble(t, 60, holds, func(seed uint64) *history {
		service, late := new(blobtest.Blob), new(sync.WaitGroup)
		defer late.Wait()
		return virtualTime(seed).record(func(n int) store.Store {
			backend, err := azure.Open(azure.Config{ServiceURL: "https://sim.blob.core.windows.net/?sig=x", Transport: &line{
				service: service, late: late, most: 100 * time.Millisecond, ills: int(seed%3) * 8, dice: safeDice(seed, uint64(most+n))}})
			if err != nil {
				panic(err)
			}
			return backend
		})
	})
}

// realTime is a session in real time.
func realTime(seed uint64) lockSession {
	return lockSession{seed: seed, name: fmt.Sprint("north-", seed), calls: 10, lease: 15 * time.Second, longest: 50 * time.Millisecond}
}

func TestLockOverDir(t *testing.T) {
	alone(t)
	backend := local.Dir{Path: t.TempDir()}
	inReality(t, 12, holds, func(seed uint64) *history { return realTime(seed).record(func(int) store.Store { return backend }) })
}

func TestLockOverAzurite(t *testing.T) {
	alone(t)
	server := azurite.Start(t)
	inReality(t, 12, holds, func(seed uint64) *history {
		return realTime(seed).record(func(int) store.Store {
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
		h := newHistory(lockModel(told.slots), 0)
		for i, one := range told.turns {
			h.turn(i, one, time.Duration(i)*time.Second, time.Duration(i)*time.Second+1)
		}
		if got := h.check(patience); got != told.want {
			t.Errorf("%s: got %s, want %s", name, got, told.want)
		}
	}
}

// A store whose leases stay after their release keeps a lock from all, and the histories show it.
func TestLockOverBrokenStore(t *testing.T) {
	for fault, want := range map[string]porcupine.CheckResult{"": porcupine.Ok, "release does nothing": porcupine.Illegal} {
		s := lockSession{name: "north", calls: 30, lease: 15 * time.Second, longest: time.Second}
		var h *history
		synctest.Test(t, func(*testing.T) { h = s.fromAfar(&toy{fault: fault}) })
		if got := h.check(patience); got != want {
			t.Errorf("%s: got %s, want %s", fault, got, want)
		}
	}
}
