package history_test

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"
)

// A turn is a part of a call of Do or TryDo: that its function began with the lock, that it let the
// lock go, or that the lock was held by another.
type turn struct {
	what  string // begin, end, held
	hold  int    // which of all holds of the history
	slot  int
	token int64
}

// A place is what is known of one slot.
type place struct {
	hold  int // the hold that is under way; zero: none
	token int64
}

// maxPlaces is how many slots a lock may have here. The array keeps states comparable.
const maxPlaces = 3

type places [maxPlaces]place

// lockModel is a lock with slots: each has one holder at a time, and each holder a larger token
// than the one before.
func lockModel(slots int) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return places{} },
		Step: func(state, input, _ any) (bool, any) {
			s, in := state.(places), input.(turn)
			p := &s[in.slot]
			switch in.what {
			case "begin":
				fits := p.hold == 0 && in.token > p.token
				*p = place{in.hold, in.token}
				return fits, s
			case "end":
				fits := p.hold == in.hold
				p.hold = 0
				return fits, s
			}
			for _, p := range s[:slots] {
				if p.hold == 0 {
					return false, s
				}
			}
			return true, s
		},
		DescribeOperation: func(input, _ any) string { return fmt.Sprint(input) },
	}
}

// A lockHistory is what the callers of one lock have met.
type lockHistory struct {
	start time.Time

	mu    sync.Mutex
	ills  bool // answers were lost, or a call has failed
	holds int
	met   map[string]int
	ops   []porcupine.Operation
}

// fail notes that a call has failed.
func (h *lockHistory) fail() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ills = true
}

// add notes a part of a call, which was at some instant between two times.
func (h *lockHistory) add(client int, what turn, from, to time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.met[what.what]++
	h.ops = append(h.ops, porcupine.Operation{ClientId: client, Input: what, Call: int64(from), Return: int64(to)})
}

// begun numbers a hold, and finds out its slot from the ID: "north@token", or "north@token/slot".
func (h *lockHistory) begun(id string, token int64) turn {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.holds++
	_, number, _ := strings.Cut(id, "/")
	slot, _ := strconv.Atoi(number) // none: the first
	return turn{what: "begin", hold: h.holds, slot: slot, token: token}
}

func (h *lockHistory) text() (lines string) {
	for _, op := range h.ops {
		lines += fmt.Sprintf("%v to %v: client %d: %+v\n", time.Duration(op.Call), time.Duration(op.Return), op.ClientId, op.Input)
	}
	return lines
}
