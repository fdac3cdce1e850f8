package history_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/internal/azurite"
	"github.com/soloist-go/soloist/store"
)

// A turn is a call of Do or TryDo. Times are since the begin of the session.
type turn struct {
	slot             int
	token            int64 // zero: the function was not called
	called, returned time.Duration
	begun, let       time.Duration // of the function
	held             bool          // it was refused, since another had the lock
}

// wrong returns what no lock does: two holders of a slot at once, a token that is not larger than the one before, and, if nothing
// else can have kept the lock from its callers, a refusal while no call had it.
func wrong(turns []turn, reliable bool) (faults []string) {
	holds := slices.DeleteFunc(slices.Clone(turns), func(t turn) bool { return t.token == 0 })
	slices.SortFunc(holds, func(a, b turn) int { return cmp.Or(cmp.Compare(a.slot, b.slot), cmp.Compare(a.begun, b.begun)) })
	for i, next := range holds {
		if i == 0 || holds[i-1].slot != next.slot {
			continue
		}
		if last := holds[i-1]; next.begun < last.let || next.token <= last.token {
			faults = append(faults, fmt.Sprintf("%+v after %+v", next, last))
		}
	}
	for _, t := range turns {
		if reliable && t.held && !slices.ContainsFunc(holds, func(h turn) bool { return h.called <= t.returned && h.returned >= t.called }) {
			faults = append(faults, fmt.Sprintf("held by none: %+v", t))
		}
	}
	return faults
}

// A lockSession is what the callers of one lock do.
type lockSession struct {
	name    string
	slots   int
	calls   int // of each client
	longest time.Duration

	mu     sync.Mutex
	turns  []turn
	failed bool // a call
}

const lockLease = 15 * time.Second

// record has each client call a lock of its own, as a replica would, and returns what no lock does.
func (s *lockSession) record(seed uint64, backend func() store.Store) []string {
	start := time.Now()
	var all sync.WaitGroup
	for n := range 2 + int(seed%3) {
		l := &soloist.Lock{Name: s.name, Store: backend(), Slots: s.slots, Lease: lockLease, Replica: fmt.Sprint("r", n), Logger: slog.New(slog.DiscardHandler)}
		all.Go(func() {
			dice := rand.New(rand.NewPCG(seed, uint64(n)))
			for range s.calls {
				time.Sleep(time.Duration(dice.Int64N(int64(s.longest) + 1)))
				s.call(l, dice, start)
			}
		})
	}
	all.Wait()
	// A call that failed may keep the lock from others until its lease runs out. Of several slots, each may have been held at
	// another time.
	return wrong(s.turns, !s.failed && s.slots == 1)
}

// call makes one call of Do or TryDo.
func (s *lockSession) call(l *soloist.Lock, dice *rand.Rand, start time.Time) {
	t, takes := turn{called: time.Since(start)}, time.Duration(dice.Int64N(int64(s.longest)+1))
	by := l.Do
	if dice.IntN(3) == 0 {
		by = l.TryDo
	}
	err := by(context.Background(), func(ctx context.Context, run *soloist.Run) error {
		_, slot, _ := strings.Cut(run.ID(), "/") // "north@token" or "north@token/slot"
		t.slot, _ = strconv.Atoi(slot)           // none: the first
		t.token, t.begun = run.Token, time.Since(start)
		select {
		case <-time.After(takes):
		case <-ctx.Done():
		}
		t.let = time.Since(start)
		return context.Cause(ctx)
	})
	t.returned, t.held = time.Since(start), errors.Is(err, store.ErrHeld)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turns = append(s.turns, t)
	s.failed = s.failed || err != nil && !t.held
}

// lockInReality has sessions at once, in real time, and makes sure that some calls hold a lock and some are refused.
func lockInReality(t *testing.T, backend func() store.Store) {
	t.Helper()
	var all sync.WaitGroup
	sessions, faults := make([]*lockSession, 12), make([][]string, 12)
	for seed := range sessions {
		s := &lockSession{name: fmt.Sprint("north-", seed), slots: 1 + seed%2, calls: 10, longest: 50 * time.Millisecond}
		sessions[seed] = s
		all.Go(func() { faults[seed] = s.record(uint64(seed), backend) })
	}
	all.Wait()
	holds, refusals := 0, 0
	for seed, s := range sessions {
		for _, one := range s.turns {
			if one.held {
				refusals++
			} else if one.token > 0 {
				holds++
			}
		}
		if len(faults[seed]) > 0 {
			t.Errorf("seed %d:\n%s", seed, strings.Join(faults[seed], "\n"))
		}
	}
	if holds == 0 || refusals == 0 {
		t.Errorf("%d calls held a lock, and %d were refused: want some of both", holds, refusals)
	}
}

func TestLockOverDir(t *testing.T) {
	alone(t)
	dir := local.Dir{Path: t.TempDir()}
	lockInReality(t, func() store.Store { return dir })
}

func TestLockOverAzurite(t *testing.T) {
	alone(t)
	server := azurite.Start(t)
	lockInReality(t, func() store.Store { return overAzurite(t, server, &deaf{}) })
}

// TestLockFaults plants one fault in each session.
func TestLockFaults(t *testing.T) {
	const s = time.Second
	first := turn{slot: 0, token: 7, called: 0, begun: s, let: 3 * s, returned: 4 * s}
	second := turn{slot: 0, token: 8, called: 2 * s, begun: 3 * s, let: 5 * s, returned: 6 * s}
	for name, c := range map[string]struct {
		turns []turn
		want  int
	}{
		"one after the other":      {[]turn{second, first, {held: true, called: 2 * s, returned: 2 * s}, {slot: 1, token: 3, begun: 2 * s, let: 3 * s}}, 0},
		"two holders":              {[]turn{first, {token: 8, called: 1 * s, begun: 2 * s, let: 5 * s, returned: 6 * s}}, 1},
		"a token that comes again": {[]turn{first, {token: 7, called: 4 * s, begun: 4 * s, let: 5 * s, returned: 6 * s}}, 1},
		"held by none":             {[]turn{first, {held: true, called: 7 * s, returned: 8 * s}}, 1},
	} {
		if got := wrong(c.turns, true); len(got) != c.want {
			t.Errorf("%s: got %q", name, got)
		}
	}
}
